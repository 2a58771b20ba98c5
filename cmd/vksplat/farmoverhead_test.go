//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/farm/task"
)

// overhead is what a farm adds to one training.
type overhead struct {
	before, child, after time.Duration // of run-task: until train begins, of train, and from its end on
	own                  time.Duration // processor time of run-task
}

// TestFarmOverhead measures what a farm adds to a training: the time before and after it, and the processor time of server, worker and run-task meanwhile, as if
// training needed every core of the machine, which on GPUs it does not. From these follows its share of a training of ten minutes, which must be below 1 %.
// VKSPLAT_TEST_STEPS makes the training that is served longer, as on a GPU:
//
//	VKSPLAT_LONG=1 VKSPLAT_TEST_STEPS=100000 go test -count=1 -v ./cmd/vksplat -run TestFarmOverhead
func TestFarmOverhead(t *testing.T) {
	if os.Getenv(longVariable) != "1" {
		t.Skip(longVariable + "=1 measures what a farm adds to a training")
	}
	needDevice(t)
	const short = 1500
	steps := short
	if text := os.Getenv("VKSPLAT_TEST_STEPS"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	capture := filepath.Join(dir, "capture")
	vksplat(t, "demo", "--capture-only", "-m", capture, "--images", "20", "--size", "160x120", "--points", "2000")
	const ballast = 256 << 20 // makes the time to bring the input measurable
	if err := os.WriteFile(filepath.Join(capture, "ballast"), make([]byte, ballast), 0o666); err != nil {
		t.Fatal(err)
	}
	document, served := filepath.Join(dir, "job.toml"), filepath.Join(dir, "served.toml")
	for file, n := range map[string]int{document: short, served: steps} {
		if err := os.WriteFile(file, fmt.Appendf(nil, "version = 1\nname = \"cost\"\n[[task]]\nkind = \"train\"\nid = \"model\"\nsource = \"capture\"\nset.iterations = %d\n", n), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	plain := timed(t, "train", capture, "-m", filepath.Join(dir, "plain"), "--iterations", strconv.Itoa(short), "--progress", "none")
	cold := runTask(t, document, filepath.Join(dir, "one"), filepath.Join(dir, "work"))
	warm := runTask(t, document, filepath.Join(dir, "two"), filepath.Join(dir, "work"))
	t.Logf("train alone: %v", plain)
	t.Logf("run-task: %v before train, of which %v bring %d MiB of input; %v of train, %v after it; %v of processor time of its own, %v without the input", cold.before, cold.before-warm.before,
		ballast>>20, cold.child, cold.after, cold.own, warm.own)
	perMinute := serving(t, dir, served, warm.child*time.Duration(steps)/short)
	cores := time.Duration(runtime.NumCPU())
	t.Logf("%v of processor time a minute, on %d cores", perMinute.Round(time.Millisecond), cores)
	perMinute /= cores
	added := warm.before + warm.after + warm.own/cores
	share := float64(added)/float64(10*time.Minute) + float64(perMinute)/float64(time.Minute)
	perGiB := func(d time.Duration) time.Duration { return (d * (1 << 30) / ballast).Round(time.Millisecond) }
	t.Logf("of a training of 10 minutes the farm takes %v once, and %v of all cores a minute: %.2f %%, as if training stood still meanwhile; and the first time on a machine, %v for each GiB of input, %v of it processor time",
		added.Round(time.Millisecond), perMinute.Round(time.Millisecond), 100*share, perGiB(cold.before-warm.before), perGiB(cold.own-warm.own))
	if share > 0.01 {
		t.Error("this is more than 1 %")
	}
}

// timed runs a command and says how long it took.
func timed(t *testing.T, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	vksplat(t, args...)
	return time.Since(began).Round(time.Millisecond)
}

// runTask runs the training as a task and listens to its phases.
func runTask(t *testing.T, document, outputs, work string) (o overhead) {
	t.Helper()
	if err := os.MkdirAll(outputs, 0o777); err != nil {
		t.Fatal(err)
	}
	roots := outputs + ".toml"
	if err := os.WriteFile(roots, fmt.Appendf(nil, "inputs = %q\noutputs = %q\n", filepath.Dir(document), outputs), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("vksplat", "farm", "run-task", "--spec", document, "--index", "0", "--roots", roots, "--work", work, "--progress", "json")
	cmd.Stderr = t.Output()
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var trains, commits time.Time
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var p task.Progress
		switch _ = json.Unmarshal(lines.Bytes(), &p); {
		case p.Message == "train" && trains.IsZero():
			trains = time.Now()
		case p.Message == "committing results":
			commits = time.Now()
		}
		if used, known := task.ProcessorTime(cmd.Process.Pid); known {
			o.own = used
		}
	}
	if err := cmd.Wait(); err != nil || trains.IsZero() || commits.IsZero() {
		t.Fatalf("the task ended with %v, its phases are not known", err)
	}
	o.before, o.child, o.after = trains.Sub(began).Round(time.Millisecond), commits.Sub(trains).Round(time.Millisecond), time.Since(commits).Round(time.Millisecond)
	return o
}

// serving runs the training on a server and a worker, and measures their processor time a minute while it runs.
func serving(t *testing.T, dir, document string, about time.Duration) (perMinute time.Duration) {
	t.Helper()
	outputs, server := filepath.Join(dir, "three"), filepath.Join(dir, "server")
	if err := os.Mkdir(outputs, 0o777); err != nil {
		t.Fatal(err)
	}
	serve := background(t, "serve", "--dir", server, "--listen", freeAddress(t))
	token := filepath.Join(server, "admin.token")
	for exec.Command("vksplat", "farm", "ls", "--token", token).Run() != nil {
		time.Sleep(100 * time.Millisecond)
	}
	work := background(t, "worker", "--token", token, "--root", "inputs="+dir, "--root", "outputs="+outputs, "--work", filepath.Join(dir, "work"))
	vksplat(t, "farm", "submit", document, "--token", token)
	var pids []int // server, worker, run-task
	for len(pids) < 3 {
		time.Sleep(20 * time.Millisecond)
		if tasks := below(work); len(tasks) > 1 { // the training has begun
			pids = []int{serve, work, tasks[0][0]}
		}
	}
	began, used := time.Now(), make([]time.Duration, 3)
	for i, pid := range pids {
		used[i], _ = task.ProcessorTime(pid)
	}
	first := append([]time.Duration(nil), used...)
	for ; len(below(work)) > 1; time.Sleep(50 * time.Millisecond) {
		for i, pid := range pids {
			if now, known := task.ProcessorTime(pid); known {
				used[i] = now
			}
		}
	}
	took := time.Since(began)
	for i, name := range []string{"server", "worker", "run-task"} {
		each := time.Duration(float64(used[i]-first[i]) / took.Minutes())
		t.Logf("%-8s %v of processor time a minute", name, each.Round(time.Millisecond))
		perMinute += each
	}
	if took < about/2 {
		t.Errorf("measured for %v of a training of %v", took, about)
	}
	vksplat(t, "farm", "wait", "cost", "--token", token)
	if m, err := os.ReadFile(filepath.Join(outputs, "cost", "model", "out", store.ManifestName)); err != nil || len(m) == 0 {
		t.Error(err)
	}
	return perMinute
}

// background starts a command of the farm until the test ends.
func background(t *testing.T, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command("vksplat", append([]string{"farm"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process.Pid
}
