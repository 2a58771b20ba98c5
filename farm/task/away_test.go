//go:build unix

package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/store/s3test"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	must "vksplat/internal/musttest"
)

// inBucket has the results of a farm go to a bucket.
func (f *farm) inBucket() (s *s3test.Server, outputs store.Options) {
	s = s3test.New("lab")
	f.t.Cleanup(s.Close)
	f.t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	f.t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	return s, store.Options{URL: "s3://lab", Endpoint: s.URL}
}

// isResult says whether a request writes results.
func isResult(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/out/")
}

// TestStoreAway has the store be away when results are there: the device is said to be free before it is waited for,
// all that is said of it comes as progress and in the log, and the results go up once it is back.
func TestStoreAway(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	s, outputs := f.inBucket()
	o := f.options(0, 1, "a")
	o.Roots["outputs"] = outputs
	var away atomic.Bool
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		if isResult(r) && away.Load() {
			s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
			return true
		}
		return false
	})
	away.Store(true)
	var said []Progress
	told := 0
	o.Report = func(p Progress) {
		said = append(said, p)
		if strings.HasPrefix(p.Message, "waiting for the store: ") {
			if told++; told == 3 {
				away.Store(false)
			}
		}
	}
	must.Get(Run(t.Context(), o))(t)
	var free, waits int
	for i, p := range said {
		switch {
		case p.Free && free == 0:
			free = i
			if waits > 0 {
				t.Errorf("the device is free only after the store was waited for: %+v", said)
			}
		case strings.HasPrefix(p.Message, "waiting for the store: "):
			waits++
			if !strings.Contains(p.Message, "SlowDown") || !p.Free || !p.Away {
				t.Errorf("%+v", p)
			}
		}
	}
	if free == 0 || waits < 2 || said[len(said)-1].Message != "done" || said[len(said)-1].Away {
		t.Errorf("free at %d, %d waits: %+v", free, waits, said)
	}
	if log := string(s.Load("job/train/log/a00001.log")); !strings.Contains(log, "waiting for the store: SlowDown") {
		t.Errorf("the log says nothing of it: %s", log)
	}
}

// TestLogWaits has a child end while its log goes up to a store that does not answer: its device is free all the same,
// and the log is there in the end.
func TestLogWaits(t *testing.T) {
	defer func(before time.Duration) { logEvery = before }(logEvery)
	logEvery = time.Millisecond
	f := newFarm(t, `checkpoint_every = "1h"`)
	sends := filepath.Join(f.top, "sends")
	t.Setenv(fakeVariable, waitsFor+sends)
	s, outputs := f.inBucket()
	o := f.options(0, 1, "a")
	o.Roots["outputs"] = outputs
	var once sync.Once
	free := make(chan struct{})
	s.SetFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/log/") || r.ContentLength == 0 {
			return false
		}
		_ = os.WriteFile(sends, nil, 0o666) // without it the training never ends
		select {
		case <-free:
		case <-time.After(20 * time.Second):
			t.Error("the device is held until the log is there")
		}
		return false
	})
	o.Report = func(p Progress) {
		if p.Free {
			once.Do(func() { close(free) })
		}
	}
	must.Get(Run(t.Context(), o))(t)
	if log := string(s.Load("job/train/log/a00001.log")); !strings.Contains(log, "went on from 0") {
		t.Errorf("the log is not there: %s", log)
	}
}

// TestCheckpointWaits says of a training that goes on that its checkpoint does not go up.
func TestCheckpointWaits(t *testing.T) {
	f := newFarm(t, `checkpoint_every = "1h"`)
	told := filepath.Join(f.top, "told")
	t.Setenv(fakeVariable, waitsFor+told)
	s, outputs := f.inBucket()
	o := f.options(0, 1, "a")
	o.Roots["outputs"] = outputs
	var refused atomic.Int32
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/ckpt/") || refused.Add(1) > 2 {
			return false
		}
		s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	o.Report = func(p Progress) {
		if strings.HasPrefix(p.Message, "train; its checkpoint is waiting for the store: ") {
			_ = os.WriteFile(told, nil, 0o666) // without it the training never ends
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Run(ctx, o); err != nil {
		t.Errorf("nobody is told: %v", err)
	}
}

// TestFinishedIsNotMadeAgain has results be refused: the next attempt here commits them without a child, unless they
// were wanted anew, or are not what was made.
func TestFinishedIsNotMadeAgain(t *testing.T) {
	t.Setenv(fakeVariable, "")
	for index, kind := range []string{"train", "render"} {
		t.Run(kind, func(t *testing.T) {
			f := newFarm(t, `checkpoint_every = "1h"`)
			s, outputs := f.inBucket()
			options := func(attempt int) Options {
				o := f.options(index, attempt, "a")
				o.Roots["outputs"] = outputs
				return o
			}
			refuse := func() {
				s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
					if isResult(r) || r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/log/") {
						s3test.Fail(w, http.StatusInsufficientStorage, "XMinioStorageFull")
						return true
					}
					return false
				})
			}
			refuse()
			if _, err := Run(t.Context(), options(1)); ExitOf(err) != fault.ExitTryAgain {
				t.Fatal(err)
			}
			s.SetFault(nil)
			o := options(2)
			o.Program = "/nowhere"
			o.Selected.Driver = "10" // has no part in it
			m, err := Run(t.Context(), o)
			if err != nil || m.Attempt != 2 || m.Mixed || m.Driver != "9" {
				t.Fatalf("%+v, %v", m, err)
			}
			if log := string(s.Load("job/" + kind + "/log/a00002.log")); !strings.Contains(log, "went on from") &&
				!strings.Contains(log, "drew") {
				t.Errorf("what was said when it was made is lost: %s", log)
			}
			if left := globbed(o.Work, "*/out"); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			// Wanted anew meanwhile, or changed: a child is needed.
			root := must.Get(store.Open(outputs))(t)
			anew := func(generation int) error { return store.Outdate(root, "job/"+kind, generation) }
			must.Do(t, anew(1))
			for what, spoil := range map[string]func() error{
				"wanted anew": func() error { return anew(2) },
				"changed": func() error {
					return os.WriteFile(globbed(o.Work, "*/out/[mf]*")[0], []byte("?"),
						0o666)
				},
			} {
				refuse()
				if _, err := Run(t.Context(), options(3)); ExitOf(err) != fault.ExitTryAgain {
					t.Fatal(err)
				}
				s.SetFault(nil)
				must.Do(t, spoil())
				o = options(4)
				o.Program = "/nowhere"
				if m, err := Run(t.Context(), o); err == nil {
					t.Errorf("%s: %+v", what, m)
				}
			}
		})
	}
}

