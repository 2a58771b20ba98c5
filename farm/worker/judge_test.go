package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/scene"
)

// TestJudge wants tasks to end for good only where no other node could do them.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		cause              error
		code               int
		spoke, away, alone bool
		want               outcome
	}{
		{nil, task.ExitDone, false, false, false, succeeded},
		{nil, task.ExitData, true, false, false, failed},
		{nil, task.ExitUsage, true, false, false, failed},
		{nil, task.ExitUsage, false, false, false, again}, // a crash
		{nil, task.ExitSetup, true, false, false, again},
		{nil, task.ExitSetup, true, false, true, failed},
		{nil, task.ExitRetry, true, false, false, again},
		{nil, task.ExitRetry, true, true, false, declined},
		{nil, task.ExitRetry, true, true, true, declined}, // it comes again
		{nil, task.ExitData, true, true, false, failed},
		{task.ErrStopped, task.ExitRetry, true, true, false, handedBack},
		{queue.ErrStalled, task.ExitRetry, true, false, false, again},
		{queue.ErrLost, task.ExitDone, true, false, false, dropped},
		{task.ErrStopped, task.ExitRetry, true, false, false, handedBack},
	} {
		if got := judge(c.cause, c.code, c.spoke, c.away, c.alone); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	full, broken, spoilt := &fs.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}, errors.New("no such disk"), &scene.Error{Op: "read job", Err: errors.New("no kind"), Kind: spec.ErrSpec}
	for _, c := range []struct {
		cause, err error
		want       outcome
	}{{nil, broken, again}, {nil, full, declined}, {nil, spoilt, failed}, {queue.ErrCanceled, context.Canceled, handedBack}, {queue.ErrLost, context.Canceled, dropped}} {
		if got := judgeOpen(c.cause, c.err); got != c.want {
			t.Errorf("open %v, %v: %d", c.cause, c.err, got)
		}
	}
	unset := &scene.Error{Op: "open root", Err: errors.New("no such folder"), Kind: store.ErrSetup}
	if judgeError(unset, false) != declined || judgeError(unset, true) != failed || judgeError(broken, true) != again || judgeError(full, false) != declined || judgeError(full, true) != declined {
		t.Error("errors of the store are judged wrongly")
	}
	for said, want := range map[string]bool{
		store.Explain("commit results", "j/t", full).Error(): true, "eval: write a.png: " + syscall.EDQUOT.Error(): true,
		"encode: ffmpeg: av_interleaved_write_frame(): No space left on device": true, "commit results: https://lab/j/t: " + store.FullText + ": XMinioStorageFull": true,
		"no progress within stall_timeout": false, "": false,
	} {
		if saysFull(said) != want {
			t.Errorf("%q is taken for a full disk: %v", said, !want)
		}
	}
}

// TestLastWord ends after the worker, or after the lease, or at once when nobody needs it any more.
func TestLastWord(t *testing.T) {
	const soon, never = 20 * time.Millisecond, time.Hour
	for what, c := range map[string]struct {
		afterWorker, afterLease time.Duration
		worker, lease, ends     bool
	}{
		"nothing ends":            {soon, soon, false, false, false},
		"the worker ends":         {soon, never, true, false, true},
		"the lease ends":          {never, soon, false, true, true},
		"both, the worker sooner": {soon, never, true, true, true},
		"both, the lease sooner":  {never, soon, true, true, true},
		"both, late":              {never, never, true, true, false},
	} {
		worker, endWorker := context.WithCancel(t.Context())
		lease, endLease := context.WithCancel(t.Context())
		last, cancel := lastWord(worker, lease, c.afterWorker, c.afterLease)
		if c.worker {
			endWorker()
		}
		if c.lease {
			endLease()
		}
		wait := 10 * soon
		if c.ends {
			wait = 10 * time.Second // on a busy machine
		}
		select {
		case <-last.Done():
			if !c.ends {
				t.Errorf("%s: it is over", what)
			}
		case <-time.After(wait):
			if c.ends {
				t.Errorf("%s: it goes on", what)
			}
		}
		cancel()
		endWorker()
		endLease()
	}
}

// TestRootsOfAJob wants an error that has another worker do the job, for each root that is not here.
func TestRootsOfAJob(t *testing.T) {
	dir := t.TempDir()
	j, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[store]\ninputs = \"scans\"\n[[task]]\nkind = \"demo\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"scans = \"" + dir + "\"\noutputs = \"" + dir + "\"":         true,
		"scans = \"" + dir + "/missing\"\noutputs = \"" + dir + "\"": false,
		"scans = \"" + dir + "\"\noutputs = \"" + dir + "/missing\"": false,
		"outputs = \"" + dir + "\"":                                  false,
		"":                                                           false,
	} {
		file := filepath.Join(t.TempDir(), "roots.toml")
		if text != "" {
			if err := os.WriteFile(file, []byte(filepath.ToSlash(text)), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		r := &run{node: &node{Options: Options{Roots: func(string) string { return file }}}, job: &job{Job: j}}
		root, err := r.openRoots()
		if (err == nil) != good || good && root == nil || !good && judgeError(err, false) != declined {
			t.Errorf("%q: %v, %v", text, root, err)
		}
	}
}

// TestResultsOfAMountedShare has another folder take the place of that of the results while the child works, as a share does that is mounted again.
func TestResultsOfAMountedShare(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders that are open are not renamed there")
	}
	j, err := spec.Parse("job.toml", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	dir, file := filepath.Join(t.TempDir(), "outputs"), filepath.Join(t.TempDir(), "roots.toml")
	text := fmt.Sprintf("inputs = %q\noutputs = %q\n", filepath.ToSlash(dir), filepath.ToSlash(dir))
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
	r := &run{node: &node{Options: Options{Roots: func(string) string { return file }}}, job: &job{Job: j, plan: plan}, task: &plan.Tasks[0], lease: &queue.Lease{}}
	if r.outputs, err = r.openRoots(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+" hidden"), os.Mkdir(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if m, err := r.results(); err == nil {
		t.Errorf("%+v", m)
	}
	share, err := store.Open(store.Options{URL: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, own, err := store.Commit(t.Context(), share, "j/t", openDir(t, "model"), []string{"model"}, store.Made{Hash: plan.Hash(0), Attempt: 1}); err != nil || !own {
		t.Fatal(own, err)
	}
	if m, err := r.results(); err != nil || m.Attempt != 1 {
		t.Errorf("results that are there cannot be read: %+v, %v", m, err)
	}
	r.lease.Generation = 1
	if m, err := r.results(); err == nil {
		t.Errorf("outdated results count: %+v", m)
	}
}

// TestJobsAreForgotten has a worker do tasks of many jobs.
func TestJobsAreForgotten(t *testing.T) {
	n := &node{jobs: map[string]*job{}}
	for i := range 10 * keptJobs {
		name := fmt.Sprint("job ", i)
		n.remember(name, &job{})
		if n.jobs[name] == nil || len(n.jobs) > keptJobs {
			t.Fatalf("%d jobs are kept after %d", len(n.jobs), i+1)
		}
	}
}
