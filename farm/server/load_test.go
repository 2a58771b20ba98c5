package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// TestLoad submits, lists, runs and cancels a job of many tasks, and prints what each took. VKSPLAT_LONG=1 takes 10,000.
func TestLoad(t *testing.T) {
	n := 10_000
	if os.Getenv(longVariable) != "1" {
		t.Parallel() // the times of so few tell nothing
		n = 100
	}
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Log = nil
	options.Farm.Lease = queue.Duration(30 * time.Second)
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := &farm{t: t, server: s, user: connect(t, s, Submit)}
	ctx := t.Context()
	plan := queue.JobPlan{Name: "many", Document: make([]byte, 64<<10)}
	for i := range n {
		plan.Tasks = append(plan.Tasks, queue.Task{Name: fmt.Sprintf("fly/%06d", i), MaxAttempts: 4, Backoff: 10 * time.Second})
	}
	timed := func(what string, do func() error) {
		t.Helper()
		start := time.Now()
		f.must(do())
		t.Logf("%-28s %10v, %d MiB resident", what, time.Since(start).Round(10*time.Microsecond), resident())
	}
	timed("nothing", func() error { return nil })
	timed(fmt.Sprintf("submit %d", n), func() error { return f.user.Submit(ctx, plan) })
	timed("show", func() error { _, _, err := f.user.Show(ctx, "many"); return err })
	runAll(f, t, n)
	timed("list, all entries there", func() error { _, err := f.user.List(ctx); return err })
	timed("show", func() error { _, _, err := f.user.Show(ctx, "many"); return err })
	timed("redo all", func() error { return f.user.Retry(ctx, "many", queue.Selection{Redo: true}) })
	timed("list", func() error { _, err := f.user.List(ctx); return err })
	timed("cancel", func() error { return f.user.Cancel(ctx, "many", queue.Selection{}) })
	timed("cancel, until it has ended", func() error { _, err := f.user.Wait(ctx, "many"); return err })
	latency(f, t)
}

// runAll lets four workers do all tasks, which take no time.
func runAll(f *farm, t *testing.T, n int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	var group sync.WaitGroup
	for i := range 4 {
		w := f.join(fmt.Sprintf("node%d", i))
		group.Go(func() {
			_ = work(ctx, w, queue.Slot{}, func(*queue.Lease) (string, error) { return "manifest", nil })
		})
	}
	f.ends("many", queue.JobSucceeded)
	took := time.Since(start)
	t.Logf("%d tasks of no work, 4 workers: %v, %v each, %d MiB resident", n, took.Round(time.Millisecond), (took / time.Duration(n)).Round(time.Microsecond), resident())
	cancel()
	group.Wait()
}

// latency measures from the submission of a job of one task to its claim by a worker that waits.
func latency(f *farm, t *testing.T) {
	w := f.join("waits")
	var took []time.Duration
	for i := range 100 {
		claimed, done := make(chan time.Time, 1), make(chan struct{})
		go func() {
			defer close(done)
			lease, err := w.Claim(t.Context(), queue.Slot{})
			claimed <- time.Now()
			if err == nil {
				err = lease.Succeed(t.Context(), "m")
			}
			if err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		f.submit(queue.JobPlan{Name: fmt.Sprintf("one-%d", i), Tasks: []queue.Task{{Name: "t"}}})
		took = append(took, (<-claimed).Sub(start))
		<-done
	}
	slices.Sort(took)
	t.Logf("from submission to claim: p50 %v, p99 %v", took[50].Round(10*time.Microsecond), took[98].Round(10*time.Microsecond))
	if took[50] > patience/10 {
		t.Error("waiting workers are not called")
	}
}

// resident is the memory of this process in MiB: server, submitter and workers together; 0 where the system does not say.
func resident() int {
	runtime.GC()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(text)[0])
			return kib >> 10
		}
	}
	return 0
}
