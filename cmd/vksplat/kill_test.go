//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/scene/ply"
	"vksplat/scene/synth"
)

// startTrain starts the command in a process of its own.
func startTrain(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("vksplat", append([]string{"train"}, args...)...) // TestMain put it in the path
	cmd.Stdout, cmd.Stderr = &out, &out
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of one that a failed test left running
	return cmd, &out
}

// TestKills kills a run at random moments and resumes it each time: the model and the checkpoint at the end are those
// of the undisturbed run.
func TestKills(t *testing.T) {
	kills, steps := 3, 180 // one refinement, at 120
	if filetest.Long() {
		kills, steps = 20, 2000
	}
	dir := smallScene(t, 300)
	whole, part := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "part")
	args := []string{dir, "--iterations", strconv.Itoa(steps), "--checkpoint-every", "25", "--max-splats", "3000",
		"--resume", "-m"}
	if !filetest.Long() {
		args = append([]string{"--refine-start", "90", "--refine-every", "60"}, args...)
	}
	start := time.Now()
	cmd, out := startTrain(t, append(args, whole)...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	// Two thirds of the time go to runs that are killed, so that the last of them is not done before.
	share := time.Since(start) * 4 / 3 / time.Duration(kills)
	resumes, done := 0, false
	for i := 0; i < kills && !done; i++ {
		cmd, out := startTrain(t, append(args, part)...)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if i == 0 { // those that follow have something to go on from
			awaitCheckpoint(t, part, ended)
		}
		after := time.Duration(random.Int63n(int64(share)))
		time.Sleep(after)
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("kill %d of seed %d came after the end", i, seed)
		}
		done = <-ended == nil
		if strings.Contains(out.String(), "resuming from") {
			resumes++
		}
		t.Logf("killed after %v: %s", after.Round(time.Millisecond), lastStep(out.String()))
	}
	cmd, out = startTrain(t, append(args, part)...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, out)
	}
	if strings.Contains(out.String(), "resuming from") {
		resumes++
	}
	if resumes == 0 && !done {
		t.Errorf("seed %d: no run went on from a checkpoint", seed)
	}
	t.Logf("%d of the runs had gone on from a checkpoint; the last: %s", resumes, lastStep(out.String()))
	ply := filepath.Join("point_cloud", fmt.Sprintf("iteration_%d", steps), "point_cloud.ply")
	checkpoint := filepath.Join(output.CheckpointFolder, fmt.Sprintf("step_%d.safetensors", steps))
	filetest.Same(t, filepath.Join(whole, ply), filepath.Join(part, ply))
	filetest.Same(t, filepath.Join(whole, checkpoint), filepath.Join(part, checkpoint))
	list, err := os.ReadDir(filepath.Join(part, output.CheckpointFolder))
	if err != nil || len(list) != 2 { // the other says what the run was begun with
		t.Errorf("left in the folder of checkpoints: %v, %v", list, err)
	}
}

// awaitCheckpoint waits until a run, which must not end before, has a checkpoint in its folder.
func awaitCheckpoint(t *testing.T, dir string, ended chan error) {
	t.Helper()
	for {
		list, err := output.ListCheckpoints(filepath.Join(dir, output.CheckpointFolder))
		if err == nil && len(list) > 0 {
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("the run ended without a checkpoint: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lastStep is the last line of progress.
func lastStep(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "step ") || strings.HasPrefix(lines[i], "resuming from") {
			return lines[i]
		}
	}
	return "no step"
}

// awaitStopped waits until a child that was sent SIGSTOP has stopped.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			t.Fatalf("it is not stopped: %v, status %x", err, status)
		}
		return
	}
}

