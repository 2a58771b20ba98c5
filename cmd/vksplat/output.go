package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// pipeGone are the errors of a pipe that nobody reads any more.
var pipeGone = []error{syscall.EPIPE}

// output is standard output. Text is written without looking at errors: the first one is kept here, and the program ends with it.
type output struct {
	w  io.Writer
	mu sync.Mutex
	at error
}

func newOutput(w io.Writer) *output { return &output{w: w} }

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.at == nil {
			o.at = err
		}
	}
	return n, err
}

// checked joins err, which a command ended with, and what could not be written. A reader that is gone wanted no more: that is no error, also of a command that noticed.
func (o *output) checked(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone := slices.ContainsFunc(pipeGone, func(gone error) bool { return errors.Is(o.at, gone) })
	switch {
	case gone && errors.Is(err, o.at):
		return nil
	case gone, o.at == nil:
		return err
	}
	lost := &hintedError{err: fmt.Errorf("write to standard output: %w", pathless(o.at)), hint: "text is missing there, and nothing else; make room, or send it elsewhere"}
	if err == nil || errors.Is(err, o.at) {
		return lost
	}
	return errors.Join(err, lost)
}

// fileOf returns the file that w writes to, if it is one.
func fileOf(w io.Writer) (f *os.File, isFile bool) {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, isFile = w.(*os.File)
	return f, isFile
}

// terminalWidth returns the columns of the terminal that f is, or how many one has that does not tell.
func terminalWidth(f *os.File) int {
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return plainWidth
}

// columns returns how wide text on standard output may be: where there is no terminal, as wide as it likes.
func (a *app) columns() int {
	if f, isFile := fileOf(a.stdout); isFile && term.IsTerminal(int(f.Fd())) {
		return max(terminalWidth(f), plainWidth/2)
	}
	return math.MaxInt
}

// notice is a line for the user that is no result: a warning, or a note on what was done as it should be.
type notice struct{ Kind, Text string } // exported for the report's template

const (
	kindWarning = "warning"
	kindNote    = "note"
)

// printf writes to standard output.
func (a *app) printf(format string, args ...any) {
	a.text.Lock()
	defer a.text.Unlock()
	a.show.EndLine()
	_, _ = io.WriteString(a.stdout, wording.PrintableLines(fmt.Sprintf(format, args...)))
}

// warn and note write one line to standard error and keep it for the report.
func (a *app) warn(text string) { a.tell(notice{kindWarning, text}) }
func (a *app) note(text string) { a.tell(notice{kindNote, text}) }

func (a *app) tell(n notice) {
	n.Text = wording.PrintableLines(n.Text)
	a.text.Lock()
	defer a.text.Unlock()
	a.told = append(a.told, n)
	a.show.EndLine()
	_, _ = fmt.Fprintf(a.stderr, "vksplat: %s: %s\n", n.Kind, n.Text)
}

// notices returns those so far.
func (a *app) notices() []notice {
	a.text.Lock()
	defer a.text.Unlock()
	return slices.Clone(a.told)
}

// fail writes an error, and the hint what can be done about it, to standard error. Joined errors are a line each.
func (a *app) fail(err error, hint string) {
	a.text.Lock()
	defer a.text.Unlock()
	a.show.EndLine()
	for _, line := range linesOf(err) {
		_, _ = fmt.Fprintf(a.stderr, "vksplat: error: %s\n", wording.PrintableLines(line))
	}
	if hint != "" {
		_, _ = fmt.Fprintf(a.stderr, "hint: %s\n", wording.PrintableLines(hintStyle(hint)))
	}
}

// openLine is a line of the terminal that is drawn again and again. EndLine ends it, so that text goes below it.
type openLine interface{ EndLine() }

type noLine struct{}

func (noLine) EndLine() {}

// follow ends l before other text is printed; nil: there is no such line any more. l must hold the lock that is returned while it draws.
func (a *app) follow(l openLine) *sync.Mutex {
	if l == nil {
		l = noLine{}
	}
	a.text.Lock()
	defer a.text.Unlock()
	a.show = l
	return a.text
}

// toStderr is a console whose text goes to standard error, because standard output is for JSON alone.
func (a *app) toStderr() *app {
	text := *a
	text.stdout = a.stderr
	return &text
}

// raw writes text as it is to standard output.
func (a *app) raw(text string) {
	a.text.Lock()
	defer a.text.Unlock()
	_, _ = io.WriteString(a.stdout, text) // what could not be written is kept there
}

// linesOf are the texts of an error and of those that are joined in it, each once, without the names of packages.
func linesOf(err error) (lines []string) {
	for line := range strings.SplitSeq(fault.Text(err), "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// hintStyle gives hints of all packages one look: no capital at the start, unless
// the word has more of them, and no full stop.
func hintStyle(h string) string {
	if len(h) > 1 && h[0] >= 'A' && h[0] <= 'Z' && h[1] >= 'a' && h[1] <= 'z' {
		h = strings.ToLower(h[:1]) + h[1:]
	}
	return strings.TrimSuffix(h, ".")
}

// printJSON prints v for programs.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}