// TestOwnLogs begins attempts at one moment: each has a log of its own.
func TestOwnLogs(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	var group sync.WaitGroup
	for i := range 3 {
		o := f.options(0, 0, fmt.Sprint("work", i))
		group.Go(func() {
			if _, err := Run(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	logs := globbed(filepath.Join(f.top, "results", "job", "train", "log"), "a*.log")
	for _, name := range logs {
		if data, err := os.ReadFile(name); err != nil || strings.Count(string(data), "went on from") != 1 {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if len(logs) != 3 {
		t.Errorf("three attempts have the logs %q", logs)
	}
}

// TestGivesUpSoon ends a run whose store is away for good: it hands the results to the next attempt here.
func TestGivesUpSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	s, outputs := f.inBucket()
	o := f.options(0, 1, "a")
	o.Roots["outputs"] = outputs
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		if isResult(r) {
			s3test.Fail(w, http.StatusServiceUnavailable, "SlowDown")
		}
		return isResult(r)
	})
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var began atomic.Int64
	o.Report = func(p Progress) {
		if strings.HasPrefix(p.Message, "waiting for the store") && began.CompareAndSwap(0, time.Now().UnixNano()) {
			end(ErrCanceled)
		}
	}
	_, err := Run(ctx, o)
	if took := time.Since(time.Unix(0, began.Load())); !errors.Is(err, ErrCanceled) ||
		ExitOf(err) != fault.ExitInterrupted || took > 30*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	o.Attempt++
	s.SetFault(nil)
	o.Program, o.Report = "/nowhere", nil
	if m, err := Run(t.Context(), o); err != nil || m.Attempt != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestTidy leaves what an attempt leaves that is killed right behind its commit: the next one removes it, unless a
// process works there.
func TestTidy(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	o := f.options(0, 1, "a")
	must.Get(Run(t.Context(), o))(t)
	work, lock := workFolder(o.Work, o.Job, &o.Plan.Tasks[0], o.Plan.Hash(0))
	checkpoint := filepath.Join(f.top, "results", "job", "train", "ckpt", "a00001")
	for _, dir := range []string{filepath.Join(work, outName), checkpoint} {
		must.Do(t, errors.Join(os.MkdirAll(dir, 0o777),
			os.WriteFile(filepath.Join(dir, "left"), nil, 0o666)))
	}
	unlock := must.Get(lockfile.Wait(t.Context(), lock, lockfile.Exclusive))(t)
	for _, want := range []int{1, 0} {
		must.Get(Run(t.Context(), o))(t)
		if n := len(globbed(work, "*")); n != want || len(globbed(checkpoint, "*")) > 0 {
			t.Errorf("%d are left in the work folder, want %d; checkpoints %q", n, want, globbed(checkpoint, "*"))
		}
		if want == 1 {
			unlock()
		}
	}
}

// TestWithoutLocks has a task say that its work folder's file system has no locks, once, and work.
func TestWithoutLocks(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	defer func(before func(string) error) { locks = before }(locks)
	locks = func(path string) error { return &os.PathError{Op: "lock", Path: path, Err: syscall.ENOLCK} }
	o, said := f.options(0, 1, "a"), 0
	o.Report = func(p Progress) {
		if strings.Contains(p.Message, "has no locks") {
			said++
		}
	}
	if _, err := Run(t.Context(), o); err != nil || said != 1 ||
		!strings.Contains(f.read("train", "log", "a00001.log"), "no locks") {
		t.Errorf("%v; it was said %d times", err, said)
	}
}
