package server

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"vksplat/farm/queue"
)

// endedServer is a server that tells of ends, with a worker and a user.
func endedServer(t *testing.T, dir string, ended func(context.Context, queue.JobStatus) error) *farm {
	t.Helper()
	options := testOptions(t, dir)
	options.Ended = ended
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	f := &farm{t: t, server: s, user: connect(t, s, Submit), admin: connect(t, s, Admin)}
	f.worker, err = connect(t, s, Work).Join(t.Context(), queue.WorkerInfo{Node: "one", Home: dir}) // the server before this one may have had one, too
	f.must(err)
	t.Cleanup(f.worker.Leave)
	return f
}

// TestEndsAreTold ends a server while it tells that a job has ended: the next one does, and none after it.
func TestEndsAreTold(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "farm")
	tries := make(chan string, 100)
	f := endedServer(t, dir, func(ctx context.Context, job queue.JobStatus) error {
		tries <- job.Name
		<-ctx.Done() // as if it were killed here
		return nil
	})
	f.submit(queue.JobPlan{Name: "j", Owner: "ann", Tasks: []queue.Task{{Name: "a"}}})
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
	if got := receive(t, tries); got != "j" {
		t.Fatal(got)
	}
	_, before, err := f.user.Show(t.Context(), "j")
	f.must(err)
	f.server.Close()

	told := make(chan queue.JobStatus, 100)
	tell := func(_ context.Context, job queue.JobStatus) error {
		told <- job
		return nil
	}
	f = endedServer(t, dir, tell)
	job := receive(t, told)
	if job.Name != "j" || job.Owner != "ann" || job.State != queue.JobSucceeded || job.Counts[queue.Succeeded] != 1 || job.Submitted.IsZero() || job.Changed.Before(before[0].Changed) {
		t.Errorf("%+v", job)
	}
	// One that is tried again ends twice.
	f.must(f.user.Retry(t.Context(), "j", queue.Selection{Redo: true}))
	f.succeed("a")
	if job := receive(t, told); job.Name != "j" {
		t.Errorf("%+v", job)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		note, err := f.server.nc.Request("$JS.API.DIRECT.GET.KV_ctl.$KV.ctl.untold.j", nil, patience)
		f.must(err)
		if note.Header.Get("Status") == "404" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what was told is still noted")
		}
	}
	f.server.Close()
	f = endedServer(t, dir, tell)
	f.submit(queue.JobPlan{Name: "k", Tasks: []queue.Task{{Name: "b"}}})
	f.succeed("b")
	if job := receive(t, told); job.Name != "k" || len(told) > 0 {
		t.Errorf("told again: %+v", job)
	}
}

// TestEndsNobodyTakes tells an address that never answers, a bounded number of times.
func TestEndsNobodyTakes(t *testing.T) {
	t.Parallel()
	f := endedServer(t, filepath.Join(t.TempDir(), "farm"), nil)
	f.server.stop() // its reconciler, which has nobody to tell
	f.server.group.Wait()
	var calls atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- f.server.queue.Reconcile(ctx, queue.ReconcileOptions{Again: time.Millisecond, Ended: func(context.Context, queue.JobStatus) error {
			calls.Add(1)
			return errors.New("no answer")
		}})
	}()
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	f.succeed("a")
	f.ends("j", queue.JobSucceeded)
	const most = 36
	for end := time.Now().Add(patience); calls.Load() < most && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(200 * time.Millisecond)
	if n := calls.Load(); n != most {
		t.Errorf("tried %d times, want %d", n, most)
	}
	cancel()
	<-done
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("nothing is told")
	}
	return v
}
