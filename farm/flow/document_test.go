package flow

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// submitted is a store with the document of anna's job j.
func submitted(t *testing.T) (roots store.Roots, root store.Root, job *spec.Job, d Document) {
	t.Helper()
	roots = store.Roots{}
	for _, name := range []string{"outputs", "inputs"} {
		dir := filepath.Join(t.TempDir(), name)
		must.Do(t, os.Mkdir(dir, 0o777))
		roots[name] = store.Options{URL: dir}
	}
	job, _ = spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	root = must.Get(roots.Open("outputs"))(t)
	d = must.Get(Put(t.Context(), roots, job, "anna"))(t)
	return roots, root, job, d
}

func put(t *testing.T, root store.Root, key, text string) {
	t.Helper()
	must.Do(t, root.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
}

// TestPut gives results to the first owner who submits a job of their name, and reads the document that was submitted.
func TestPut(t *testing.T) {
	roots, _, job, d := submitted(t)
	if _, err := Put(t.Context(), roots, job, "ben"); !errors.Is(err, fault.ErrData) {
		t.Errorf("ben put a job into anna's results: %v", err)
	}
	if again, err := Put(t.Context(), roots, job, "anna"); err != nil || again != d {
		t.Errorf("%v, %v", again, err)
	}
	docs := Documents{Roots: roots}
	if p, err := docs.Read(t.Context(), d); err != nil || p.Job.Name != "j" || len(p.Plan.Tasks) != 1 {
		t.Errorf("%v, %+v", err, p)
	}
}

// TestSubmitted tells results of a job that was submitted from those of farm run.
func TestSubmitted(t *testing.T) {
	_, root, _, _ := submitted(t)
	put(t, root, "other/@run/status.json", "")
	for folder, want := range map[string]bool{"j": true, "other": false, "none": false} {
		if IsSubmitted(root, folder) != want {
			t.Errorf("%s: %v", folder, !want)
		}
	}
}

// TestForeignDocument refuses documents that are not the job's own, or not what was submitted.
func TestForeignDocument(t *testing.T) {
	roots, root, _, ours := submitted(t)
	put(t, root, "j/@run/other.json", "{}")
	for name, d := range map[string]Document{
		"changed":      {ours.Root, ours.Key, strings.Repeat("0", 64)},
		"not there":    {ours.Root, "j/@run/nothing.json", ours.SHA256},
		"of the store": {ours.Root, "j/a/out/MANIFEST.json", ours.SHA256},
		"out of it":    {ours.Root, "../@run/x.json", ours.SHA256},
		"other root":   {"scans", ours.Key, ours.SHA256},
	} {
		docs := Documents{Roots: roots}
		if p, err := docs.Read(t.Context(), d); err == nil || p != nil {
			t.Errorf("%s: %v", name, p)
		} else if fault.Hint(err) == "" {
			t.Errorf("%s: no hint with %v", name, err)
		}
	}
}
