package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNotTraining says that a trainer was closed before it ran a function given to Interludes.Do.
var ErrNotTraining = errors.New("training has ended")

// Interludes runs functions of other goroutines between two steps of a trainer: to draw the model, for instance. The
// bytes of training do not change, its time does.
type Interludes struct {
	calls chan interlude

	mu      sync.Mutex
	release chan struct{} // closed when training may continue; nil: it is not held
	still   bool          // training is held, and nothing is in flight
	lost    time.Duration // see Lost
	idle    time.Time     // when the device last stopped training; zero: it trains

	closed chan struct{}
	once   sync.Once // for closed
}

type interlude struct {
	do   func() error
	done chan error // one value
}

// NewInterludes returns interludes for one trainer, see TrainerOptions.
func NewInterludes() *Interludes {
	return &Interludes{calls: make(chan interlude), closed: make(chan struct{})}
}

// Do runs f on the goroutine that trains, between two units when the device is idle, and returns f's error, which does
// not disturb training. Between two calls of RunTo it waits, until ctx ends or the trainer is closed.
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

// Hold stops training after the step, until Release. Do still runs its functions; the time does not count as training.
func (i *Interludes) Hold() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.release == nil {
		i.release = make(chan struct{})
	}
}

// Release lets training continue after Hold.
func (i *Interludes) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.release != nil {
		close(i.release)
		i.release = nil
	}
}

func (i *Interludes) Held() bool { return i.held() != nil }

// Still reports whether training has stopped because it is held.
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

// Lost returns how long the device has not trained because of Do so far: each time from the end of the units in flight
// to the submission of the next one. The wait for the units in flight is no loss: the device is as busy as ever.
func (i *Interludes) Lost() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.idle.IsZero() {
		return i.lost
	}
	return i.lost + time.Since(i.idle)
}

// moves notes that the device trains again, and whether the time since it stopped is lost. It does nothing if the
// device had not stopped, or there are no interludes.
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

func (i *Interludes) end() { i.once.Do(func() { close(i.closed) }) }

// serve runs what Do was given, if anything, and waits while training is held. Before that, wait makes the device idle;
// serve returns its error. held is how long training was held.
func (i *Interludes) serve(ctx context.Context, wait func() error) (held time.Duration, err error) {
	if i == nil {
		return 0, nil
	}
	release := i.held()
	if release == nil {
		select {
		case call := <-i.calls:
			return 0, i.run(call, wait)
		default:
			return 0, nil
		}
	}
	if err := wait(); err != nil {
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
			if err := i.run(call, wait); err != nil {
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

// run runs one call.
func (i *Interludes) run(call interlude, wait func() error) error {
	if err := wait(); err != nil {
		call.done <- err
		return err
	}
	i.mu.Lock()
	i.idle = time.Now()
	i.mu.Unlock()
	call.done <- call.do()
	return nil
}
