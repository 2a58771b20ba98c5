//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestDriverShortage trains on a device whose driver has less memory than its budget. The run is saved before anything
// is given up, goes on to its end with a smaller model, and says from which step on its bytes are not those of another
// run. What was saved leads to the undisturbed end elsewhere.
func TestDriverShortage(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	args := func(out string, more ...string) []string {
		return append([]string{"train", capture, "-m", filepath.Join(dir, out), "--iterations", "18", "--max-splats",
			"12000", "--max-vram", "200M", "--refine-start", "1",
			"--refine-stop", "17", "--refine-every", "3", "--grow-grad2d", "1e-9", "--prune-opacity", "0",
			"--reset-every", "0", "--keep-checkpoints", "9"}, more...)
	}
	vksplat(t, args("whole")...)
	limits := filepath.Join(dir, "limits.json")
	must.Do(t, os.WriteFile(limits, []byte(`{"heapBytes": 14000000}`), 0o644))
	cmd := exec.Command("vksplat", args("short")...)
	cmd.Env = append(os.Environ(), "VKSPLAT_LIMITS="+limits)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !strings.Contains(string(text), "the device has less free memory than its budget") ||
		!strings.Contains(string(text), "the model stops growing at") {
		t.Errorf("the user is not told:\n%s", text)
	}
	var st output.Stats
	filetest.ReadJSON(t, filepath.Join(dir, "short", "stats.json"), &st)
	if st.Run == nil || len(st.Run.Deviations) != 1 || st.Splats >= 9600 {
		t.Fatalf("%d splats, record of the run %+v", st.Splats, st.Run)
	}
	from := st.Run.Deviations[0].Step
	last := filepath.Join(output.CheckpointFolder, "step_18.safetensors")
	about, err := exec.Command("vksplat", "info", filepath.Join(dir, "short", last)).CombinedOutput()
	if err != nil || !strings.Contains(string(about), fmt.Sprintf("from step %d on: memory ran short", from)) {
		t.Errorf("the last checkpoint says: %v\n%s", err, about)
	}
	vksplat(t, args("part", "--resume="+filepath.Join(dir, "short", output.CheckpointFolder,
		fmt.Sprintf("step_%d.safetensors", from)))...)
	filetest.Same(t, filepath.Join(dir, "whole", last), filepath.Join(dir, "part", last))
}
