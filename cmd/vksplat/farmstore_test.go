package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/worker"
)

// TestFetchFile fetches a file of results in place of one that is there, and leaves that where the new one is damaged.
func TestFetchFile(t *testing.T) {
	top, out := t.TempDir(), t.TempDir()
	root, err := store.Open(store.Options{URL: top})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(out)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	sum := sha256.Sum256([]byte("new"))
	want := store.File{Name: "model.ply", Size: 3, SHA256: hex.EncodeToString(sum[:])}
	for _, c := range []struct {
		stored, there string
		err           error
	}{{"new", "new", nil}, {"bad", "old", store.ErrDamaged}} {
		err := errors.Join(os.MkdirAll(filepath.Join(out, "task"), 0o777), os.WriteFile(filepath.Join(top, "file"), []byte(c.stored), 0o666),
			os.WriteFile(filepath.Join(out, "task", "model.ply"), []byte("old"), 0o666))
		if err != nil {
			t.Fatal(err)
		}
		if err := fetchFile(root, "file", want, dir, "task/model.ply"); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.stored, err, c.err)
		}
		data, err := os.ReadFile(filepath.Join(out, "task", "model.ply"))
		left, _ := os.ReadDir(out)
		if err != nil || string(data) != c.there || len(left) != 1 {
			t.Errorf("%s: there is %q, %v, beside it %v", c.stored, data, err, left)
		}
	}
}

// TestGcGoesOn forgets old jobs beside one whose root is not there any more, and says which stays.
func TestGcGoesOn(t *testing.T) {
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Options{Dir: filepath.Join(dir, "farm"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, root := range map[string]string{"a": "gone", "b": "outputs"} {
		job, err := spec.Parse(name, []byte("version = 1\nname = \""+name+"\"\nstore.outputs = \""+root+"\"\n[[task]]\nkind = \"demo\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := worker.JobPlan(job, "ann")
		if err == nil {
			err = s.Queue().Submit(t.Context(), plan)
		}
		if err == nil {
			err = s.Queue().Cancel(t.Context(), name, queue.Selection{})
		}
		if err == nil {
			_, err = s.Queue().Wait(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var said, errs heard
	code := run([]string{"farm", "gc", "--older", "0s", "--root", "outputs=" + dir, "--token", s.AdminToken()}, &said, &errs)
	if code == exitOK || !strings.Contains(errs.String(), "job a stays") || !strings.Contains(errs.String(), "hint: add it") {
		t.Errorf("exit code %d, %s%s", code, &said, &errs)
	}
	jobs, err := s.Queue().List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Name != "a" {
		t.Errorf("%v, %v", jobs, err)
	}
}

// TestFsckMendsDocuments loses and damages what the store has of a job's document: fsck finds that, and writes it anew from the queue. Where also the results are missing
// it is not the store, and where the queue has nothing of the job somebody has to submit it.
func TestFsckMendsDocuments(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	s, err := server.Start(t.Context(), server.Options{Dir: filepath.Join(t.TempDir(), "farm"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	job, err := spec.Parse("j", []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"t\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	succeedIn(t, s, job, dir)
	fsck := func(root string, want int, repair bool, words ...string) {
		t.Helper()
		var said, errs heard
		args := []string{"farm", "fsck", "--root", "outputs=" + root, "--token", s.AdminToken()}
		if repair {
			args = append(args, "--repair")
		}
		code := run(args, &said, &errs)
		for _, word := range words {
			if !strings.Contains(said.String()+errs.String(), word) {
				t.Errorf("%q is not said", word)
			}
		}
		if code != want || t.Failed() {
			t.Fatalf("exit code %d, want %d: %s%s", code, want, &said, &errs)
		}
	}
	documents := func(root string) []string {
		list, err := filepath.Glob(filepath.Join(root, "@jobs", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	whole := func() (file string) {
		t.Helper()
		list := documents(dir)
		if len(list) != 2 {
			t.Fatalf("beside its owner: %q", list)
		}
		for _, file = range list {
			if data, err := os.ReadFile(file); filepath.Ext(file) == ".json" && err == nil && string(data) == string(job.Canonical()) {
				return file
			}
		}
		t.Fatal("the document is not that of the job")
		return ""
	}
	fsck(empty, exitFailure, true, "is this its folder")
	if list := documents(empty); len(list) > 0 {
		t.Errorf("a folder that is not the store's gets %q", list)
	}
	fsck(dir, exitFailure, false, "wrong: j: the store has results of it, but lacks its document", "--repair mends")
	fsck(dir, exitOK, true, "mended: j: the store")
	file := whole()
	for _, length := range []int64{0, 30} {
		if err := os.Truncate(file, length); err != nil {
			t.Fatal(err)
		}
		fsck(dir, exitFailure, false, "1 finding is not mended", "wrong: j: its document in the store is damaged: "+file, "--repair mends")
		fsck(dir, exitOK, true, "mended: j: its document")
		whole()
	}
	stranger := filepath.Join(dir, "@jobs", "k.0123456789abcdef.json")
	if err := os.WriteFile(stranger, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	fsck(dir, exitFailure, true, stranger, "submit it again")
	if err := os.Remove(stranger); err != nil {
		t.Fatal(err)
	}
	fsck(dir, exitOK, false, "nothing is wrong")
}

// succeedIn submits a job of one task, and does that with a folder for results.
func succeedIn(t *testing.T, s *server.Server, job *spec.Job, dir string) {
	t.Helper()
	plan, err := job.Plan()
	if err != nil {
		t.Fatal(err)
	}
	queued, err := worker.JobPlan(job, "ann")
	if err == nil {
		err = s.Queue().Submit(t.Context(), queued)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Queue().Join(t.Context(), queue.WorkerInfo{Node: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	lease, err := w.Claim(t.Context(), queue.Slot{})
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	if err := os.WriteFile(filepath.Join(made, "model"), []byte("model"), 0o666); err != nil {
		t.Fatal(err)
	}
	from, err := os.OpenRoot(made)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	root, err := store.Open(store.Options{URL: dir})
	if err != nil {
		t.Fatal(err)
	}
	m, own, err := store.Commit(t.Context(), root, job.Name+"/"+plan.Tasks[0].Name, from, []string{"model"}, store.Made{Hash: plan.Hash(0), Attempt: lease.Attempt})
	if err != nil || !own {
		t.Fatal(own, err)
	}
	if err := errors.Join(lease.Verify(t.Context()), lease.Succeed(t.Context(), m.Contents())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Queue().Wait(t.Context(), job.Name); err != nil {
		t.Fatal(err)
	}
}
