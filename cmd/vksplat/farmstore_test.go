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
