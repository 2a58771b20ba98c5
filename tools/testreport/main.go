// Command testreport reads what `go test -json` prints and writes what a person wants of it: a line for each package,
// the output of what failed, and at the end which tests failed, and which were skipped and why.
//
//	go test -json ./... | go run ./tools/testreport
//	go test -json ./... | go run ./tools/testreport -brief    # skipped tests are counted, not listed
//
// It exits with 1 if anything failed, or if its input is none of go test's.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	brief := flag.Bool("brief", false, "count skipped tests, and do not list them")
	flag.Parse()
	failed, err := report(os.Stdin, os.Stdout, *brief)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// event is a line of go test -json; go doc test2json has its fields.
type event struct {
	Action, Package, Test, Output string
}

// place is a test of a package; without a name it is the package.
type place struct{ pkg, test string }

func (p place) String() string {
	return strings.TrimSpace(strings.TrimPrefix(p.pkg, "vksplat/") + " " + p.test)
}

type reporter struct {
	out     io.Writer
	output  map[place][]string  // of tests and packages that have not ended
	skipped map[string][]string // tests by reason
	failed  []place             // tests and packages
	passed  int
}

func report(in io.Reader, out io.Writer, brief bool) (bool, error) {
	r := &reporter{out: out, output: map[place][]string{}, skipped: map[string][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return true, fmt.Errorf("read %.80q: %w", line, err)
			}
			r.take(e)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return true, err
		}
	}
	r.end(brief)
	return len(r.failed) > 0, nil
}

func (r *reporter) take(e event) {
	at := place{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[at] = append(r.output[at], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(at, e.Action == "fail")
			return
		}
		r.endTest(at, e.Action)
	}
}

func (r *reporter) endTest(at place, action string) {
	switch action {
	case "pass":
		r.passed++
	case "skip":
		why := reason(r.output[at])
		r.skipped[why] = append(r.skipped[why], at.String())
	case "fail":
		r.failed = append(r.failed, at)
		r.print(r.output[at])
	}
	delete(r.output, at)
}

// endPackage prints the package's own line. Of one that failed it prints the rest as well, the output of tests that did
// not end among it: that is where a crash is.
func (r *reporter) endPackage(at place, failed bool) {
	if failed {
		r.failed = append(r.failed, at)
		byName := func(a, b place) int { return cmp.Compare(a.test, b.test) }
		for _, open := range slices.SortedFunc(maps.Keys(r.output), byName) {
			if open.pkg == at.pkg && open.test != "" {
				r.print(r.output[open])
				delete(r.output, open)
			}
		}
		r.print(r.output[at])
	} else if lines := r.output[at]; len(lines) > 0 {
		r.print(lines[len(lines)-1:])
	}
	delete(r.output, at)
}

func (r *reporter) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(r.out, line)
	}
}

// reason finds what t.Skip was called with: the last line that is none of the frame around it.
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "=== ") {
			continue
		}
		if file, rest, found := strings.Cut(text, ": "); found && strings.Contains(file, ".go:") {
			text = rest
		}
		return text
	}
	return "no reason given"
}

func (r *reporter) end(brief bool) {
	skipped := 0
	for _, tests := range r.skipped {
		skipped += len(tests)
	}
	if !brief {
		for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
			fmt.Fprintf(r.out, "skipped: %s\n", why)
			for _, test := range r.skipped[why] {
				fmt.Fprintf(r.out, "    %s\n", test)
			}
		}
	}
	for _, at := range r.failed {
		fmt.Fprintf(r.out, "failed: %s\n", at)
	}
	fmt.Fprintf(r.out, "%d tests passed, %d failed, %d skipped\n", r.passed, len(r.failed), skipped)
}
