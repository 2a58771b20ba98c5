package parallel

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls f(0) ... f(n-1) on all cores and returns when all are done.
// f must write to places that belong to its index alone, so that the order of
// calls shows nowhere.
func For(n int, f func(i int)) {
	Workers(n, runtime.GOMAXPROCS(0), func() func(i int) { return f })
}

// Workers is For with a limit of goroutines. Each has an f of its own, which may keep memory from call to call.
func Workers(n, most int, worker func() func(i int)) {
	workers := min(n, most, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		f := worker()
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			f := worker()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Limited calls f(0) ... f(n-1), at most atOnce at a time, for work that waits rather than computes. It begins no
// call after one has failed, and returns the error of the lowest index once all calls have returned.
func Limited(n, atOnce int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !failed.Load(); i = int(next.Add(1)) - 1 {
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}
