//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeviceLost trains on devices that are lost in the middle: the exit code is that of what can be tried again, nothing hangs, the error names the device, the
// last checkpoint is whole, and the very command of the hint goes on with it to the bytes of an undisturbed run.
func TestDeviceLost(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	limits := filepath.Join(dir, "limits.json")
	if err := os.WriteFile(limits, []byte(`{"lostAfter": 45}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const last = "step_40.safetensors"
	for _, c := range []struct {
		name, says string
		flags      []string
	}{
		{"one", "hint: the driver reset the GPU", nil},
		{"two of them", "; leave the device out of --devices if it does not come back; go on with it: ", []string{"--devices", "0,0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := func(out, every string, more ...string) []string {
				return append([]string{"train", capture, "-m", filepath.Join(dir, c.name+out), "--iterations", "40", "--checkpoint-every", every, "--progress", "none"}, append(c.flags, more...)...)
			}
			lose := func(out, every string, more ...string) string {
				t.Helper()
				cmd := exec.Command("vksplat", args(out, every, more...)...)
				cmd.Env = append(os.Environ(), "VKSPLAT_LIMITS="+limits)
				text, _ := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != exitRetry || !strings.Contains(string(text), "device 0, ") {
					t.Fatalf("%v\n%s", cmd.ProcessState, text)
				}
				return string(text)
			}
			text := lose(" lost", "4")
			if !strings.Contains(text, "is whole\n") || !strings.Contains(text, c.says) {
				t.Errorf("the user is told:\n%s", text)
			}
			_, command, _ := strings.Cut(text, "go on with it: ")
			again, err := exec.Command("sh", "-c", strings.TrimSpace(command)).CombinedOutput()
			if err != nil || !strings.Contains(string(again), "going on with ") {
				t.Fatalf("%s%v\n%s", command, err, again)
			}
			vksplat(t, args(" whole", "0")...)
			sameFile(t, filepath.Join(dir, c.name+" whole", checkpointFolder, last), filepath.Join(dir, c.name+" lost", checkpointFolder, last))
			text = lose(" late", "0") // while it is measured or written
			if !strings.Contains(text, "no checkpoint had been written\n") {
				t.Errorf("at the end the user is told:\n%s", text)
			}
			text = lose(" early", "0", "--iterations", "400")
			if want := "; start anew with: vksplat train " + capture; !strings.Contains(text, "no checkpoint had been written\n") || !strings.Contains(text, want) || strings.Contains(text, "--resume") {
				t.Errorf("without a checkpoint the user is told:\n%s", text)
			}
		})
	}
}
