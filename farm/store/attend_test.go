package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// awayFolder is a folder that is away, for a cause, while its switch is on, and counts how often it is asked.
func awayFolder(t *testing.T, why syscall.Errno) (f *folder, away *atomic.Bool, asked *atomic.Int32) {
	f = newFolder(t, Options{})
	f.pause = firstPause
	away, asked = &atomic.Bool{}, &atomic.Int32{}
	f.fault = func(op, key string) error {
		asked.Add(1)
		if away.Load() {
			return &fs.PathError{Op: op, Path: key, Err: why}
		}
		return nil
	}
	return f, away, asked
}

// TestWaitsAreTold has a share be away, or full: whoever attends hears of it every second, and that it is back; after a
// wait in vain it is asked once a time.
func TestWaitsAreTold(t *testing.T) {
	for _, why := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT} {
		t.Run(why.Error(), func(t *testing.T) { testWaitsAreTold(t, why) })
	}
}

func testWaitsAreTold(t *testing.T, why syscall.Errno) {
	f, away, asked := awayFolder(t, why)
	synctest.Test(t, func(t *testing.T) {
		var told []error
		last, longest := time.Now(), time.Duration(0)
		r := f.Attend(context.Background(), func(cause error) {
			told, longest, last = append(told, cause), max(longest, time.Since(last)), time.Now()
		})
		ask := func() error { return r.Put("a", func(io.Writer) error { return nil }) }
		away.Store(true)
		time.AfterFunc(5*time.Second, func() { away.Store(false) })
		if err := ask(); err != nil || len(told) < 5 || told[len(told)-1] != nil || !errors.Is(told[0], why) {
			t.Errorf("%v, told %v", err, told)
		}
		away.Store(true)
		told = nil
		began := time.Now()
		if err := ask(); !errors.Is(err, why) || time.Since(began) < 40*time.Second || longest > waitTold {
			t.Errorf("%v after %v, told every %v", err, time.Since(began), longest)
		}
		before := asked.Load()
		if err := ask(); !errors.Is(err, why) || asked.Load() != before+1 {
			t.Errorf("%v; it was asked %d times after a wait in vain", err, asked.Load()-before)
		}
		away.Store(false)
		told = nil
		if err := ask(); err != nil || len(told) != 1 || told[0] != nil {
			t.Errorf("%v, told %v", err, told)
		}
		away.Store(true)
		before = asked.Load()
		if err := ask(); err == nil || asked.Load()-before != tries {
			t.Errorf("%v; asked %d times once it had answered", err, asked.Load()-before)
		}
	})
}

// TestFullForLong has a share be full: once that was waited for in vain nothing else that is written is waited for,
// though what needs no room goes on, until there is some.
func TestFullForLong(t *testing.T) {
	f, full, asked := awayFolder(t, syscall.ENOSPC)
	fault := f.fault
	f.fault = func(op, key string) error {
		if op != opPut {
			return nil
		}
		return fault(op, key)
	}
	synctest.Test(t, func(t *testing.T) {
		r := f.Attend(context.Background(), func(error) {})
		put := func(want error, times int32) {
			t.Helper()
			before := asked.Load()
			if err := r.Put("a", func(io.Writer) error { return nil }); !errors.Is(err, want) ||
				asked.Load()-before != times {
				t.Errorf("%v after %d tries", err, asked.Load()-before)
			}
			if _, _, err := r.List("."); err != nil {
				t.Error(err)
			}
		}
		full.Store(true)
		put(syscall.ENOSPC, tries)
		put(syscall.ENOSPC, 1)
		put(syscall.ENOSPC, 1)
		full.Store(false)
		put(nil, 1)
		full.Store(true)
		put(syscall.ENOSPC, tries)
	})
}

// TestLeavesSoon has this process be told to end while a share is away: some ten seconds later nobody waits for that
// any more, nor asks again.
func TestLeavesSoon(t *testing.T) {
	for name, after := range map[string]time.Duration{"early": 3 * time.Second, "late": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			f, away, asked := awayFolder(t, syscall.EIO)
			away.Store(true)
			synctest.Test(t, func(t *testing.T) {
				leaving, leave := context.WithCancel(context.Background())
				defer leave()
				r := f.Attend(leaving, func(error) {})
				began := time.Now()
				time.AfterFunc(after, leave)
				_, _, err := r.List(".")
				if took := time.Since(began); !errors.Is(err, syscall.EIO) ||
					took > max(after, leaveWithin)+2*waitTold || took < leaveWithin {
					t.Errorf("%v after %v", err, took)
				}
				before := asked.Load()
				if err := r.Delete("a"); !errors.Is(err, syscall.EIO) || asked.Load() != before {
					t.Errorf("%v; it was asked again", err)
				}
			})
		})
	}
	// What answers is not given up.
	f, _, _ := awayFolder(t, syscall.EIO)
	leaving, leave := context.WithCancel(context.Background())
	leave()
	if r := f.Attend(leaving, func(error) {}); r.Claim("a") != nil {
		t.Error("a store that is there is given up")
	}
}

func TestClaim(t *testing.T) { onRoots(t, testClaim) }

// testClaim has many want the same file.
func testClaim(t *testing.T, r *rig) {
	var group sync.WaitGroup
	var got, taken atomic.Int32
	for range 12 {
		group.Go(func() {
			switch err := r.Claim("log/a"); {
			case err == nil:
				got.Add(1)
			case errors.Is(err, ErrExists):
				taken.Add(1)
			}
		})
	}
	group.Wait()
	if got.Load() != 1 || taken.Load() != 11 || !r.has("log/a") {
		t.Errorf("%d have it, %d were refused", got.Load(), taken.Load())
	}
	putText(t, r, "log/b", "x")
	if err := r.Claim("log/b"); !errors.Is(err, ErrExists) || getText(t, r, "log/b") != "x" {
		t.Errorf("%v: what is there was claimed", err)
	}
}
