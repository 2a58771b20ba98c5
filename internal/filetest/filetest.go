// Package filetest has what tests of several packages ask of files.
package filetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// read returns the content of a file.
func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ReadJSON decodes a file of JSON.
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("folder holds %v, want only %s", entries, name)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
		t.Errorf("file holds %q, %v, want %q", got, err, text)
	}
}
