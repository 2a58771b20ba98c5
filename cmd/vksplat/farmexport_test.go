//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/export"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	must "vksplat/internal/musttest"
)

// TestRootsFile wants every folder to mean itself in a file of roots, whatever its name.
func TestRootsFile(t *testing.T) {
	j, _ := spectest.Job(t, "version = 1\nname = \"a\"\n[[task]]\nkind = \"demo\"\n")
	const results = "/shared/a b"
	for _, dir := range []string{"/a", "/a b/größe", "/a#1", "/100%", "/a%20b", "/a?b", `/a"\b`, "/a\x7f\n", "/a\xff",
		"/a:b@c;d"} {
		roots, err := store.ReadRoots("roots.toml", export.RootsFile("roots.toml", j, dir, results).Data)
		if err != nil {
			t.Errorf("%q: %v", dir, err)
			continue
		}
		for name, want := range map[string]string{j.Store.Inputs: dir, j.Store.Outputs: results} {
			if got, err := roots[name].Folder(); err != nil || got != want {
				t.Errorf("%q is read as %q: %v", want, got, err)
			}
		}
	}
}

// TestOpenJDRuns has openjd run the trainings of the template, where the folders of inputs and results are others than
// the submitter named.
func TestOpenJDRuns(t *testing.T) {
	openjd, err := exec.LookPath("openjd")
	if err != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatal("openjd was installed and is not in the path")
		}
		t.Skip("openjd is not installed")
	}
	needDevice(t)
	dir := t.TempDir()
	job := smaller(t, "../../examples/three-scenes.toml", "images = 24", "images = 6", "size = [160, 120]",
		"size = [48, 48]", "points = 2500", "points = 200", "iterations = 400", "iterations = 20")
	for name, data := range map[string][]byte{"template.yaml": smaller(t, templateFolder+"openjd.yaml"),
		"retry.sh": smaller(t, templateFolder+"retry.sh"), "job.toml": job} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
	}
	var rules []map[string]string
	for from, to := range map[string]string{"/submitter/my scans": "my scans", "/submitter/results": "mapped"} {
		rules = append(rules, map[string]string{"source_path_format": "POSIX", "source_path": from,
			"destination_path": filepath.Join(dir, to)})
		must.Do(t, os.Mkdir(filepath.Join(dir, to), 0o777))
	}
	mapping := must.Get(json.Marshal(map[string]any{"version": "pathmapping-1.0", "path_mapping_rules": rules}))(t)
	said, err := exec.Command(openjd, "run", filepath.Join(dir, "template.yaml"), "--step", "train",
		"--run-dependencies", "-p", "Inputs=/submitter/my scans", "-p", "Outputs=/submitter/results",
		"--path-mapping-rules", string(mapping)).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "openjd_progress: 100.0") {
		t.Fatalf("%v\n%s", err, said)
	}
	models, err := filepath.Glob(filepath.Join(dir, "mapped/three-scenes/model/*/out/point_cloud/*/point_cloud.ply"))
	if err != nil || len(models) != 3 {
		t.Errorf("models %q: %v\n%s", models, err, said)
	}
}

// smaller reads a file and replaces texts in it, each of which must be there.
func smaller(t *testing.T, name string, oldnew ...string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(name))(t)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(string(data), oldnew[i]) {
			t.Fatalf("%s has no %s", name, oldnew[i])
		}
	}
	return []byte(strings.NewReplacer(oldnew...).Replace(string(data)))
}
