package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that the first Ctrl-C or SIGTERM cancels,
// after printing then: what happens now. The second one ends the process at
// once. The function it returns must be called when the work is done; signals
// then do again what they did before.
func (a *app) interruptible(then string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n > 0 {
				_, _ = fmt.Fprintln(a.stderr, "\nvksplat: aborted")
				os.Exit(exitInterrupted)
			}
			_, _ = fmt.Fprintf(a.stderr, "\nvksplat: %s; Ctrl-C once more aborts at once\n", then)
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
