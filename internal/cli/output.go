package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"vksplat/internal/fault"
)

// pipeGone are the errors of a pipe without a reader.
var pipeGone = []error{syscall.EPIPE}

// Stdout is standard output. Text is written without looking at errors: the first one is kept here, and the program
// ends with it.
type Stdout struct {
	W  io.Writer
	mu sync.Mutex
	at error
}

func NewStdout(w io.Writer) *Stdout { return &Stdout{W: w} }

// Write implements io.Writer.
func (o *Stdout) Write(p []byte) (int, error) {
	n, err := o.W.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.at == nil {
			o.at = err
		}
	}
	return n, err
}

// Checked joins err, which a command ended with, and what could not be written. A reader that is gone wanted no more:
// that is no error, also of a command that noticed.
func (o *Stdout) Checked(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone := slices.ContainsFunc(pipeGone, func(gone error) bool { return errors.Is(o.at, gone) })
	switch {
	case gone && errors.Is(err, o.at):
		return nil
	case gone, o.at == nil:
		return err
	}
	lost := fault.WithHint(fmt.Errorf("write to standard output: %w", fault.Pathless(o.at)),
		"only printed text is lost; make room, or redirect it elsewhere")
	if err == nil || errors.Is(err, o.at) {
		return lost
	}
	return errors.Join(err, lost)
}

func FileOf(w io.Writer) (f *os.File, isFile bool) {
	if o, ok := w.(*Stdout); ok {
		w = o.W
	}
	f, isFile = w.(*os.File)
	return f, isFile
}

// TerminalWidth returns the columns of the terminal that f is, or how many one has that does not tell.
func TerminalWidth(f *os.File) int {
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return PlainWidth
}

// Notice is a line for the user that is no result: a warning, or a note on what was done as it should be.
type Notice struct{ Kind, Text string } // exported for the report's template

const (
	KindWarning = "warning"
	KindNote    = "note"
	KindDetail  = "detail" // a note that matters to few
)

// openLine is a line of the terminal that is drawn again and again. EndLine ends it, so that text goes below it.
type openLine interface{ EndLine() }

type noLine struct{}

func (noLine) EndLine() {}

// linesOf are the texts of an error and of those that are joined in it, each once, without the names of packages.
func linesOf(err error) (lines []string) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
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

const PlainWidth = 80 // characters of a terminal that does not tell its width
