package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"vksplat/internal/fault"
)

// abortAfter is how long after the first signal a Ctrl-C aborts: sooner, it is
// the same wish delivered twice, to the process and to its group.
const abortAfter = 500 * time.Millisecond

// interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP
// cancels, after printing what then says: what happens now. A later Ctrl-C ends
// the process at once; other signals do not, because GNU timeout and service managers repeat
// theirs, and a run of training is worth saving. The function it returns must be called when the work is done. From then
// on these signals do nothing: the process is about to end, with the exit code
// that it has earned.
func (a *app) interruptible(then func() string) (context.Context, func()) {
	return a.untilSignal(then, "Ctrl-C once more aborts at once", func(s os.Signal) bool { return s == os.Interrupt })
}

// stoppable is interruptible for work that loses little: any later signal ends the process at once.
func (a *app) stoppable(then func() string) (context.Context, func()) {
	return a.untilSignal(then, "once more aborts at once", func(os.Signal) bool { return true })
}

// untilSignal does the work of interruptible; aborts says which later signals end the process, once the first is abortAfter ago.
func (a *app) untilSignal(then func() string, again string, aborts func(os.Signal) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, stopSignals()...)
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
				_, _ = fmt.Fprintf(a.stderr, "\nvksplat: %s; %s\n", then(), again)
				cancel()
			case aborts(s) && time.Since(first) >= abortAfter:
				_, _ = fmt.Fprintln(a.stderr, "\nvksplat: aborted")
				if a.onAbort != nil {
					a.onAbort()
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

// always is a then of interruptible that is the same at any time.
func always(text string) func() string { return func() string { return text } }
