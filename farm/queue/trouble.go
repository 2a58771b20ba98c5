package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrTrouble is why nothing can be changed for now, though the server answers.
var ErrTrouble = errors.New("the farm's server cannot write to its disk")

// troubleSubject is where a server says whether it can write: JetStream itself does not answer what it cannot write. Every role may ask there, as may tokens for the
// servers of others, where nobody answers.
const troubleSubject = "$JS.API.DIRECT.GET.TROUBLE"

const askTrouble = 500 * time.Millisecond

// Trouble is what a server says of its disk.
type Trouble struct {
	Cause string   `json:"cause,omitempty"` // why it cannot write, "" where it can
	Well  Duration `json:"well,omitempty"`  // how long it has been able to again, 0 where it always was
}

// ServeTrouble answers whoever asks whether the server can write.
func ServeTrouble(nc *nats.Conn, look func() Trouble) error {
	_, err := nc.Subscribe(troubleSubject, func(m *nats.Msg) {
		if raw, err := json.Marshal(look()); err == nil {
			_ = m.Respond(raw) // whoever asked asks again
		}
	})
	return err
}

// trouble asks the server whether it can write. One that does not say so can.
func (q *Queue) trouble(ctx context.Context) (t Trouble) {
	if !q.nc.IsConnected() {
		return t
	}
	ctx, cancel := context.WithTimeout(ctx, askTrouble)
	defer cancel()
	if msg, err := q.nc.RequestWithContext(ctx, troubleSubject, nil); err == nil {
		_ = json.Unmarshal(msg.Data, &t) // an answer of another kind says nothing
	}
	return t
}

// asked is the error of a request that failed for now: what the server says of it, or err.
func (q *Queue) asked(ctx context.Context, err error) error {
	if last := q.turnedAway.Load(); last != nil && !q.nc.IsConnected() && time.Since(*last) < refusedFresh {
		return errors.Join(errTurnedAway, err)
	}
	if errors.Is(err, nats.ErrDisconnected) || ctx.Err() != nil {
		return err
	}
	if t := q.trouble(ctx); t.Cause != "" {
		return fmt.Errorf("%w: %s", ErrTrouble, t.Cause)
	}
	return err
}

// unanswered is a request that was given up while it might still have succeeded.
type unanswered struct {
	what  string
	cause error // why it was given up
	last  error // what the last try came to
}

// Error is in plain words where the server is to blame, and names the request where somebody did not want to wait.
func (e *unanswered) Error() string {
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(e.last, kind) })
	}
	switch {
	case is(ErrTrouble):
		return e.last.Error()
	case is(errTurnedAway):
		return errTurnedAway.Error()
	case is(nats.ErrNoServers, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection):
		return "the farm's server cannot be reached"
	case !errors.Is(e.cause, context.DeadlineExceeded):
		return fmt.Sprintf("%s: %v", e.what, e.cause)
	case is(context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders):
		return "the farm's server does not answer"
	}
	return e.last.Error()
}

func (e *unanswered) Unwrap() []error { return []error{e.cause, e.last} }

// well is for how long owners have been able to show that they live, as the server said last.
type well struct {
	lock sync.Mutex
	at   time.Time
	long time.Duration
}

const wellFor = time.Second // after which the server is asked again: many owners may be silent at once

// writable is for how long owners have been able to show that they live.
func (q *Queue) writable(ctx context.Context) time.Duration {
	q.well.lock.Lock()
	defer q.well.lock.Unlock()
	if time.Since(q.well.at) < wellFor {
		return q.well.long
	}
	switch t := q.trouble(ctx); {
	case t.Cause != "":
		q.well.long = 0
	case t.Well > 0:
		q.well.long = time.Duration(t.Well)
	default:
		q.well.long = math.MaxInt64
	}
	q.well.at = time.Now()
	return q.well.long
}
