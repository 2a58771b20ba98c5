package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// place names a test, or without a name its package.
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
	seconds map[string]float64 // of packages, and of tests after "package "
}

func newReporter(out io.Writer) *reporter {
	return &reporter{out: out, output: map[place][]string{}, skipped: map[string][]string{},
		seconds: map[string]float64{}}
}

// read reports the events of in, one JSON object a line.
func (r *reporter) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("read %.80q: %w", line, err)
			}
			r.add(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reporter) add(e event) {
	at := place{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[at] = append(r.output[at], e.Output)
	case "pass", "skip", "fail":
		r.seconds[strings.TrimRight(e.Package+" "+e.Test, " ")] = e.Elapsed
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

// endPackage prints the package's own line. If it failed, it also prints the output of tests that did not end, where a
// crash shows.
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

// reason returns the text that t.Skip was called with: the last line that is not of the frame around it.
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
