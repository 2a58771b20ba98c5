package splatfile

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/ply"
)

// npmValidator is a program of others, at the version that it was tried with.
const npmValidator = "gltf-validator@2.0.0-dev.3.10"

// npmTool installs an npm package and gives what runs a script of it or beside it. Where node, npm or the registry is
// not there the test is skipped.
func npmTool(t *testing.T, pkg string) (folder string, run func(t *testing.T, script string, args ...string) string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: " + pkg + " is not installed")
	}
	folder = t.TempDir()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: %s is not asked", program, pkg)
		}
	}
	out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix",
		folder, pkg).CombinedOutput()
	if err != nil {
		t.Skipf("npm cannot install %s: %v: %s", pkg, err, strings.TrimSpace(string(out)))
	}
	return folder, func(t *testing.T, script string, args ...string) string {
		t.Helper()
		command := exec.Command("node", append([]string{filepath.Join(folder, script)}, args...)...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", script, args, err, out)
		}
		return string(out)
	}
}

// The Khronos validator finds no fault with our files, but that it calls the extension's names of attributes invalid:
// it was made before the extension was ratified. So it is asked again with names that applications may give, which it
// then also checks the accessors of.
func TestGLBValidator(t *testing.T) {
	folder, run := npmTool(t, npmValidator)
	const script = `const v = require('gltf-validator'), fs = require('fs');
Promise.all(process.argv.slice(2).map(f => v.validateBytes(new Uint8Array(fs.readFileSync(f)), {maxIssues: 0})))
	.then(all => console.log(JSON.stringify(all.map(r => r.issues))));`
	must.Do(t, os.WriteFile(filepath.Join(folder, "validate.cjs"), []byte(script), 0o600))
	var files []string
	for degree := range 4 {
		for _, n := range []int{1, 60} {
			path, _ := writeTemp(t, glb, "a.glb", madeModel(n, degree, "edges"),
				ply.Meta{Antialiased: true, Background: &[3]float32{1, 1, 1}, Near: 0.05}, WriteOptions{})
			data := must.Get(os.ReadFile(path))(t)
			named := path + ".named.glb"
			must.Do(t, os.WriteFile(named,
				bytes.ReplaceAll(data, []byte(glbSplats+":"), []byte("_HR_GAUSSIAN_SPLATTING_")), 0o600))
			files = append(files, path, named)
		}
	}
	var reports []issues
	if err := json.Unmarshal([]byte(run(t, "validate.cjs", files...)), &reports); err != nil ||
		len(reports) != len(files) {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for i, report := range reports {
		report.check(t, i%2 == 0)
	}
}

// issues is a validator's report.
type issues struct {
	NumErrors, NumWarnings int
	Messages               []struct {
		Code, Message, Pointer string
		Severity               int // 0 error, 1 warning, 2 information
	}
}

// check wants neither errors nor warnings, names of the extension's attributes aside.
func (r issues) check(t *testing.T, extended bool) {
	t.Helper()
	seen := 0
	for _, m := range r.Messages {
		if m.Severity > 1 {
			continue
		}
		seen++
		if !extended || m.Code != "MESH_PRIMITIVE_INVALID_ATTRIBUTE" ||
			!strings.Contains(m.Pointer, "/attributes/"+glbSplats+":") {
			t.Errorf("%s: %s: %s", m.Pointer, m.Code, m.Message)
		}
	}
	if seen != r.NumErrors+r.NumWarnings {
		t.Errorf("%d messages of %d errors and %d warnings", seen, r.NumErrors, r.NumWarnings)
	}
}
