package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// abortAfter is how long after the first signal a Ctrl-C aborts: sooner, it is
// the same wish delivered twice, to the process and to its group.
const abortAfter = 500 * time.Millisecond

// interruptible returns a context that the first Ctrl-C, SIGTERM or SIGHUP
// cancels, after printing what then says: what happens now. A later Ctrl-C ends
// the process at once; other signals do not, because GNU timeout and service managers repeat
// theirs. The function it returns must be called when the work is done. From then
// on these signals do nothing: the process is about to end, with the exit code
// that it has earned.
func (a *app) interruptible(then func() string) (context.Context, func()) {
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
				_, _ = fmt.Fprintf(a.stderr, "\nvksplat: %s; Ctrl-C once more aborts at once\n", then())
				cancel()
			case s == os.Interrupt && time.Since(first) >= abortAfter:
				_, _ = fmt.Fprintln(a.stderr, "\nvksplat: aborted")
				if a.onAbort != nil {
					a.onAbort()
				}
				os.Exit(exitInterrupted)
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
