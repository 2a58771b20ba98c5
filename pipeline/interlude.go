package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// interlude is what somebody wants done between two units of training.
type interlude struct {
	do   func() error
	done chan error // one value
}

// ErrNotTraining says that a trainer was closed before it came to an interlude.
var ErrNotTraining = errors.New("pipeline: nothing is trained any more")

// Interludes hands a trainer what is to be done between its steps, from other goroutines: pictures of the model as it is, for instance. The bytes of training
// do not change, its time does.
type Interludes struct {
	calls  chan interlude
	closed chan struct{}
	once   sync.Once // for closed
}

// NewInterludes makes the way in. It serves one trainer, see TrainerOptions.
func NewInterludes() *Interludes {
	return &Interludes{calls: make(chan interlude), closed: make(chan struct{})}
}

// Do runs f on the goroutine that trains, as soon as it is between two units and the device is idle, and returns f's error, which does not disturb the
// training. It waits while nothing is trained (between RunTo and RunTo), until ctx ends or the trainer is closed.
func (i *Interludes) Do(ctx context.Context, f func() error) error {
	call := interlude{f, make(chan error, 1)}
	select {
	case i.calls <- call:
		return <-call.done
	case <-i.closed:
		return ErrNotTraining
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets go of everybody who waits.
func (i *Interludes) end() { i.once.Do(func() { close(i.closed) }) }

// interlude does what is waited for, if anything is.
func (t *Trainer) interlude() error {
	if t.o.Interludes == nil {
		return nil
	}
	select {
	case call := <-t.o.Interludes.calls:
		// What does not fit is grown for first: then nothing is in flight.
		for again := true; again; {
			var err error
			if again, err = t.drain(); err != nil {
				call.done <- err
				return err
			}
		}
		call.done <- call.do()
	default:
	}
	return nil
}

// Idle takes time that an interlude only waited, as while the user pauses, off what training took.
func (t *Trainer) Idle(d time.Duration) { t.elapsed -= d }
