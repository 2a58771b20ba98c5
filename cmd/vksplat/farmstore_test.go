package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/farm/store"
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
