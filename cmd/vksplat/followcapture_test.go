package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFollowCaptureInLittleMemory asks for more splats by the capture than memory has room for: the model ends with
// those that fit, and the run goes on with the same arguments. Where a number is asked for, it is an error.
func TestFollowCaptureInLittleMemory(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	run := func(want string, fails bool, more ...string) {
		t.Helper()
		args := append([]string{"train", capture, "-m", filepath.Join(dir, "out"), "--max-vram", "24M",
			"--refine-start", "1", "--refine-every", "1", "--refine-stop", "17",
			"--reset-every", "0"}, more...)
		if out, err := exec.Command("vksplat", args...).CombinedOutput(); (err != nil) != fails ||
			!strings.Contains(string(out), want) {
			t.Errorf("%q: %v, no %q in\n%s", more, err, want, out)
		}
	}
	run("memory has room for", false, "--splats-factor", "100", "--iterations", "18")
	run("going on with", false, "--splats-factor", "100", "--iterations", "20", "--resume")
	run("90000 splats to end with", true, "--splats", "90000", "--iterations", "18", "--overwrite")
}
