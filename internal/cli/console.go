package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/fault"
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
	Verbose        bool     // details are printed, too

	text    *sync.Mutex // guards what follows, and whole lines
	notices []Notice    // so far
	show    openLine    // what may have an open line on the terminal

	ctx      context.Context // of a caller that is no process, see Within; nil: signals stop the work
	onNotice func(Notice)    // likewise

	OnAbort func() // what a second Ctrl-C does before the end, or nil; set before interruptible
}

// New returns the console of one call; args is its command line without the program.
func New(args []string, stdout, stderr io.Writer) *Console {
	return &Console{Stdout: stdout, Stderr: stderr, Args: args, text: &sync.Mutex{}, show: noLine{}}
}

// Columns returns how wide text on standard output may be: where there is no terminal, as wide as it likes.
func (c *Console) Columns() int { return columnsOf(c.Stdout) }

// Sayf writes sentences to standard output, in lines as wide as the terminal.
func (c *Console) Sayf(format string, args ...any) {
	c.Printf("%s", fill(fmt.Sprintf(format, args...), c.Columns()))
}

// Table writes a table to standard output, whose last column is broken at the terminal's width.
func (c *Console) Table(text string) { c.Printf("%s", fillTable(text, c.Columns())) }

// say writes a line to standard error, in several where the terminal is not as wide.
func (c *Console) say(format string, args ...any) {
	_, _ = io.WriteString(c.Stderr, fill(fmt.Sprintf(format, args...), columnsOf(c.Stderr)))
}

// Printf writes to standard output.
func (c *Console) Printf(format string, args ...any) {
	c.text.Lock()
	defer c.text.Unlock()
	c.show.EndLine()
	_, _ = io.WriteString(c.Stdout, wording.PrintableLines(fmt.Sprintf(format, args...)))
}

// Warn writes a warning to standard error and keeps it for the report.
func (c *Console) Warn(text string) { c.Tell(Notice{KindWarning, text}) }

// Note writes a note to standard error and keeps it for the report.
func (c *Console) Note(text string) { c.Tell(Notice{KindNote, text}) }

// Tell writes a warning, a note or, if they are wanted, a detail.
func (c *Console) Tell(n Notice) {
	n.Text = wording.PrintableLines(n.Text)
	silent := n.Kind == KindDetail && !c.Verbose
	if n.Kind == KindDetail {
		n.Kind = KindNote
	}
	if c.onNotice != nil {
		c.onNotice(n)
	}
	if n.Kind == KindWarning {
		child.Report(child.Event{Event: child.EventWarning, Text: n.Text})
	}
	c.text.Lock()
	defer c.text.Unlock()
	c.notices = append(c.notices, n)
	if silent {
		return
	}
	c.show.EndLine()
	c.say("vksplat: %s: %s\n", n.Kind, n.Text)
}

func (c *Console) Notices() []Notice {
	c.text.Lock()
	defer c.text.Unlock()
	return slices.Clone(c.notices)
}

// Fail writes an error, and the hint what can be done about it, to standard error. Joined errors are a line each. That
// the user stopped the work is none. A parent process gets them as an event.
func (c *Console) Fail(err error) {
	c.text.Lock()
	defer c.text.Unlock()
	c.show.EndLine()
	lines, kind := linesOf(err), "error: "
	if len(lines) == 1 && errors.Is(err, fault.ErrInterrupted) {
		kind = ""
	}
	for _, line := range lines {
		c.say("vksplat: %s%s\n", kind, wording.PrintableLines(line))
	}
	h := hintStyle(fault.Hint(err))
	if h != "" {
		c.say("hint: %s\n", wording.PrintableLines(h))
	}
	e := child.Event{Event: child.EventError, Text: wording.Printable(strings.Join(lines, "; ")),
		Hint: wording.Printable(h)}
	e.Kind, e.Causes = fault.Names(err)
	child.Report(e)
}

// Follow ends the line l before other text is printed; nil ends that. While l draws, it must hold the lock that Follow
// returns.
func (c *Console) Follow(l openLine) *sync.Mutex {
	if l == nil {
		l = noLine{}
	}
	c.text.Lock()
	defer c.text.Unlock()
	c.show = l
	return c.text
}

// ToStderr returns a console that prints to standard error, for commands whose standard output is JSON alone.
func (c *Console) ToStderr() *Console {
	text := *c
	text.Stdout = c.Stderr
	return &text
}

// Raw writes text to standard output unchanged, control sequences too.
func (c *Console) Raw(text string) {
	c.text.Lock()
	defer c.text.Unlock()
	_, _ = io.WriteString(c.Stdout, text) // Stdout keeps what failed
}

func (c *Console) PrintJSON(v any) error {
	enc := json.NewEncoder(c.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}

// Interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP cancels, after printing what then says:
// what happens now. A later Ctrl-C ends the process at once; other signals do not, because GNU timeout and service
// managers repeat theirs, and a run of training is worth saving. The function it returns must be called when the work
// is done. From then on these signals do nothing: the process is about to end, with the exit code that it has earned.
func (c *Console) Interruptible(then func() string) (context.Context, func()) {
	return c.untilSignal(then, func(s os.Signal) bool { return s == os.Interrupt })
}

// Stoppable is interruptible for work that loses little: any later signal ends the process at once.
func (c *Console) Stoppable(then func() string) (context.Context, func()) {
	return c.untilSignal(then, func(os.Signal) bool { return true })
}

// untilSignal does the work of interruptible; aborts says which later signals end the process, once the first is
// abortAfter ago.
func (c *Console) untilSignal(then func() string, aborts func(os.Signal) bool) (context.Context, func()) {
	if c.ctx != nil {
		return c.untilDone()
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
				c.say("\nvksplat: %s (press Ctrl-C again to abort)\n", then())
				cancel()
			case aborts(s) && time.Since(first) >= AbortAfter:
				_, _ = fmt.Fprintln(c.Stderr, "\nvksplat: aborted")
				if c.OnAbort != nil {
					c.OnAbort()
				}
				os.Exit(fault.ExitInterrupted)
			}
		}
	}()
	return ctx, func() {
		close(done)
		cancel()
	}
}
