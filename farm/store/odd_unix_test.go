//go:build unix

package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestOddEntries has what is no file of the root, in the ways in which that can be, stand beside results: these are
// found and read all the same. Where it is an input, or stands in the place of a result, it is an error of the data.
func TestOddEntries(t *testing.T) {
	r := newFolder(t, Options{})
	_, _, err := Commit(t.Context(), r, "j/t", work(t, map[string]string{"model": "x"}), []string{"model"},
		Made{Hash: "h", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	putText(t, r, "j/t/out/deep/file", "x")
	at := func(key string) string { return filepath.Join(r.dir, "j", filepath.FromSlash(key)) }
	must.Do(t, errors.Join(os.Symlink("/tmp", at("best")), os.Symlink(".", at("loop")), os.Symlink(".", at("loop2")),
		os.Symlink("itself", at("itself")), os.Symlink("gone", at("dangling")), syscall.Mkfifo(at("t/pipe"), 0o666),
		os.Mkdir(at("t/ckpt"), 0o777), os.Symlink("/etc/passwd", at("t/ckpt/a00001")),
		os.WriteFile(at(`a\b`), nil, 0o666)))
	tasks, err := Tasks(r, "j")
	if err != nil || len(tasks) != 1 || Check(t.Context(), r, tasks[0].Key, false) != nil {
		t.Errorf("the tasks are %+v, %v", tasks, err)
	}
	_, odd, err := r.List("j")
	if want := []string{`j/a\b`, "j/best", "j/itself", "j/loop", "j/loop2", "j/t/ckpt/a00001",
		"j/t/pipe"}; err != nil || !slices.Equal(odd, want) {
		t.Errorf("odd are %q, %v; want %q", odd, err, want)
	}
	if last, err := LastCheckpoint(r, "j/t"); err != nil || last != 0 {
		t.Errorf("the last checkpoint is %d, %v", last, err)
	}
	cache := must.Get(OpenCache(t.TempDir(), 0))(t)
	for _, key := range []string{"j", "j/best", "j/t/pipe", "j/best/x"} {
		_, _, err := cache.Input(t.Context(), r, key)
		if err = Explain("fetch input", key, err); !errors.Is(err, fault.ErrData) {
			t.Errorf("%s as input: %v", key, err)
		}
	}
	must.Do(t, errors.Join(os.Remove(at("t/out/model")), syscall.Mkfifo(at("t/out/model"), 0o666)))
	if err := Check(t.Context(), r, "j/t", false); !errors.Is(err, ErrDamaged) {
		t.Errorf("a pipe in place of a file: %v", err)
	}
	putText(t, r, "j/t/out/MANIFEST.json", `{"version":1,"files":[{"name":"a\\b","size":1}]}`)
	if err := Check(t.Context(), r, "j/t", true); !errors.Is(err, ErrDamaged) || exists(at("t/out")) {
		t.Errorf("a name with a backslash: %v", err)
	}
}
