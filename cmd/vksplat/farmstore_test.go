package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestFetchFile fetches a file of results in place of one that is there, and leaves that where the new one is damaged.
func TestFetchFile(t *testing.T) {
	top, out := t.TempDir(), t.TempDir()
	root := must.Get(store.Open(store.Options{URL: top}))(t)
	dir := must.Get(os.OpenRoot(out))(t)
	defer dir.Close()
	sum := sha256.Sum256([]byte("new"))
	want := store.File{Name: "model.ply", Size: 3, SHA256: hex.EncodeToString(sum[:])}
	for _, c := range []struct {
		stored, there string
		err           error
	}{{"new", "new", nil}, {"bad", "old", store.ErrDamaged}} {
		err := errors.Join(os.MkdirAll(filepath.Join(out, "task"), 0o777),
			os.WriteFile(filepath.Join(top, "file"), []byte(c.stored), 0o666),
			os.WriteFile(filepath.Join(out, "task", "model.ply"), []byte("old"), 0o666))
		if err != nil {
			t.Fatal(err)
		}
		if err := fetchFile(t.Context(), root, "file", want, dir, "task/model.ply"); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.stored, err, c.err)
		}
		data, err := os.ReadFile(filepath.Join(out, "task", "model.ply"))
		left, _ := os.ReadDir(out)
		if err != nil || string(data) != c.there || len(left) != 1 {
			t.Errorf("%s: there is %q, %v, beside it %v", c.stored, data, err, left)
		}
	}
}

// TestFsckAndGc damages results and leaves behind what killed attempts do: fsck finds and moves the one, gc removes the
// other, and neither touches what is whole.
func TestFsckAndGc(t *testing.T) {
	dir := t.TempDir()
	root := must.Get(store.Open(store.Options{URL: dir}))(t)
	commit := func(task string) {
		t.Helper()
		made := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(made, "model.ply"), []byte(task), 0o666))
		from := must.Get(os.OpenRoot(made))(t)
		defer from.Close()
		if _, own, err := store.Commit(t.Context(), root, task, from, []string{"model.ply"},
			store.Made{Hash: "h", Attempt: 1}); err != nil || !own {
			t.Fatal(own, err)
		}
	}
	commit("job/a=1/x")
	commit("job/b")
	left := filepath.Join(dir, "job", "c", "ckpt", "a00001", "step-000000001.json")
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(left), 0o777), os.WriteFile(left, []byte("{}"), 0o666)))
	says := func(code int, want string, args ...string) {
		t.Helper()
		var said, errs strings.Builder
		if got := run(append([]string{"farm"}, args...), &said, &errs); got != code ||
			!strings.Contains(said.String()+errs.String(), want) {
			t.Errorf("%q: exit code %d, want %d and %q: %s%s", args, got, code, want, said.String(), errs.String())
		}
	}
	job := filepath.Join(dir, "job")
	says(fault.ExitOK, "2 tasks with whole results", "fsck", job)
	says(fault.ExitOK, "a=1/x  model.ply", "artifacts", "ls", job)
	says(fault.ExitOK, "job/b      model.ply", "artifacts", "ls", dir, "*.ply")
	says(fault.ExitFailure, "none found that match", "artifacts", "ls", job, "*.png")
	says(fault.ExitUsage, "there is no such folder", "fsck", filepath.Join(dir, "nobody"))
	damaged := filepath.Join(job, "b", "out", "model.ply")
	must.Do(t, os.WriteFile(damaged, []byte("x"), 0o666))
	says(fault.ExitFailure, "damaged: b: ", "fsck", job)
	says(fault.ExitFailure, `"repaired": false`, "fsck", job, "--json")
	if _, err := os.Stat(damaged); err != nil {
		t.Error("without --repair nothing is moved: ", err)
	}
	says(fault.ExitOK, "moved out of the way: b: ", "fsck", job, "--repair")
	says(fault.ExitOK, "1 task with whole results", "fsck", job)
	says(fault.ExitOK, "0 tasks cleared", "gc", job)
	says(fault.ExitOK, "2 tasks to clear", "gc", job, "--older", "0s", "--dry-run")
	if _, err := os.Stat(left); err != nil {
		t.Error("--dry-run removes nothing: ", err)
	}
	mine := filepath.Join(job, "b", "tmp", "mine", "x")
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(mine), 0o777), os.WriteFile(mine, nil, 0o666)))
	says(fault.ExitOK, "kept: b/tmp/mine: it holds files that are in no manifest", "gc", job, "--older", "0s")
	if err := errors.Join(os.Remove(mine), os.RemoveAll(filepath.Join(job, "b", "tmp"))); err != nil {
		t.Error("what somebody put there is gone: ", err)
	}
	says(fault.ExitOK, "0 tasks cleared", "gc", job, "--older", "0s")
	for _, gone := range []string{left, filepath.Join(job, "b", "tmp")} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	says(fault.ExitOK, "1 task with whole results", "fsck", job)
}
