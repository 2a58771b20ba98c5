package export

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestValidator lets kubectl-validate judge an export, where it is installed, and broken copies. make schedulers
// installs it; the variable says that it did.
func TestValidator(t *testing.T) {
	const tool = "kubectl-validate"
	if _, err := exec.LookPath(tool); err != nil {
		if os.Getenv("VKSPLAT_SCHEDULERS") == "1" {
			t.Fatal(tool + " was installed and is not in the path")
		}
		t.Skip(tool + " is not installed")
	}
	j, p := mixed(t)
	files := must.Get(Kubernetes(j, p, writers[1].o))(t)
	for _, v := range []struct{ file, from, to, because string }{
		{"01-train.json", `"backoffLimitPerIndex"`, `"backoffLimitPerIndexx"`, "backoffLimitPerIndexx"},
		{"01-train.json", `"completions": 4`, `"completions": "four"`, "completions"},
		{documentMap, `"job.json": "`, `"job.json": 1, "x": "`, "job.json"},
	} {
		name := filepath.Join(written(t, files), v.file)
		judge := func() (string, error) {
			said, err := exec.Command(tool, name).CombinedOutput()
			return string(said), err
		}
		if said, err := judge(); err != nil {
			t.Fatalf("%s refuses %s: %v\n%s", tool, v.file, err, said)
		}
		data, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(data, []byte(v.from)) {
			t.Fatalf("%s has no %s: %v", v.file, v.from, err)
		}
		must.Do(t, os.WriteFile(name, bytes.Replace(data, []byte(v.from), []byte(v.to), 1), 0o666))
		if said, err := judge(); err == nil || !strings.Contains(said, v.because) {
			t.Errorf("%s takes %s, or says nothing of %s: %v\n%s", tool, v.to, v.because, err, said)
		}
	}
}
