package cli

import (
	"context"
	"io"
)

// Within is a console for callers that are no process: it prints nothing, ctx stops the work in place of signals, and
// onNotice, if not nil, gets each warning and note, on any goroutine.
func Within(ctx context.Context, onNotice func(Notice)) *Console {
	c := New(nil, io.Discard, io.Discard)
	c.ctx, c.onNotice = ctx, onNotice
	return c
}

// untilDone is untilSignal of a console with a context. Whatever ended that, the work has been cancelled.
func (c *Console) untilDone() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
