package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/wire"
	"vksplat/internal/fault"
)

// beatEvery is the longest time between two heartbeats: pauses and cancels come with their answers.
const beatEvery = 5 * time.Second

// Why the server wants an attempt no more, beside errors.
var (
	errCanceled = errors.New("it was withdrawn")
	errPaused   = errors.New("it was paused")
)

// beats tells the server that this worker lives, and how far the task is, until end is called.
func (a *attempt) beats() (end func()) {
	every := beatEvery
	if within := a.given.Heartbeat.Span(); within > 0 {
		every = min(every, within/4)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.send(ctx) // before anything else: the task may be what kills the worker
	var group sync.WaitGroup
	group.Go(func() {
		for pause(ctx, every, nil); ctx.Err() == nil; pause(ctx, every, nil) {
			a.send(ctx)
		}
	})
	return func() { cancel(); group.Wait() }
}

// send sends a heartbeat. A server that does not answer changes nothing: the task goes on, and its results last.
func (a *attempt) send(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	var heard wire.Heard
	err := a.Conn.Once(within, &wire.Heartbeat{Token: a.given.Token, Details: a.said()}, &heard)
	if ctx.Err() != nil {
		return
	}
	if err == nil || wire.IsAway(err) {
		a.hear(err)
	}
	switch {
	case err != nil && (!wire.IsAway(err) || flow.NeedsPass(err)): // another attempt has the task, or the job is over
		a.take(err)
	case heard.Canceled:
		a.take(errCanceled)
	case heard.Paused, heard.Anew:
		a.take(errPaused)
	}
}

// said is what a heartbeat says.
func (a *attempt) said() *wire.Payloads {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.beat.Since = a.Conn.Since()
	return wire.PayloadsOf(a.beat)
}

const (
	// reportStop is for how long a worker that is to end waits for a server that is away.
	reportStop = 30 * time.Second
	// reportEvery is between two tries to tell the server how an attempt ended.
	reportEvery = time.Second
)

// report tells the server how an attempt ended, whenever it is back. It gives up where the server knows the attempt no
// more. Of nil there is nothing to tell.
func (a *attempt) report(answer wire.Request) {
	if answer == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(a.stopping, func() { pause(ctx, reportStop, nil); cancel() })()
	for {
		err := a.Conn.Call(ctx, answer, nil)
		if !wire.IsAway(err) || flow.NeedsPass(err) || ctx.Err() != nil {
			return
		}
		pause(ctx, reportEvery, nil) // Call comes back at once where the server itself says that it is too slow
	}
}

// failureType is the type of the errors of tasks.
const failureType = "task"

// failed answers that the attempt has failed, and with what the next attempt has to know: it follows after a pause,
// unless this was the last.
func (a *attempt) failed(why error, after time.Duration, last bool) wire.Request {
	a.beat.Tally.Open = false
	return &wire.Failed{Token: a.given.Token, Beat: a.said(), Failure: &wire.Failure{Message: bounded(why.Error()),
		Source: "vksplat", Own: &wire.ApplicationFailure{Type: failureType, Final: last, Delay: wire.SpanOf(after),
			Details: wire.PayloadsOf(bounded(fault.Hint(why)))}}}
}

// bounded cuts a text that is too long for an event of a workflow.
func bounded(s string) string {
	const most = 4000
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
