package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/worker"
)

// heard is what a command prints while a test looks.
type heard struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.text.String()
}

// TestSecondSubmitHearsTheEnd has the process that does a job end before the one that watches hears of the job's end: what it leaves says how that was.
func TestSecondSubmitHearsTheEnd(t *testing.T) {
	for _, succeeds := range []bool{true, false} {
		t.Run(map[bool]string{true: "succeeded", false: "killed"}[succeeds], func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_STATE_HOME", dir)
			job, err := spec.Parse("job.toml", []byte(wordsJob))
			if err != nil {
				t.Fatal(err)
			}
			run, err := newLocalRun(job.Name, filepath.Join(dir, "out"), job.Hash())
			if err == nil {
				err = run.prepare(store.Roots{"outputs": {URL: run.out}})
			}
			if err != nil {
				t.Fatal(err)
			}
			free, err := lockFile(run.lock())
			if err != nil {
				t.Fatal(err)
			}
			s, err := server.Start(t.Context(), server.Options{Dir: run.server(), Listen: "127.0.0.1:0", Farm: queue.Farm{Lease: queue.Duration(localLease)}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			plan, err := worker.JobPlan(job, "ann")
			if err == nil {
				err = s.Queue().Submit(t.Context(), plan)
			}
			if err != nil {
				t.Fatal(err)
			}
			asks := make(chan bool, 1)
			nc, err := s.Connect("listener")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_, err = nc.Subscribe("$JS.API.DIRECT.GET.KV_ctl.$KV.ctl.farm", func(*nats.Msg) { // what everybody asks who has connected
				select {
				case asks <- true:
				default:
				}
			})
			if err := errors.Join(err, nc.Flush()); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr heard
			ended := make(chan error, 1)
			go func() { ended <- newApp(nil, &stdout, &stderr).watchOther(run) }()
			select {
			case <-asks:
			case <-time.After(time.Minute):
				t.Fatalf("nothing is watched: %s %s", &stdout, &stderr)
			}
			time.Sleep(500 * time.Millisecond) // it watches
			if !strings.Contains(stderr.String(), "another process does this job") {
				t.Error(&stderr)
			}
			s.Close()
			if succeeds {
				if err := run.forget(); err != nil {
					t.Fatal(err)
				}
			}
			free()
			err = <-ended
			if succeeds && (err != nil || !strings.Contains(stdout.String(), "job garden: succeeded\nresults: "+run.results()+"\n")) {
				t.Errorf("%v, %s", err, &stdout)
			}
			if !succeeds && (err == nil || !strings.Contains(err.Error(), "has ended")) {
				t.Errorf("of a process that was killed: %v, %s", err, &stdout)
			}
			_ = os.Remove(run.dir)
		})
	}
}

// TestSubmitWithoutWorker does a job here where the worker cannot begin: the command says so, and does not wait for it.
func TestSubmitWithoutWorker(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Chdir(t.TempDir())
	locks, err := stateFolder(lockFolder)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(locks), 0o777)
	}
	if err == nil {
		err = os.WriteFile(locks, nil, 0o666) // where a folder has to be
	}
	if err == nil {
		err = os.WriteFile("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, errs := make(chan int, 1), &heard{}
	go func() {
		code <- run([]string{"farm", "submit", "job.toml", "--local", "--devices", "none"}, &heard{}, errs)
	}()
	select {
	case got := <-code:
		if got != exitRetry || !strings.Contains(errs.String(), "start worker: "+locks) || strings.Contains(errs.String(), "canceled") {
			t.Errorf("exit code %d, %s", got, errs)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it waits for a worker that has ended: %s", errs)
	}
}

// TestSubmitAfterKill goes on with a job whose process was killed in the task's last attempt: that does not count, and nobody waits for its lease.
func TestSubmitAfterKill(t *testing.T) {
	s, err := server.Start(t.Context(), server.Options{Dir: filepath.Join(t.TempDir(), "server"), Listen: "127.0.0.1:0", Farm: queue.Farm{Lease: queue.Duration(time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	job, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\nretry.max_attempts = 1\n[[task]]\nkind = \"demo\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := &here{app: newApp(nil, &heard{}, &heard{}), job: job}
	for attempt := 1; attempt <= 3; attempt++ {
		if err := h.submit(t.Context(), s.Queue()); err != nil {
			t.Fatal(err)
		}
		nc, err := s.Connect("worker")
		if err != nil {
			t.Fatal(err)
		}
		q, err := queue.Connect(t.Context(), nc, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := q.Join(t.Context(), queue.WorkerInfo{Node: "one", Home: "here"})
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		lease, err := w.Claim(soon, queue.Slot{})
		cancel()
		if err != nil || lease.Attempt != attempt {
			t.Fatalf("the task is not begun a %d. time: %+v, %v", attempt, lease, err)
		}
		nc.Close() // with all that is behind it
	}
}
