package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// heard keeps what a server says.
type heard struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.text.Write(p)
}

func (h *heard) times(what string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	return strings.Count(h.text.String(), what)
}

// disk wants the server of a folder to have said that its disk is full.
func (h *heard) disk(t *testing.T, dir string) {
	t.Helper()
	if h.times("cannot write to its disk") == 0 {
		text, _ := os.ReadFile(filepath.Join(dir, natsLogFile))
		t.Fatalf("the server does not see in what NATS logs that its disk is full; do the words that natsLog.Errorf looks for still stand in it?\n%s", text[max(0, len(text)-2000):])
	}
}

// fill takes all room of a disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// TestFullDisk fills the disk of a server whose workers are busy, for longer than leases last, and makes room again: what was acknowledged is there, those who ask
// hear why nothing can be changed, and the running tasks are done by who began them.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("a disk of its own is root's to make:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	said := &heard{}
	options := testOptions(t, filepath.Join(disk, "farm"))
	options.Log = slog.New(slog.NewTextHandler(said, nil))
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	users := connect(t, s, Submit)
	plan := queue.JobPlan{Name: "many", Document: []byte("doc")}
	for i := range 200 {
		plan.Tasks = append(plan.Tasks, queue.Task{Name: fmt.Sprint("t", i)})
	}
	if err := users.Submit(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var begun atomic.Int32
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	for _, node := range []string{"one", "two"} {
		w, err := connectNamed(t, s, node).Join(ctx, queue.WorkerInfo{Node: node})
		if err != nil {
			t.Fatal(err)
		}
		working.Go(func() {
			defer w.Leave()
			_ = work(ctx, w, queue.Slot{}, func(l *queue.Lease) (string, error) {
				if begun.Add(1) == 21 { // which the other worker must not take
					<-held
				}
				time.Sleep(20 * time.Millisecond)
				return "hash of " + l.Task.Name, nil
			})
		})
	}
	eventually(t, func() bool {
		status, _, err := users.Show(t.Context(), plan.Name)
		return err == nil && status.Counts[queue.Succeeded] >= 20
	})
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	impatient := dialOptions(t, s, queue.Options{Version: "test", Patience: 20 * time.Second})
	var refused error
	var acknowledged []string
	for i := 0; refused == nil; i++ { // the last block of a file takes some
		more := queue.JobPlan{Name: fmt.Sprint("more", i), Document: bytes.Repeat([]byte{'x'}, 64<<10), Tasks: []queue.Task{{Name: "t"}}}
		if refused = impatient.Submit(t.Context(), more); refused == nil {
			acknowledged = append(acknowledged, more.Name)
		}
	}
	said.disk(t, options.Dir)
	if !errors.Is(refused, queue.ErrTrouble) || !errors.Is(refused, scene.ErrTryAgain) || !strings.Contains(scene.Hint(refused), "disk") {
		t.Errorf("submit: %v, hint %q", refused, scene.Hint(refused))
	}
	if err := impatient.Cancel(t.Context(), plan.Name, queue.Selection{}); !errors.Is(err, queue.ErrTrouble) {
		t.Errorf("cancel: %v", err)
	}
	if _, tasks, err := impatient.Show(t.Context(), plan.Name); err != nil || len(tasks) != len(plan.Tasks) {
		t.Errorf("show: %d tasks, %v", len(tasks), err)
	}
	time.Sleep(3 * testLease)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return said.times("can write to its disk again") == 1 })
	release()
	waiting, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if status, err := users.Wait(waiting, plan.Name); err != nil || status.State != queue.JobSucceeded {
		t.Fatal(status, err)
	}
	_, tasks, err := users.Show(t.Context(), plan.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Entry.Attempt != 1 {
			t.Errorf("%s: attempt %d, %v", task.Name, task.Entry.Attempt, task.Entry.Failures)
		}
	}
	for _, name := range acknowledged {
		if _, _, err := users.Show(t.Context(), name); err != nil {
			t.Errorf("%s was acknowledged: %v", name, err)
		}
	}
	if n := said.times("level=ERROR"); n != 1 {
		t.Errorf("the server said %d errors:\n%s", n, said.text.String())
	}
}

// connectNamed gives the farm as a worker with a token of its own sees it.
func connectNamed(t *testing.T, s *Server, name string) *queue.Queue {
	t.Helper()
	token, err := NewToken(s.options.Dir, Work, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
	return dial(t, token)
}

// dialOptions connects with the server's own token.
func dialOptions(t *testing.T, s *Server, options queue.Options) *queue.Queue {
	t.Helper()
	token, err := queue.ReadToken(s.AdminToken())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := queue.Dial(token, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q, err := queue.Connect(t.Context(), nc, options)
	if err != nil {
		t.Fatal(err)
	}
	return q
}
