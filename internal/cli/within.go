package cli

import (
	"context"
	"io"
	"runtime/debug"
)

// Within is a console for callers that are no process: it prints nothing, ctx stops the work in place of signals, and
// onNotice, if not nil, gets each warning and note, on any goroutine.
func Within(ctx context.Context, onNotice func(Notice)) *Console {
	c := New(nil, io.Discard, io.Discard)
	c.ctx, c.onNotice = ctx, onNotice
	return c
}

// LimitHeap makes Go collect garbage before its memory exceeds bytes. The limit is the process's: for a caller within
// another program it does nothing.
func (c *Console) LimitHeap(bytes int64) {
	if c.ctx == nil {
		debug.SetMemoryLimit(max(bytes, leastHeap))
	}
}

// leastHeap is the least limit, in bytes: with less, Go would do nothing but collect garbage.
const leastHeap = 32 << 20

// untilDone is untilSignal of a console with a context. Whatever ended that, the work has been cancelled.
func (c *Console) untilDone() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
