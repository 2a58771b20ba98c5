//go:build unix

package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/export"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
)

const exportSteps = 20

// exportJob makes a capture, and trains it and one of the inputs, at paths that no shell would take apart well.
var exportJob = fmt.Sprintf(`version = 1
name = "export 'größe' $(x)"
[[task]]
kind = "demo"
id = "the scene"
images = 6
size = [48, 48]
points = 200
[[task]]
kind = "train"
id = "made"
source = "@the scene"
set = { iterations = %[1]d }
[[task]]
kind = "train"
id = "brought"
source = "desk 'one'"
set = { iterations = %[1]d }
`, exportSteps)

// exported writes the job and an export of it. Inputs lie in the folder "my scans" below dir.
func exported(t *testing.T, to string, more ...string) (dir, out string) {
	t.Helper()
	needDevice(t)
	dir = t.TempDir()
	inputs := filepath.Join(dir, "my scans")
	vksplat(t, "demo", "--capture-only", "-m", filepath.Join(inputs, "desk 'one'"),
		"--images", "6", "--size", "48x48", "--points", "200")
	job, out := filepath.Join(inputs, "a job.toml"), filepath.Join(dir, "export")
	if err := os.WriteFile(job, []byte(exportJob), 0o666); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("vksplat") // TestMain put it in the path
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"farm", "export", job, "--to", to, "-o", out, "--gpus", "0", "--program", program}
	vksplat(t, append(args, more...)...)
	return dir, out
}

// trained checks that results hold both models.
func trained(t *testing.T, results string) {
	t.Helper()
	for _, id := range []string{"made", "brought"} {
		ply := fmt.Sprintf("point_cloud/iteration_%d/point_cloud.ply", exportSteps)
		ply = filepath.Join(results, "export 'größe' $(x)", id, "out", ply)
		if _, err := os.Stat(ply); err != nil {
			t.Error(err)
		}
	}
}

// TestRootsFile wants every folder to mean itself in a file of roots, whatever its name.
func TestRootsFile(t *testing.T) {
	j, _ := spectest.Job(t, exportJob)
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

// TestOpenJDRuns has openjd run an export where the folders of inputs and results are others than the submitter named.
func TestOpenJDRuns(t *testing.T) {
	openjd, err := exec.LookPath("openjd")
	if err != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatal("openjd was installed and is not in the path")
		}
		t.Skip("openjd is not installed")
	}
	dir, out := exported(t, "openjd", "--check")
	var rules []map[string]string
	for from, to := range map[string]string{"/submitter/my scans": "my scans", "/submitter/results": "mapped"} {
		rules = append(rules, map[string]string{"source_path_format": "POSIX", "source_path": from,
			"destination_path": filepath.Join(dir, to)})
	}
	if err := os.Mkdir(filepath.Join(dir, "mapped"), 0o777); err != nil {
		t.Fatal(err)
	}
	mapping, err := json.Marshal(map[string]any{"version": "pathmapping-1.0", "path_mapping_rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(openjd, "run", filepath.Join(out, "template.json"), "-p", "Inputs=/submitter/my scans",
		"-p", "Outputs=/submitter/results", "--path-mapping-rules", string(mapping)).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Chunks run: 3") ||
		!strings.Contains(string(said), "openjd_progress: 100.0") {
		t.Fatalf("%v\n%s", err, said)
	}
	trained(t, filepath.Join(dir, "mapped"))
	if left, err := os.ReadDir(filepath.Join(out, "results")); err != nil || len(left) > 0 {
		t.Errorf("results lie where they were not mapped: %v, %v", left, err)
	}
}

// TestOpenCueRuns runs the command of every frame as RQD does, in the order of layers.
func TestOpenCueRuns(t *testing.T) {
	dir, out := exported(t, "opencue", "--user", "ann")
	data, err := os.ReadFile(filepath.Join(out, "job.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Layers []struct {
			Command string `xml:"cmd"`
			Range   string `xml:"range"`
		} `xml:"job>layers>layer"`
	}
	if err := xml.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	for _, l := range spec.Layers {
		first, last := 0, 0
		if _, err := fmt.Sscanf(l.Range+"-"+l.Range, "%d-%d", &first, &last); err != nil {
			t.Fatal(err)
		}
		for n := first; n <= last; n++ {
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(l.Command, "#IFRAME#", fmt.Sprint(n)))
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
				"MESA_SHADER_CACHE_DIR="+machineCode())
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("frame %d of %q: %v\n%s", n, l.Command, err, said)
			}
		}
	}
	trained(t, filepath.Join(out, "results"))
}

var (
	dagNode    = regexp.MustCompile(`(?m)^JOB (\S+) (\S+)\nVARS (\S+) index="(\d+)"$`)
	submitArgs = regexp.MustCompile(`(?m)^arguments = "(.*)"$`)
)

// TestHTCondorRuns runs the nodes of the DAG in their order, each in a scratch folder, as a starter does.
func TestHTCondorRuns(t *testing.T) {
	_, out := exported(t, "htcondor", "--memory", "1")
	dag, err := os.ReadFile(filepath.Join(out, "job.dag"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := dagNode.FindAllStringSubmatch(string(dag), -1)
	if len(nodes) != 3 {
		t.Fatalf("%d nodes, want 3:\n%s", len(nodes), dag)
	}
	for _, node := range nodes {
		sub, err := os.ReadFile(node[2])
		if err != nil {
			t.Fatal(err)
		}
		args := submitArgs.FindStringSubmatch(string(sub))
		if args == nil || node[1] != node[3] {
			t.Fatalf("node %s, %s:\n%s", node[1], node[3], sub)
		}
		cmd := exec.Command("/usr/bin/env", strings.Fields(strings.ReplaceAll(args[1], "$(index)", node[4]))...)
		cmd.Dir = t.TempDir()
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // HTCondor gives none of these
			return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_") || strings.HasPrefix(v, "USER=")
		})
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("node %s: %v\n%s", node[1], err, said)
		}
		if _, err := os.Stat(filepath.Join(cmd.Dir, "work")); err != nil {
			t.Errorf("node %s works elsewhere: %v", node[1], err)
		}
	}
	trained(t, filepath.Join(out, "results"))
}
