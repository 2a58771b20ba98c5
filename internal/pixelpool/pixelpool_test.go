package pixelpool

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestPoolOfAllCores gives memory back on many cores and wants all of it again on one; what nobody takes is collected.
func TestPoolOfAllCores(t *testing.T) {
	const n, size = 16, PoolBytes + 4321 // a length of this test's own
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	percent := debug.SetGCPercent(-1)
	given := make([]*uint8, n)
	var ready, wait sync.WaitGroup
	ready.Add(n)
	for i := range n {
		wait.Go(func() {
			pix := New(size)
			given[i] = &pix[0]
			ready.Done()
			ready.Wait() // until all have theirs
			Free(pix)
		})
	}
	wait.Wait()
	for range n {
		if pix := New(size); !slices.Contains(given, &pix[0]) {
			t.Error("memory was allocated while there was some")
		}
	}
	Free(make([]uint8, size))
	debug.SetGCPercent(percent)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		pixels.mu.Lock()
		left := len(pixels.free[size])
		pixels.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("memory that nobody takes is kept")
		}
	}
}
