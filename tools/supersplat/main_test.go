package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestCheckRefuses wants any other archive than the pinned one refused.
func TestCheckRefuses(t *testing.T) {
	if err := check([]byte("another archive")); err == nil || !strings.Contains(err.Error(), "not the pinned archive") {
		t.Errorf("another archive passes: %v", err)
	}
}

// TestUnpack reads an archive that lacks a file, and one that has all.
func TestUnpack(t *testing.T) {
	for _, missing := range []string{"", wanted[2][0]} {
		out := new(bytes.Buffer)
		z := gzip.NewWriter(out)
		w := tar.NewWriter(z)
		for _, file := range append([][2]string{{"package/other.js"}}, wanted...) {
			if file[0] == missing {
				continue
			}
			must.Do(t, w.WriteHeader(&tar.Header{Name: file[0], Size: 5, Mode: 0o666}))
			must.Get(w.Write([]byte("hello")))(t)
		}
		must.Do(t, w.Close())
		must.Do(t, z.Close())
		files, err := unpack(out.Bytes())
		if (err != nil) != (missing != "") || err == nil &&
			(len(files) != len(wanted) || string(files[wanted[1][0]]) != "hello") {
			t.Errorf("without %q: %d files, %v", missing, len(files), err)
		}
	}
}

// TestVersion wants the embedded files to be those of the version that is pinned here.
func TestVersion(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("../..", folder, "VERSION"))
	if err != nil || strings.TrimSpace(string(got)) != version {
		t.Errorf("%s holds version %q, %v; pinned is %s: go run ./tools/supersplat", folder, got, err, version)
	}
}
