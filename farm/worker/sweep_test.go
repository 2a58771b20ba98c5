package worker

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// TestClear wants the folders of a job's tasks gone, but not that of a process that works, nor what is another's.
func TestClear(t *testing.T) {
	job, err := spec.Parse("job.toml", []byte("version = 1\nname = \"job\"\n[[task]]\nkind = \"demo\"\nid = \"a\"\npoints = 10\n[[task]]\nkind = \"demo\"\nid = \"b\"\npoints = 20\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Options: Options{Work: t.TempDir()}}
	dir, other := filepath.Join(n.Work, jobsFolder, "x"), filepath.Join(n.Work, "another")
	a, _ := task.WorkFolder(n.Work, job, &plan.Tasks[0], plan.Hash(0))
	b, lock := task.WorkFolder(n.Work, job, &plan.Tasks[1], plan.Hash(1))
	for _, d := range []string{dir, other, filepath.Join(a, "out"), b, filepath.Dir(lock)} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	there := func(what string) bool { _, err := os.Stat(what); return err == nil }
	unlock, err := store.Lock(context.Background(), lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.clear(job, dir); err != nil || there(a) || !there(b) || !there(dir) || !there(other) {
		t.Errorf("while a process works: %v, %v %v %v %v", err, there(a), there(b), there(dir), there(other))
	}
	unlock()
	if err := n.clear(job, dir); err != nil || there(b) || there(dir) || !there(other) {
		t.Errorf("after it: %v, %v %v %v", err, there(b), there(dir), there(other))
	}
}

// TestDocuments finds documents in a work folder of any name, also one that reads like a pattern.
func TestDocuments(t *testing.T) {
	work := filepath.Join(t.TempDir(), "scratch [2")
	if files, err := documents(work); err != nil || len(files) != 0 {
		t.Error(files, err)
	}
	want := filepath.Join(work, jobsFolder, "x", documentFile)
	if err := os.MkdirAll(filepath.Dir(want), 0o777); err != nil {
		t.Fatal(err)
	}
	if files, err := documents(work); err != nil || len(files) != 1 || files[0] != want {
		t.Error(files, err)
	}
}

func TestIsOver(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		ended queue.JobState
		ago   time.Duration
		want  bool
	}{{"", 2 * sweepAfter, false}, {queue.JobCanceled, 2 * sweepAfter, true}, {queue.JobCanceled, sweepAfter / 2, false}} {
		j := queue.JobStatus{Changed: now.Add(-c.ago)}
		j.Ended = c.ended
		if isOver(j, now) != c.want {
			t.Errorf("%+v", c)
		}
	}
}
