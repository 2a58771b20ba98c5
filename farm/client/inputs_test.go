package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestCheckInputs names the first input that is not there, and the line of its task, as far as this machine can tell.
func TestCheckInputs(t *testing.T) {
	dir := t.TempDir()
	job, plan := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"train\"\nid = \"a\"\n"+
		"matrix.source = [\"garden\", \"gardn\"]\n[[task]]\nkind = \"convert\"\nmodel = \"@a\"\nto = \"spz\"\n")
	roots := store.Roots{"inputs": {URL: dir}}
	if err := CheckInputs(roots, job, plan, "mend it"); err != nil {
		t.Errorf("nothing is mounted here: %v", err)
	}
	must.Do(t, os.Mkdir(filepath.Join(dir, "garden"), 0o777))
	err := CheckInputs(roots, job, plan, "mend it")
	if err == nil || !strings.Contains(err.Error(), `input "gardn" not found in `+dir) ||
		!strings.Contains(err.Error(), "job.toml:6") || fault.Hint(err) == "" {
		t.Errorf("%v, hint: %s", err, fault.Hint(err))
	}
	if err := CheckInputs(store.Roots{"inputs": {URL: filepath.Join(dir, "away")}}, job, plan, "mend it"); err != nil {
		t.Errorf("a share that is not mounted: %v", err)
	}
	if err := CheckInputs(store.Roots{}, job, plan, "mend it"); err != nil {
		t.Errorf("a root that is not known here: %v", err)
	}
	must.Do(t, os.Mkdir(filepath.Join(dir, "gardn"), 0o777))
	if err := CheckInputs(roots, job, plan, "mend it"); err != nil {
		t.Error(err)
	}
}
