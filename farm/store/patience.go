package store

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Waits before new tries: 0.1 s doubling, ten tries, one minute together. Shares and servers come back within that, or
// are down.
const (
	tries      = 10
	firstPause = 100 * time.Millisecond
)

const (
	waitTold    = time.Second      // between two words to who listens
	leaveWithin = 10 * time.Second // that a store may be away, or a request silent, where this process is to end
)

// patience is how long a root waits for what is away.
type patience struct {
	fault   func(op, key string) error // of tests: an error in place of the operation
	pause   time.Duration              // before the first new try
	waits   func(cause error)          // see Attend
	leaving context.Context            // once it has ended, this process is to end
	// the last wait, if it was in vain: the store is asked once a time then, until it answers; shared by copies of a
	// root
	gaveUp *atomic.Pointer[vain]
}

// vain is a wait that was.
type vain struct {
	why     error
	leaving bool // this process was to end: nobody asks any more
}

func newPatience() patience {
	return patience{pause: firstPause, waits: func(error) {}, leaving: context.Background(),
		gaveUp: &atomic.Pointer[vain]{}}
}

// attended is a patience for Attend.
func (p *patience) attended(leaving context.Context, waits func(cause error)) patience {
	return patience{p.fault, p.pause, waits, leaving, &atomic.Pointer[vain]{}}
}

// isKey says whether a key can be one on every system.
func isKey(key string) bool { return fs.ValidPath(key) && !strings.ContainsAny(key, "\\\x00") }

// try does something with a key again while it fails as what is away for a moment.
func (p *patience) try(op, key string, away func(error) bool, do func() error) error {
	if !isKey(key) {
		return &fs.PathError{Op: op, Path: key, Err: fs.ErrInvalid}
	}
	return p.again(tries, away, func() error {
		if p.fault != nil {
			if err := p.fault(op, key); err != nil {
				return err
			}
		}
		return do()
	})
}

// again does something up to so many times while it fails as what is away for a moment. Those who wait for the same do
// not all come back at once.
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

// wait pauses before a new try of what began at a time, and says whether there should be one.
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

// bound is the context of a request that may take so long, or less where this process is to end.
func (p *patience) bound(most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	heard := context.AfterFunc(p.leaving, func() { time.AfterFunc(leaveWithin, cancel) })
	return ctx, func() { heard(); cancel() }
}
