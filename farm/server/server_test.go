package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"vksplat/farm/lab"
	"vksplat/farm/queue"
	"vksplat/scene"
)

const (
	testLease    = 2 * time.Second
	patience     = time.Minute  // for machines that do much else
	longest      = 2 * patience // of a test
	longVariable = "VKSPLAT_LONG"
)

// bounded ends all tests where this one takes too long, with what every goroutine does: a wait without an end names itself.
func bounded(t *testing.T) {
	most := longest
	if os.Getenv(longVariable) == "1" {
		most *= 10
	}
	timer := time.AfterFunc(most, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s takes longer than %v", t.Name(), most))
	})
	t.Cleanup(func() { timer.Stop() })
}

// testing servers have a short lease, and a log that only failed tests show.
func testOptions(t *testing.T, dir string) Options {
	t.Helper()
	bounded(t)
	return Options{Dir: dir, Listen: "127.0.0.1:0", Farm: queue.Farm{Lease: queue.Duration(testLease)}, Version: "test", Log: testLog(t)}
}

func testLog(t *testing.T) *slog.Logger {
	w := &logWriter{to: t.Output()}
	t.Cleanup(func() { w.end() })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// logWriter is a log that has an end: leases that a test leaves live on, and nothing may be said to a test that is over.
type logWriter struct {
	lock sync.Mutex
	to   io.Writer
}

func (w *logWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.to.Write(p)
}

// end lets nothing more come.
func (w *logWriter) end() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.to = io.Discard
}

func startServer(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), testOptions(t, filepath.Join(t.TempDir(), "farm")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect gives a farm as the holder of a role sees it.
func connect(t *testing.T, s *Server, role Role) *queue.Queue {
	t.Helper()
	token, err := NewToken(s.options.Dir, role, string(role), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	return dial(t, token)
}

func dial(t *testing.T, token queue.Token) *queue.Queue {
	t.Helper()
	nc, err := queue.Dial(token, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q, err := queue.Connect(t.Context(), nc, queue.Options{Version: "test", Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// work is the loop of a worker with one device: claim, run, say how it went.
func work(ctx context.Context, w *queue.Worker, slot queue.Slot, run func(*queue.Lease) (manifest string, err error)) error {
	for {
		lease, err := w.Claim(ctx, slot)
		if err != nil {
			return err
		}
		manifest, err := run(lease)
		switch cause := context.Cause(lease.Context()); {
		case cause == queue.ErrLost:
			err = lease.Handback(ctx) // says ErrLost and frees what the lease holds
		case cause == queue.ErrCanceled, cause == queue.ErrDrained, cause == queue.ErrAway:
			err = lease.Handback(ctx)
		case errors.Is(err, scene.ErrData):
			err = lease.Fail(ctx, err)
		case err != nil:
			err = lease.Retry(ctx, err, 0)
		default:
			err = lease.Succeed(ctx, manifest)
		}
		if err != nil && context.Cause(lease.Context()) != queue.ErrLost {
			return err
		}
	}
}

func TestOneJob(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	users, workers := connect(t, s, Submit), connect(t, s, Work)
	w, err := workers.Join(t.Context(), queue.WorkerInfo{Node: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- work(ctx, w, queue.Slot{Device: "cpu"}, func(l *queue.Lease) (string, error) {
			l.Progress(1, 1, "")
			return "hash of " + l.Task.Name, l.Verify(ctx)
		})
	}()
	plan := queue.JobPlan{Name: "three scenes.1", Owner: "ann", Document: []byte("doc"), Tasks: []queue.Task{{Name: "a"}, {Name: "b"}, {Name: "c", Needs: []int{0, 1}}}}
	start := time.Now()
	if err := users.Submit(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	status, err := users.Wait(t.Context(), plan.Name)
	if err != nil || status.State != queue.JobSucceeded {
		t.Fatal(status, err)
	}
	t.Log("took", time.Since(start))
	_, tasks, err := users.Show(t.Context(), plan.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.State != queue.Succeeded || task.Entry.Manifest != "hash of "+task.Name || task.Entry.Attempt != 1 {
			t.Errorf("%+v", task)
		}
	}
	cancel()
	<-done
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := lab.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
