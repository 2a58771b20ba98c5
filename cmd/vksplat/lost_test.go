//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestDeviceLost trains on devices that are lost in the middle: the exit code is that of what can be tried again,
// nothing hangs, the error names the device, the last checkpoint is whole, and the very command of the hint goes on
// with it, or with that of another folder which the run began with, to the bytes of an undisturbed run; without either
// it starts anew.
func TestDeviceLost(t *testing.T) {
	capture, dir := smallScene(t, 300), t.TempDir()
	const last = "step_20.safetensors"
	for _, c := range []struct {
		name, says string
		flags      []string
	}{
		{"one", "hint: the driver reset the GPU", nil},
		{"two of them", "; leave the device out of --devices if it does not come back; resume from it: ",
			[]string{"--devices", "0,0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := func(out, every string, more ...string) []string {
				return append([]string{"train", capture, "-m", filepath.Join(dir, c.name+out), "--iterations", "20",
					"--checkpoint-every", every, "--progress", "none"}, append(c.flags, more...)...)
			}
			loseAfter := func(submits int, out, every string, more ...string) string {
				t.Helper()
				limits := filepath.Join(t.TempDir(), "limits.json")
				must.Do(t, os.WriteFile(limits, fmt.Appendf(nil, `{"lostAfter": %d}`, submits), 0o644))
				cmd := exec.Command("vksplat", args(out, every, more...)...)
				cmd.Env = append(os.Environ(), "VKSPLAT_LIMITS="+limits)
				text, _ := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() != fault.ExitTryAgain || !strings.Contains(string(text), "device 0, ") {
					t.Fatalf("%v\n%s", cmd.ProcessState, text)
				}
				return string(text)
			}
			lose := func(out, every string,
				more ...string) string {
				t.Helper()
				return loseAfter(25, out, every, more...)
			}
			follow := func(text, before string) string {
				t.Helper()
				_, command, _ := strings.Cut(text, before)
				again, err := exec.Command("sh", "-c", strings.TrimSpace(command)).CombinedOutput()
				if err != nil {
					t.Fatalf("%s%v\n%s", command, err, again)
				}
				return string(again)
			}
			text := lose(" lost", "4")
			if !strings.Contains(text, "is whole\n") || !strings.Contains(text, c.says) {
				t.Errorf("the user is told:\n%s", text)
			}
			vksplat(t, args(" whole", "0")...)
			whole := filepath.Join(dir, c.name+" whole", output.CheckpointFolder, last)
			list, err := output.ListCheckpoints(filepath.Join(dir, c.name+" lost", output.CheckpointFolder))
			if err != nil || len(list) == 0 {
				t.Fatalf("%d checkpoints: %v", len(list), err)
			}
			// which another folder goes on with, and loses its device before its first checkpoint
			from := list[len(list)-1].Path
			elsewhere := loseAfter(4, " elsewhere", "0", "--resume="+from)
			if !strings.Contains(elsewhere, "no checkpoint had been written since "+from+"\n") {
				t.Errorf("with a checkpoint of another folder the user is told:\n%s", elsewhere)
			}
			for _, run := range []struct {
				folder, text,
				before string
			}{{" elsewhere", elsewhere, "resume from that again: "}, {" lost", text, "resume from it: "}} {
				if said := follow(run.text, run.before); !strings.Contains(said, "resuming from "+from) {
					t.Errorf("%s goes on:\n%s", run.folder, said)
				}
				filetest.Same(t, whole, filepath.Join(dir, c.name+run.folder, output.CheckpointFolder, last))
			}
			text = lose(" late", "0") // while it is measured or written
			if !strings.Contains(text, "no checkpoint had been written\n") {
				t.Errorf("at the end the user is told:\n%s", text)
			}
			text = lose(" early", "0", "--iterations", "30")
			if want := "; start over with: vksplat train " + capture; !strings.Contains(text,
				"no checkpoint had been written\n") || !strings.Contains(text, want) ||
				strings.Contains(text, "--resume") {
				t.Errorf("without a checkpoint the user is told:\n%s", text)
			}
			follow(text, "start over with: ")
			if path := filepath.Join(dir, c.name+" early", output.CheckpointFolder,
				"step_30.safetensors"); !output.IsFile(path) {
				t.Errorf("started anew, the run left no %s", path)
			}
		})
	}
}