// TestKillInWrite kills a run while it writes a checkpoint: the one before is whole, the run goes on from it, and the
// rest of the write is cleared away.
func TestKillInWrite(t *testing.T) {
	dir, out := smallScene(t, 12000), filepath.Join(t.TempDir(), "out")
	args := []string{dir, "-m", out, "--checkpoint-every", "2", "--resume", "--iterations"}
	folder := filepath.Join(out, output.CheckpointFolder)
	rest := func() string {
		list := must.Get(filepath.Glob(filepath.Join(folder, ".step_*.tmp*")))(t)
		return strings.Join(list, " ")
	}
	cmd, text := startTrain(t, append(args, "1000000")...)
	writing := func() bool {
		list := must.Get(output.ListCheckpoints(folder))(t)
		return len(list) > 0 && rest() != ""
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no checkpoint is written, or each in no time\n%s", text)
		}
		if !writing() {
			continue
		}
		must.Do(t, cmd.Process.Signal(syscall.SIGSTOP)) // it stops soon, but may end the write before
		awaitStopped(t, cmd.Process.Pid)
		if writing() {
			break
		}
		must.Do(t, cmd.Process.Signal(syscall.SIGCONT))
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	list, err := output.ListCheckpoints(folder)
	if err != nil || len(list) == 0 {
		t.Fatalf("no checkpoint is left: %v", err)
	}
	last := list[len(list)-1]
	c := must.Get(output.OpenWhole(last.Path))(t)
	must.Do(t, c.Close())
	cmd, text = startTrain(t, append(args, strconv.Itoa(last.Step+1), "--accept-changes")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !strings.Contains(text.String(), fmt.Sprintf("step_%d.safetensors: step %d of", last.Step, last.Step)) {
		t.Errorf("it did not go on with step %d:\n%s", last.Step, text)
	}
	if left := rest(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// TestKillInScores kills a run between its measurement and the last file of it: --resume writes what is missing.
func TestKillInScores(t *testing.T) {
	dir, whole := smallScene(t, 300), filepath.Join(t.TempDir(), "whole")
	train := func(more ...string) {
		t.Helper()
		cmd, text := startTrain(t, append([]string{dir, "--iterations", "4", "--checkpoint-every", "2", "--eval",
			"--eval-at", "2", "--progress", "none"}, more...)...)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	train("-m", whole)
	for _, c := range []struct{ name, missing string }{
		{"after results.json", "per_view.json"},
		{"before results.json", "results.json per_view.json"},
		{"pictures lost", "test/ours_4/view_000.png"},
		{"all lost", "test results.json per_view.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			must.Do(t, os.CopyFS(out, os.DirFS(whole)))
			// A process that is killed there leaves everything but these and the files of the end.
			for _, name := range append(strings.Fields(c.missing), "stats.json", "report.html") {
				must.Do(t, os.RemoveAll(filepath.Join(out, name)))
			}
			train("-m", out, "--resume")
			for _, name := range []string{"results.json", "per_view.json", "test/ours_4/view_000.png"} {
				filetest.Same(t, filepath.Join(whole, name), filepath.Join(out, name))
			}
		})
	}
}

// TestInterruptedEvaluation stops runs while they measure held-out photos, at the end and on the way: that ends soon,
// what there is of the model is whole, the user is told what is missing, and --resume makes it whole.
func TestInterruptedEvaluation(t *testing.T) {
	needDevice(t)
	dir := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synth.Write(dir, synth.Options{Images: 12, Width: 320, Height: 240, Points: 1000}))
	for _, c := range []struct {
		name, at, steps string
		says            []string
	}{
		{"at the end", "4", "4",
			[]string{"interrupted while measuring the held-out photos: the model is complete",
				"measure it with: vksplat resume "}},
		{"on the way", "4", "6",
			[]string{"interrupted at step 4 of 6, while measuring the held-out photos",
				"continue with: vksplat resume "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := []string{dir, "-m", out, "--eval", "--test-every", "2", "--iterations", c.steps, "--eval-at", c.at,
				"--max-splats", "1000"}
			cmd, said := startTrain(t, args...)
			pictures := filepath.Join(out, output.PictureFolder+c.at)
			began := time.Now()
			for list := []os.DirEntry(nil); len(list) == 0 &&
				time.Since(began) < 5*time.Minute; time.Sleep(2 * time.Millisecond) {
				list, _ = os.ReadDir(pictures)
			}
			must.Do(t, cmd.Process.Signal(os.Interrupt))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != fault.ExitInterrupted {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			for _, text := range append(c.says, "finishing this picture, then saving") {
				if !strings.Contains(said.String(), text) {
					t.Errorf("%q is not said in\n%s", text, said)
				}
			}
			if list, _ := os.ReadDir(pictures); len(list) == 6 {
				t.Errorf("all %d pictures were made", len(list))
			}
			file := filepath.Join(out, output.ModelFolder+c.at, output.ModelName)
			if _, _, err := ply.Read(file); err != nil {
				t.Error(err)
			}
			if scores := filepath.Join(out, "results.json"); output.IsFile(scores) {
				t.Error("there are scores")
			}
			vksplat(t, append([]string{"train", "--resume"}, args...)...)
			if list, err := os.ReadDir(filepath.Join(out, output.PictureFolder+c.steps)); err != nil ||
				len(list) != 6 || !output.IsFile(filepath.Join(out, "results.json")) {
				t.Errorf("%v: %d pictures when the run was gone on with", err, len(list))
			}
		})
	}
}
