package vk

import (
	"sync"
	"sync/atomic"
	"time"
)

// timeline is the semaphore whose value is the last ticket that is done.
type timeline struct {
	dev       *Device
	semaphore uint64
	submitted atomic.Uint64 // last ticket given out
	done      atomic.Uint64
	// held shared by those who look at the timeline or wait for it, alone while the timeline is ended, and by signal
	mu sync.RWMutex
}

// reach notes that the timeline has got to n.
func (t *timeline) reach(n uint64) {
	for {
		old := t.done.Load()
		if n <= old || t.done.CompareAndSwap(old, n) {
			return
		}
	}
}

// read returns the timeline's value. A closed device reports device-lost, as its work may not have been done.
func (t *timeline) read() (uint64, Result) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.semaphore == 0 || t.dev.lost.Load() {
		return 0, deviceLost
	}
	return t.dev.shim.counter(t.semaphore)
}

// signal sets the semaphore of a gate to n. The validation layer (1.3.239) must not see a value on the timeline that a
// signal brought about whose call has not returned: it waits for the end of that call with the lock that the call
// needs, for 10 seconds.
func (t *timeline) signal(semaphore, n uint64) Result {
	if t.dev.in.validate {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	return t.dev.shim.signal(semaphore, n)
}

// wait waits until the timeline has reached n. With the validation layer it lets signals in between.
func (t *timeline) wait(n uint64) Result {
	for {
		if r := t.waitOnce(n); r != timeout {
			return r
		}
	}
}

func (t *timeline) waitOnce(n uint64) Result {
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch {
	case t.semaphore == 0:
		return deviceLost // as in read
	case t.dev.in.validate:
		return t.dev.shim.wait(t.semaphore, n, uint64(time.Millisecond))
	}
	return t.dev.shim.wait(t.semaphore, n, ^uint64(0))
}
