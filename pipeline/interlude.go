package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNotTraining says that a trainer was closed before it came to an interlude.
var ErrNotTraining = errors.New("nothing is trained any more")

// Interludes hands a trainer what others want done between its steps: pictures of the model as it is, for instance. The
// bytes of training do not change, its time does.
type Interludes struct {
	calls chan interlude

	mu      sync.Mutex
	release chan struct{} // closed when training may go on; nil: it is not held
	still   bool          // it is held, and nothing is in flight
	lost    time.Duration // see Lost
	idle    time.Time     // since when the device has done nothing else; zero: it trains

	closed chan struct{}
	once   sync.Once // for closed
}

// interlude is what somebody wants done between two units of training.
type interlude struct {
	do   func() error
	done chan error // one value
}

// NewInterludes makes the way in. It serves one trainer, see TrainerOptions.
func NewInterludes() *Interludes {
	return &Interludes{calls: make(chan interlude), closed: make(chan struct{})}
}

// Do runs f on the goroutine that trains, as soon as it is between two units and the device is idle, and returns f's
// error, which does not disturb the training. It waits while nothing is trained (between RunTo and RunTo), until ctx
// ends or the trainer is closed.
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

// Hold stops training after the step, until Release. What Do is given is done meanwhile; the time is not training's.
func (i *Interludes) Hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.release == nil {
		i.release = make(chan struct{})
	}
}

// Release lets training go on after Hold.
func (i *Interludes) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.release != nil {
		close(i.release)
		i.release = nil
	}
}

// Held reports whether training is held.
func (i *Interludes) Held() bool { return i.held() != nil }

// Still reports whether training has come to a stand because it is held: no step follows.
func (i *Interludes) Still() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.still
}

func (i *Interludes) setStill(still bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.still = still
}

func (i *Interludes) held() chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.release
}

// Lost is how long the device did nothing for the training because of Do, so far: each time from when what was in
// flight was done until the first unit after is submitted. What was in flight is training's own work, and the wait for
// it no loss: the device is as busy as ever. That it gets nothing new meanwhile shows at the end, when it stands idle
// until the first submit, as it does not where units are queued ahead: so that time counts as well.
func (i *Interludes) Lost() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.idle.IsZero() {
		return i.lost
	}
	return i.lost + time.Since(i.idle)
}

// stands says that the device does nothing but an interlude from now on.
func (i *Interludes) stands() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idle = time.Now()
}

// moves says that it trains again, and whether the time that it stood is lost. It does nothing where the device did not
// stand, or there are no interludes.
func (i *Interludes) moves(lost bool) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if lost && !i.idle.IsZero() {
		i.lost += time.Since(i.idle)
	}
	i.idle = time.Time{}
}

// end lets go of everybody who waits.
func (i *Interludes) end() { i.once.Do(func() { close(i.closed) }) }

// attend does what is waited for, if anything is, and waits while training is held. Before that, takeIn makes the
// device idle; attend returns its error. held is how long training was held.
func (i *Interludes) attend(ctx context.Context, takeIn func() error) (held time.Duration, err error) {
	if i == nil {
		return 0, nil
	}
	release := i.held()
	if release == nil {
		select {
		case call := <-i.calls:
			return 0, i.serve(call, takeIn)
		default:
			return 0, nil
		}
	}
	if err := takeIn(); err != nil {
		return 0, err
	}
	start := time.Now()
	i.setStill(true)
	defer func() {
		i.setStill(false)
		held = time.Since(start)
	}()
	for {
		select {
		case call := <-i.calls:
			if err := i.serve(call, takeIn); err != nil {
				return 0, err
			}
		case <-release:
			i.moves(false)
			return 0, nil
		case <-ctx.Done():
			return 0, nil
		}
	}
}

// serve does what is waited for.
func (i *Interludes) serve(call interlude, takeIn func() error) error {
	if err := takeIn(); err != nil {
		call.done <- err
		return err
	}
	i.stands()
	call.done <- call.do()
	return nil
}
