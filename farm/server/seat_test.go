package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// TestNameTaken has a name be one worker's alone, until that leaves, or its folder is another's.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	join := func(home string) (*queue.Worker, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return connect(t, s, Work).Join(ctx, queue.WorkerInfo{Node: "gpu 1", Home: home, Roots: []string{"inputs"}, Lacks: []string{"ffmpeg"}, DiskFree: func() int64 { return 7 }})
	}
	first, err := join("a")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := join("b"); !errors.Is(err, queue.ErrNameTaken) || !errors.Is(err, scene.ErrTryAgain) {
		t.Fatalf("a second worker of the name: %v", err)
	}
	t.Logf("refused after %v", time.Since(began))
	nodes, err := connect(t, s, View).Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].Home != "a" || nodes[0].DiskFree != 7 || nodes[0].Lacks[0] != "ffmpeg" || nodes[0].Roots[0] != "inputs" {
		t.Errorf("%+v, %v", nodes, err)
	}
	// One that was killed left its folder.
	second, err := join("a")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Context().Done():
		if cause := context.Cause(first.Context()); !errors.Is(cause, queue.ErrNameTaken) {
			t.Error(cause)
		}
	case <-time.After(patience):
		t.Error("the worker before does not see that its name is another's")
	}
	first.Leave() // which does not take the name from who has it
	began = time.Now()
	second.Leave()
	third, err := join("c")
	if err != nil || time.Since(began) > 10*time.Second { // of one that did not leave, 15
		t.Fatalf("after the other left: %v, %v", err, time.Since(began))
	}
	third.Leave()
	if nodes, err := connect(t, s, View).Nodes(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("after all have left: %+v, %v", nodes, err)
	}
}

// TestWrongToken wants a worker with a token of another role to end with a remedy, not to wait.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, role := range []Role{View, Submit} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := connect(t, s, role).Join(ctx, queue.WorkerInfo{Node: "gpu1"})
		cancel()
		var e *scene.Error
		if !errors.Is(err, scene.ErrUsage) || !errors.As(err, &e) || e.Hint == "" || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestRefusedWorker revokes a worker's token: it ends, for whoever started it to see, but not while the server is just away.
