package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"vksplat/internal/wording"
)

// ProcessStart is about when the process began, for the seconds of the whole run.
var ProcessStart = time.Now()

// Console is one call of the program: where it prints, and how far it came. Several
// goroutines may print and warn.
type Console struct {
	Stdout, Stderr io.Writer
	Args           []string // the command line, without the program
	Started        bool     // the arguments were understood and a subcommand runs

	text *sync.Mutex // guards what follows, and whole lines
	told []Notice    // so far
	show openLine    // what may have an open line on the terminal

	ctx   context.Context // of a caller that is no process, see Within; nil: signals stop the work
	heard func(Notice)    // likewise

	OnAbort func() // what a second Ctrl-C does before the end, or nil; set before interruptible
}

func New(args []string, stdout, stderr io.Writer) *Console {
	return &Console{Stdout: stdout, Stderr: stderr, Args: args, text: &sync.Mutex{}, show: noLine{}}
}

// Columns returns how wide text on standard output may be: where there is no terminal, as wide as it likes.
func (a *Console) Columns() int {
	if f, isFile := FileOf(a.Stdout); isFile && term.IsTerminal(int(f.Fd())) {
		return max(TerminalWidth(f), PlainWidth/2)
	}
	return math.MaxInt
}

// Printf writes to standard output.
func (a *Console) Printf(format string, args ...any) {
	a.text.Lock()
	defer a.text.Unlock()
	a.show.EndLine()
	_, _ = io.WriteString(a.Stdout, wording.PrintableLines(fmt.Sprintf(format, args...)))
}

// Warn and note write one line to standard error and keep it for the report.
func (a *Console) Warn(text string) { a.Tell(Notice{KindWarning, text}) }

func (a *Console) Note(text string) { a.Tell(Notice{KindNote, text}) }

func (a *Console) Tell(n Notice) {
	n.Text = wording.PrintableLines(n.Text)
	if a.heard != nil {
		a.heard(n)
	}
	a.text.Lock()
	defer a.text.Unlock()
	a.told = append(a.told, n)
	a.show.EndLine()
	_, _ = fmt.Fprintf(a.Stderr, "vksplat: %s: %s\n", n.Kind, n.Text)
}

// Notices returns those so far.
func (a *Console) Notices() []Notice {
	a.text.Lock()
	defer a.text.Unlock()
	return slices.Clone(a.told)
}

// Fail writes an error, and the hint what can be done about it, to standard error. Joined errors are a line each.
func (a *Console) Fail(err error, hint string) {
	a.text.Lock()
	defer a.text.Unlock()
	a.show.EndLine()
	for _, line := range linesOf(err) {
		_, _ = fmt.Fprintf(a.Stderr, "vksplat: error: %s\n", wording.PrintableLines(line))
	}
	if hint != "" {
		_, _ = fmt.Fprintf(a.Stderr, "hint: %s\n", wording.PrintableLines(hintStyle(hint)))
	}
}

// Follow ends l before other text is printed; nil: there is no such line any more. l must hold the lock that is returned while it draws.
func (a *Console) Follow(l openLine) *sync.Mutex {
	if l == nil {
		l = noLine{}
	}
	a.text.Lock()
	defer a.text.Unlock()
	a.show = l
	return a.text
}

// ToStderr is a console whose text goes to standard error, because standard output is for JSON alone.
func (a *Console) ToStderr() *Console {
	text := *a
	text.Stdout = a.Stderr
	return &text
}

// Raw writes text as it is to standard output.
func (a *Console) Raw(text string) {
	a.text.Lock()
	defer a.text.Unlock()
	_, _ = io.WriteString(a.Stdout, text) // what could not be written is kept there
}

// PrintJSON prints v for programs.
func (a *Console) PrintJSON(v any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}

// Interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP
// cancels, after printing what then says: what happens now. A later Ctrl-C ends
// the process at once; other signals do not, because GNU timeout and service managers repeat
// theirs, and a run of training is worth saving. The function it returns must be called when the work is done. From then
// on these signals do nothing: the process is about to end, with the exit code
// that it has earned.
func (a *Console) Interruptible(then func() string) (context.Context, func()) {
	return a.untilSignal(then, "Ctrl-C once more aborts at once", func(s os.Signal) bool { return s == os.Interrupt })
}

// Stoppable is interruptible for work that loses little: any later signal ends the process at once.
func (a *Console) Stoppable(then func() string) (context.Context, func()) {
	return a.untilSignal(then, "once more aborts at once", func(os.Signal) bool { return true })
}

// untilSignal does the work of interruptible; aborts says which later signals end the process, once the first is abortAfter ago.
func (a *Console) untilSignal(then func() string, again string, aborts func(os.Signal) bool) (context.Context, func()) {
	if a.ctx != nil {
		return a.untilDone()
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, StopSignals()...)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			var s os.Signal
			select {
			case <-done:
				return
			case s = <-signals:
			}
			switch {
			case first.IsZero():
				first = time.Now()
				_, _ = fmt.Fprintf(a.Stderr, "\nvksplat: %s; %s\n", then(), again)
				cancel()
			case aborts(s) && time.Since(first) >= AbortAfter:
				_, _ = fmt.Fprintln(a.Stderr, "\nvksplat: aborted")
				if a.OnAbort != nil {
					a.OnAbort()
				}
				os.Exit(ExitInterrupted)
			}
		}
	}()
	return ctx, func() {
		close(done)
		cancel()
	}
}
