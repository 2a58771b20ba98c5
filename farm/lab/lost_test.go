//go:build unix

package lab

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/farm/spec"
	"vksplat/farm/worker"
	"vksplat/scene"
)

// TestLostDevices has a worker that nobody else stands in for end with an error once its only device is lost for good: its job would wait for ever.
func TestLostDevices(t *testing.T) {
	dir := t.TempDir()
	program, roots := filepath.Join(dir, "run-task"), filepath.Join(dir, "roots.toml")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "in"), 0o777), os.Mkdir(filepath.Join(dir, "out"), 0o777),
		os.WriteFile(program, []byte("#!/bin/sh\necho vksplat: error: the device was lost >&2\nexit 75\n"), 0o777),
		os.WriteFile(roots, []byte("inputs = \""+dir+"/in\"\noutputs = \""+dir+"/out\"\n"), 0o666)); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Options{Dir: filepath.Join(dir, "farm"), Listen: "127.0.0.1:0", Farm: queue.Farm{Lease: queue.Duration(2 * time.Second)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	job, err := spec.Parse("job", []byte("version = 1\nname = \"j\"\n[retry]\nmax_attempts = 9\nbackoff = \"10ms\"\n[[task]]\nkind = \"train\"\nsource = \"scan\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := worker.JobPlan(job, "ann")
	if err == nil {
		err = s.Queue().Submit(t.Context(), plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := worker.Options{Queue: s.Queue(), Node: "one", Devices: []worker.Device{{ID: "uuid", Name: "GPU"}}, Others: 1, Roots: func(string) string { return roots }, Work: filepath.Join(dir, "work"),
		Locks: filepath.Join(dir, "locks"), Command: []string{program}, Alone: true, Lost: "the device was lost", CoolDown: time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(t.Context(), o) }()
	select {
	case err := <-ended:
		var e *scene.Error
		if !errors.Is(err, scene.ErrTryAgain) || !strings.Contains(err.Error(), "every device was lost") || !errors.As(err, &e) || e.Hint == "" {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the worker goes on without a device")
	}
	if _, tasks, err := s.Queue().Show(t.Context(), "j"); err != nil || tasks[0].State.Ended() {
		t.Errorf("the task is another try away from its end: %v, %v", tasks[0].State, err)
	}
}