func TestRefusedWorker(t *testing.T) {
	t.Parallel()
	options := testOptions(t, filepath.Join(t.TempDir(), "farm"))
	options.Farm.Lease = queue.Duration(time.Second)
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	token, err := NewToken(options.Dir, Work, "gpu1", 0)
	if err := errors.Join(err, s.readKeys()); err != nil {
		t.Fatal(err)
	}
	nc, err := queue.Dial(token, "gpu1")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var log bytes.Buffer
	said := &logWriter{to: &log}
	q, err := queue.Connect(t.Context(), nc, queue.Options{Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w, err := q.Join(t.Context(), queue.WorkerInfo{Node: "gpu1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	_, err = Revoke(options.Dir, "gpu1", false)
	if err := errors.Join(err, s.readKeys()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Context().Done():
		if cause := context.Cause(w.Context()); !errors.Is(cause, queue.ErrRefused) || !errors.Is(cause, scene.ErrTryAgain) {
			t.Error(cause)
		}
	case <-time.After(patience):
		t.Error("a worker whose token was revoked goes on")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := q.Nodes(ctx); err == nil || !strings.Contains(err.Error(), "refuses the token") || !strings.Contains(scene.Hint(err), "farm token") {
		t.Errorf("who asks is told: %v", err)
	}
	said.end()
	if text := log.String(); !strings.Contains(text, "refuses the token") || strings.Contains(text, "cannot be reached") {
		t.Errorf("the worker's log says %s", text)
	}
}

// TestDeclined has a task that one device of a node cannot do go to another device or node at once, not back to the first, and keeps what both said.
func TestDeclined(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Document: []byte("{}"), Tasks: []queue.Task{{Name: "a", MaxAttempts: 1}}})
	lease := f.claim("a")
	f.must(lease.Decline(t.Context(), "too small", time.Minute))
	short, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if again, err := f.worker.Claim(short, queue.Slot{Device: "cpu"}); again != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it is claimed again: %v", err)
	}
	other, err := f.worker.Claim(t.Context(), queue.Slot{Device: "gpu"})
	f.must(err)
	f.must(other.Decline(t.Context(), "pinned elsewhere", time.Millisecond))
	two := f.join("two")
	third, err := two.Claim(t.Context(), queue.Slot{Device: "cpu"})
	f.must(err)
	f.must(third.Decline(t.Context(), "no root", time.Minute))
	_, tasks, err := f.user.Show(t.Context(), "j")
	f.must(err)
	e := tasks[0].Entry
	if said, _ := json.Marshal(e.Declined); tasks[0].State != queue.Queued || e.Used != 0 || string(said) != `{"one":"pinned elsewhere","two":"no root"}` {
		t.Errorf("%s after %d attempts that count: %s", tasks[0].State, e.Used, said)
	}
	fourth, err := f.worker.Claim(t.Context(), queue.Slot{Device: "gpu"}) // whose reason was for a moment
	f.must(err)
	f.must(fourth.Verify(t.Context()))
	f.must(fourth.Succeed(t.Context(), "m"))
	_, tasks, err = f.user.Show(t.Context(), "j")
	f.must(err)
	if e := tasks[0].Entry; e.State != queue.Succeeded || e.Declined != nil {
		t.Errorf("%+v", e)
	}
}

// TestDeclinedByMany has a worker that can do a task get it from among many slots that cannot, and these not ask for it all the time.
func TestDeclinedByMany(t *testing.T) {
	f := newFarm(t)
	const slots, tasks = 12, 3
	declining, stop := context.WithCancel(t.Context())
	var declined atomic.Int64
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	for i := range slots {
		group.Go(func() {
			for {
				lease, err := f.worker.Claim(declining, queue.Slot{Device: fmt.Sprint(i)})
				if err != nil {
					return
				}
				declined.Add(1)
				_ = lease.Decline(t.Context(), "pinned elsewhere", time.Hour)
			}
		})
	}
	f.submit(queue.JobPlan{Name: "j", Document: []byte("{}"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
	for began := time.Now(); declined.Load() < slots*tasks; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%d slots declined a task", declined.Load())
		}
	}
	var answers atomic.Int64
	sub, err := f.server.nc.Subscribe("$JS.ACK.JOBS.>", func(*nats.Msg) { answers.Add(1) })
	f.must(err)
	const look = 3 * time.Second
	time.Sleep(look)
	f.must(sub.Unsubscribe())
	rate := float64(answers.Load()) / look.Seconds()
	t.Logf("%.1f messages a second", rate)
	if rate > tasks*12 { // a message is put back for a tenth of a second at least
		t.Errorf("%.0f messages a second about %d tasks that nobody can do", rate, tasks)
	}
	able := f.join("able")
	for range tasks {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		lease, err := able.Claim(ctx, queue.Slot{Device: "able"})
		cancel()
		f.must(err)
		t.Logf("%s after %v", lease.Task.Name, time.Since(began))
		f.must(lease.Succeed(t.Context(), "m"))
	}
}

// TestLeaseOfClosedConnection has a lease whose connection is closed for good, as that of a revoked worker, try its heartbeat now and then, and not without a pause.
func TestLeaseOfClosedConnection(t *testing.T) {
	f := newFarm(t)
	f.submit(queue.JobPlan{Name: "j", Tasks: []queue.Task{{Name: "a"}}})
	token, err := NewToken(f.server.options.Dir, Work, "closing", 0)
	f.must(errors.Join(err, f.server.readKeys()))
	nc, err := queue.Dial(token, "closing")
	f.must(err)
	var said strings.Builder
	log := &logWriter{to: &said}
	q, err := queue.Connect(t.Context(), nc, queue.Options{Version: "test", Log: slog.New(slog.NewTextHandler(log, nil))})
	f.must(err)
	w, err := q.Join(t.Context(), queue.WorkerInfo{Node: "closing"})
	f.must(err)
	lease, err := w.Claim(t.Context(), queue.Slot{})
	f.must(err)
	nc.Close()
	time.Sleep(2 * testLease)
	_ = lease.Handback(t.Context()) // which nobody hears
	log.end()
	const most = 2 * 3 * 5 // heartbeats, and the tries of each
	if n := strings.Count(said.String(), "lease not kept"); n == 0 || n > most {
		t.Errorf("%d heartbeats failed, want 1 to %d", n, most)
	}
}
