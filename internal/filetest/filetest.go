// Package filetest has what tests of several packages ask of files and of the machine.
package filetest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

func read(t testing.TB, path string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return data
}

func ReadJSON(t testing.TB, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(read(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Same compares the bytes of two files.
func Same(t testing.TB, a, b string) {
	t.Helper()
	if !bytes.Equal(read(t, a), read(t, b)) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// Only checks that dir holds exactly one file, with the given text: no temporary file is left.
func Only(t testing.TB, dir, name, text string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("folder holds %v, want only %s", entries, name)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
		t.Errorf("file holds %q, %v, want %q", got, err, text)
	}
}

// Make makes files below dir, with their folders.
func Make(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte("x"), 0o666))
	}
}

// List lists the files below dir in lexical order, with slashes.
func List(t testing.TB, dir string) (list []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))))
		}
		return err
	}))
	return list
}

// Long says whether tests take their full sizes and all their variants: VKSPLAT_LONG=1, as make test-long sets it. What
// every commit runs, on two cores, keeps one variant of each promise.
func Long() bool { return os.Getenv("VKSPLAT_LONG") == "1" }

// NeedPython skips the test unless python3 has the packages. Where all were installed, their lack fails it.
func NeedPython(t testing.TB, packages string) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import "+packages).CombinedOutput(); err != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatalf("the packages were installed and cannot be used: %v\n%s", err, out)
		}
		t.Skip("no python3 with the packages " + packages)
	}
}

// Allocated returns a function that says how many bytes have been allocated since.
func Allocated() (since func() uint64) {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() uint64 {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
}
