package store

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"
)

// Waits before new tries: 0.1 s doubling, ten tries, one minute together. Shares and servers come back within that, or are down.
const (
	tries      = 10
	firstPause = 100 * time.Millisecond
)

// patience is how long a root waits for what is away.
type patience struct {
	fault func(op, key string) error // of tests: an error in place of the operation
	pause time.Duration              // before the first new try
}

// try does something with a key again while it fails as what is away for a moment.
func (p *patience) try(op, key string, away func(error) bool, do func() error) error {
	if !fs.ValidPath(key) || strings.ContainsAny(key, "\\\x00") {
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

// again does something up to so many times while it fails as what is away for a moment. Those who wait for the same do not all come back at once.
func (p *patience) again(times int, away func(error) bool, do func() error) error {
	pause := p.pause
	for try := 1; ; try++ {
		err := do()
		if try >= times || err == nil || !away(err) {
			return err
		}
		time.Sleep(pause + rand.N(pause/2+1))
		pause *= 2
	}
}
