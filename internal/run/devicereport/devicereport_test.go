package devicereport

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/bench"
)

// TestReport wants all facts in the file, and nothing that names the person or the machine.
func TestReport(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Chdir(dir)
	r := &Report{Device: "Some GPU | 3", Driver: "Mesa 25.0", Kernels: 80, Right: 79,
		Steps: []bench.Step{{Name: "small", MS: 0.5}, {Name: "large", MS: 1234.4}},
		Text: "device 0 Some GPU\n  UUID     0011-2233\n  limit    x 3\n" +
			"loader " + filepath.Join(home, "lib") + " " + filepath.Join(dir, "x") + "\n",
		Passes: "rasterize 1 ms\n", Failure: errors.New("run kernels: kernels fail")}
	path := filepath.Join(t.TempDir(), "report.txt")
	must.Do(t, r.Write(path))
	data := must.Get(os.ReadFile(path))(t)
	text := string(data)
	for _, part := range []string{"| Some GPU / 3 | Mesa 25.0 | 79 of 80 | 0.500 ms | 1234 ms | vksplat ", "\nmachine  ",
		"limit    x 3", "step     0.0005 s: small", "rasterize 1 ms", "error: run kernels", "loader ~", "(here)"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in the report:\n%s", part, text)
		}
	}
	for _, private := range []string{home, dir, "0011-2233", "UUID"} {
		if strings.Contains(text, private) {
			t.Errorf("%q is in the report", private)
		}
	}
	if row := (&Report{}).Row(); !strings.HasPrefix(row, "| none |  | 0 of 0 |") {
		t.Error(row)
	}
}

// TestValueIn reads both forms of files.
func TestValueIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must.Do(t, os.WriteFile(path, []byte("NAMES=x\nNAME=\"A b\"\nmodel name\t: CPU 3\n"), 0o666))
	for key, want := range map[string]string{"NAME": "A b", "model name": "CPU 3", "none": ""} {
		if got := valueIn(path, key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
}
