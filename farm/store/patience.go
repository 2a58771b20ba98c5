package store

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Retries: ten tries with pauses that double from 0.1 s, one minute in all. Shares and servers come back within that,
// or are down.
const (
	tries      = 10
	firstPause = 100 * time.Millisecond
)

const (
	waitTold    = time.Second      // between two calls of waits
	leaveWithin = 10 * time.Second // limit of retries and silent requests once leaving has ended
)

// patience retries operations while the store is away. It is the only place that does.
type patience struct {
	fault   func(op, key string) error // injected by tests
	pause   time.Duration              // before the first retry
	waits   func(cause error)          // see Attend
	leaving context.Context            // see Attend
	// the last wait, if it was in vain: no retries until the store answers; shared by copies of a root
	gaveUp *atomic.Pointer[vain]
}

// vain is a failed wait.
type vain struct {
	why     error
	leaving bool // leaving had ended: no more tries at all
}

func newPatience() patience {
	return patience{pause: firstPause, waits: func(error) {}, leaving: context.Background(),
		gaveUp: &atomic.Pointer[vain]{}}
}

// attended is the patience of an attended root.
func (p *patience) attended(leaving context.Context, waits func(cause error)) patience {
	return patience{p.fault, p.pause, waits, leaving, &atomic.Pointer[vain]{}}
}

// isKey reports whether a key is valid on every system.
func isKey(key string) bool { return fs.ValidPath(key) && !strings.ContainsAny(key, "\\\x00") }

// check refuses invalid keys, and injects the faults of tests.
func (p *patience) check(op, key string, away func(error) bool) error {
	if !isKey(key) {
		return &fs.PathError{Op: op, Path: key, Err: fs.ErrInvalid}
	}
	if p.fault == nil {
		return nil
	}
	return p.again(tries, away, func() error { return p.fault(op, key) })
}

// again repeats an operation while the store is away. Pauses are random, so that clients do not return all at once.
func (p *patience) again(times int, away func(error) bool, do func() error) error {
	if v := p.gaveUp.Load(); v != nil && v.leaving {
		return v.why
	}
	pause, began := p.pause, time.Now()
	for try := 1; ; try++ {
		err := do()
		if err == nil || !away(err) {
			if p.gaveUp.Swap(nil) != nil || try > 1 {
				p.waits(nil)
			}
			return err
		}
		if try >= times || !p.wait(pause+rand.N(pause/2+1), began, err) {
			p.gaveUp.Store(&vain{err, p.leaving.Err() != nil})
			return err
		}
		pause *= 2
	}
}

// wait pauses before a retry, and reports whether to make it.
func (p *patience) wait(pause time.Duration, began time.Time, cause error) bool {
	for end := time.Now().Add(pause); ; {
		if p.gaveUp.Load() != nil || p.leaving.Err() != nil && time.Since(began) >= leaveWithin {
			return false
		}
		left := time.Until(end)
		if left <= 0 {
			return true
		}
		p.waits(cause)
		time.Sleep(min(left, waitTold))
	}
}

// bound limits the time of a request, further once leaving has ended.
func (p *patience) bound(most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	heard := context.AfterFunc(p.leaving, func() { time.AfterFunc(leaveWithin, cancel) })
	return ctx, func() { heard(); cancel() }
}
