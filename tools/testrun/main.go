// Command testrun runs the tests of the repository whose inputs have changed since they last passed, and reports them:
// a line for each package, the output of what failed, and at the end which tests failed, and which were skipped and
// why.
//
//	go run ./tools/testrun              # what .ci/ledger.txt has no passing record of
//	go run ./tools/testrun -all         # everything; records it in .ci/ledger.txt if all of it passed
//	go run ./tools/testrun -list        # what would run, its seconds last time, and the inputs that changed
//	go test -json ./... | go run ./tools/testrun -report -brief
//
// Inputs of a suite are its package with its tests and their data, the sources, shaders and embedded files of every
// package that these use, and the versions of Go, Mesa, the loader and the validation layer, which watches all tests.
// It exits with 1 if anything failed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	all := flag.Bool("all", false, "run what has passed before, too, and record what passes")
	list := flag.Bool("list", false, "print what would run, and run nothing")
	fromInput := flag.Bool("report", false, "report what go test -json wrote to the standard input")
	brief := flag.Bool("brief", false, "count skipped tests, and do not list them")
	flag.Parse()
	r := newReporter(os.Stdout)
	var err error
	if *fromInput {
		if err = r.read(os.Stdin); err == nil {
			r.end(*brief)
		}
	} else {
		err = runTests(r, *all, *list, *brief)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if len(r.failed) > 0 || err != nil {
		os.Exit(1)
	}
}

func runTests(r *reporter, all, list, brief bool) error {
	if os.Getenv("VKSPLAT_VALIDATE") == "" { // so that -list by hand finds the settings of make test
		os.Setenv("VKSPLAT_VALIDATE", "1")
	}
	old, err := readLedger(ledgerFile)
	if err != nil {
		return err
	}
	now, suites, err := keys()
	if err != nil {
		return err
	}
	todo, why := now.todo(old, all)
	fmt.Fprintln(r.out, why)
	if list {
		for _, line := range reasons(suites, todo, old) {
			fmt.Fprintln(r.out, line)
		}
		return nil
	}
	seconds, err := run(r, todo, old, all)
	r.end(brief)
	if err != nil || len(r.failed) > 0 || !all {
		return err
	}
	return record(now, seconds)
}

// reasons lists the suites of todo with the seconds that they took when they last passed, and their inputs that have
// changed since the ledger was committed, as far as Git knows.
func reasons(suites []suite, todo map[string]bool, old ledger) []string {
	git := func(args ...string) []string {
		out, _ := exec.Command("git", args...).Output()
		return strings.Fields(string(out))
	}
	var changed []string
	if commit := git("log", "-1", "--format=%H", "--", ledgerFile); len(commit) == 1 {
		changed = append(git("diff", "--name-only", commit[0]), git("ls-files", "--others", "--exclude-standard")...)
	}
	var lines []string
	for _, s := range suites {
		if !todo[s.name] {
			continue
		}
		inputs := slices.DeleteFunc(slices.Clone(changed), func(f string) bool { return !slices.Contains(s.inputs, f) })
		more := ""
		if len(inputs) > 3 {
			inputs, more = inputs[:3], fmt.Sprintf(" and %d more", len(inputs)-3)
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%5.0f s  %s  %s%s", old.entries[s.name].seconds, s.name,
			strings.Join(inputs, " "), more), " "))
	}
	return lines
}

// keys returns the ledger of the tree as it is, without times.
func keys() (ledger, []suite, error) {
	t, err := readTree()
	if err != nil {
		return ledger{}, nil, err
	}
	now := surroundings()
	suites := t.suites()
	for _, s := range suites {
		key, err := t.key(s.inputs)
		if err != nil {
			return ledger{}, nil, fmt.Errorf("hash the inputs of %s: %w", s.name, err)
		}
		now.entries[s.name] = entry{key: key}
	}
	return now, suites, nil
}

// run runs the suites of todo and returns the seconds that each took. With all it ignores results that Go has cached.
// The targets of the Makefile run beside the packages; their output follows if they fail.
func run(r *reporter, todo map[string]bool, old ledger, all bool) (map[string]float64, error) {
	type result struct {
		out []byte
		err error
	}
	seconds, began := map[string]float64{}, time.Now()
	targets := make(chan map[string]result, 1)
	go func() {
		done := map[string]result{}
		for _, target := range []string{secondSuite, serverSuite} {
			if todo[target] {
				out, err := exec.Command("make", "--no-print-directory", target).CombinedOutput()
				done[target] = result{out, err}
				seconds[target] = time.Since(began).Seconds()
			}
		}
		targets <- done
	}()
	var failed error
	for _, args := range commands(todo, old) {
		if all {
			args = append([]string{"-count=1"}, args...)
		}
		if err := test(r, args); err != nil {
			failed = err
			break
		}
	}
	for target, done := range <-targets {
		if done.err != nil {
			os.Stdout.Write(done.out)
			r.failed = append(r.failed, place{pkg: "make " + target})
		}
	}
	for name := range todo {
		if s, ok := r.seconds[name]; ok {
			seconds[name] = s
		}
	}
	return seconds, failed
}

// commands returns the arguments of go test for the suites of todo. Packages that took longest come first: go test
// begins them in that order, and a slow one that begins last leaves the other cores idle.
func commands(todo map[string]bool, old ledger) [][]string {
	base := module + "/" + scriptDir
	var packages, some, unchanged []string
	for name := range old.entries {
		if strings.HasPrefix(name, scriptPrefix) && !todo[name] {
			unchanged = append(unchanged, name)
		}
	}
	for name := range todo {
		if script, ok := strings.CutPrefix(name, scriptPrefix); ok {
			some = append(some, script)
		} else if name != secondSuite && name != serverSuite && (name != base || len(unchanged) == 0) {
			packages = append(packages, name)
		}
	}
	slices.SortFunc(packages, func(a, b string) int {
		return cmp.Or(cmp.Compare(old.entries[b].seconds, old.entries[a].seconds), cmp.Compare(a, b))
	})
	slices.Sort(some)
	var runs [][]string
	if len(packages) > 0 {
		runs = append(runs, packages)
	}
	if len(unchanged) > 0 && todo[base] {
		runs = append(runs, []string{"-skip", "^TestScripts$", base})
	}
	if len(some) > 0 && (len(unchanged) > 0 || !todo[base]) {
		runs = append(runs, []string{"-run", "^TestScripts$/^(" + strings.Join(some, "|") + ")$", base})
	}
	return runs
}

// test runs go test with args and reports it.
func test(r *reporter, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json", "-vet=off", "-timeout", "60m"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := r.read(out)
	io.Copy(io.Discard, out) // so that the command ends
	if err := cmd.Wait(); err != nil && failed == nil && len(r.failed) == 0 {
		failed = fmt.Errorf("go test: %w", err)
	}
	return failed
}

// record writes the ledger. It refuses if a suite has no result, or something changed while the tests ran.
func record(before ledger, seconds map[string]float64) error {
	now, _, err := keys()
	if err != nil {
		return err
	}
	for name, e := range before.entries {
		took, ok := seconds[name]
		if !ok {
			return fmt.Errorf("record in %s: %s has no result", ledgerFile, name)
		}
		if now.entries[name].key != e.key {
			return fmt.Errorf("record in %s: the inputs of %s changed while the tests ran", ledgerFile, name)
		}
		before.entries[name] = entry{e.key, took}
	}
	return before.write(ledgerFile)
}
