package parallel

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimited makes every call once, a few at a time, and none after one has failed.
func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, running, most atomic.Int32
		call := func(int) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
				m = most.Load()
			}
			calls.Add(1)
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}
		began := time.Now()
		if err := Limited(10, 4, call); err != nil || calls.Load() != 10 || most.Load() != 4 ||
			time.Since(began) != 3*time.Second {
			t.Errorf("%v: %d calls, %d at once, %v", err, calls.Load(), most.Load(), time.Since(began))
		}
		calls.Store(0)
		early, late := errors.New("early"), errors.New("late")
		err := Limited(100, 2, func(i int) error {
			_ = call(i)
			switch i {
			case 4:
				time.Sleep(time.Millisecond)
				return early
			case 5:
				return late
			}
			return nil
		})
		if err != early || calls.Load() != 6 {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	})
}
