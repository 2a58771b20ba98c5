//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// slurmConf is a cluster of this machine alone, without accounts, control groups or Munge.
const slurmConf = `ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[3]s
SlurmdPort=%[4]s
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation=%[2]s
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
KillWait=5
MinJobAge=3600
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// startSlurm runs a cluster until the test ends.
func startSlurm(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("slurmd must run as root")
	}
	for _, program := range []string{"slurmctld", "slurmd", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("VKSPLAT_SCHEDULERS") == "1" {
				t.Fatal(program + " was installed and is not in the path")
			}
			t.Skip(program + " is not installed (Debian: apt-get install slurmctld slurmd slurm-client munge)")
		}
	}
	host := must.Get(os.Hostname())(t)
	host, _, _ = strings.Cut(host, ".")
	dir := t.TempDir()
	conf := filepath.Join(dir, "slurm.conf")
	text := fmt.Appendf(nil, slurmConf, host, dir, portOf(freeAddress(t)), portOf(freeAddress(t)))
	must.Do(t, os.WriteFile(conf, text, 0o644))
	t.Setenv("SLURM_CONF", conf)
	for _, args := range [][]string{{"slurmctld", "-D", "-c"}, {"slurmd", "-D"}} {
		said := must.Get(os.Create(filepath.Join(dir, args[0]+".log")))(t)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = said, said
		// A group that they signal is not this one.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
		must.Do(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			_ = cmd.Wait()
			_ = said.Close()
			if text, err := os.ReadFile(said.Name()); t.Failed() && err == nil {
				t.Logf("%s:\n%s", args[0], text)
			}
		})
	}
	t.Cleanup(func() { _ = exec.Command("scancel", "--user=root").Run() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		out, err := exec.Command("sinfo", "-h", "-o", "%T").CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "idle" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cluster does not start: %v\n%s", err, out)
		}
	}
}

// freeAddress returns one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // nobody connected
	return l.Addr().String()
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

const slurmSteps = 400

// slurmJob is a capture and three trainings, at paths that no shell would take apart well.
var slurmJob = fmt.Sprintf(`version = 1
name = "array 'größe' $(x)"
limits.checkpoint_every = "1s"
[[task]]
kind = "demo"
id = "the scene"
images = 6
size = [48, 48]
points = 200
[[task]]
kind = "train"
id = "model"
source = "@the scene"
matrix.seed = [1, 2, 3]
set = { iterations = %d }
[[task]]
kind = "convert"
model = "@model"
to = "splat"
`, slurmSteps)

// TestSlurmArray submits an exported job to a Slurm of this machine and disturbs its trainings: one has its child
// killed, one run-task itself, one is requeued by Slurm. The models are those of undisturbed runs.
func TestSlurmArray(t *testing.T) {
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 runs an array of trainings under Slurm")
	}
	needDevice(t)
	dir := t.TempDir()
	wholes := undisturbed(t, dir) // before there is a Slurm, which signals processes
	startSlurm(t)
	job, out := filepath.Join(dir, "a job.toml"), filepath.Join(dir, "export")
	must.Do(t, os.WriteFile(job, []byte(slurmJob), 0o666))
	program, err := exec.LookPath("vksplat") // TestMain put it in the path
	if err != nil {
		t.Fatal(err)
	}
	script(t, program, "farm", "export", job, "--to", "slurm", "-o", out, "--gpus", "0",
		"--program", program, "--work", filepath.Join(dir, "work"), "--check")
	t.Log(script(t, "bash", filepath.Join(out, "submit.sh")))
	t.Cleanup(func() {
		logs, _ := filepath.Glob(filepath.Join(out, "log", "02-*.log")) // the pattern is right
		for _, name := range logs {
			if text, err := os.ReadFile(name); t.Failed() && err == nil {
				t.Logf("%s:\n%s", filepath.Base(name), text)
			}
		}
	})
	disturb(t, out)
	if left := script(t, "squeue", "-h", "-o", "%i %T %r"); left != "" {
		t.Fatalf("left in the queue: %s", left)
	}
	results := filepath.Join(out, "results", "array 'größe' $(x)")
	for i, whole := range wholes {
		seed := i + 1
		part := filepath.Join(results, "model", fmt.Sprintf("seed=%d", seed), "out")
		ply := filepath.Join("point_cloud", fmt.Sprintf("iteration_%d", slurmSteps), "point_cloud.ply")
		filetest.Same(t, filepath.Join(whole, ply), filepath.Join(part, ply))
		var m store.Manifest
		filetest.ReadJSON(t, filepath.Join(part, store.ManifestName), &m)
		if m.Attempt != 2 || m.Step != slurmSteps {
			t.Errorf("training %d: attempt %d, step %d; want the second attempt", seed, m.Attempt, m.Step)
		}
		converted := filepath.Join(results, "convert", fmt.Sprintf("seed=%d", seed), "out", "model.splat")
		if _, err := os.Stat(converted); err != nil {
			t.Error(err)
		}
	}
}

// undisturbed does the trainings of the job alone, and returns the folders of their models.
func undisturbed(t *testing.T, dir string) (wholes []string) {
	t.Helper()
	capture := filepath.Join(dir, "capture")
	vksplat(t, "demo", "--capture-only", "-m", capture, "--images", "6", "--size", "48x48", "--points", "200")
	for seed := 1; seed <= 3; seed++ {
		whole := filepath.Join(dir, strconv.Itoa(seed))
		vksplat(t, "train", capture, "--seed", strconv.Itoa(seed), "--iterations", strconv.Itoa(slurmSteps),
			"--progress", "none", "-m", whole)
		wholes = append(wholes, whole)
	}
	return wholes
}

// script runs a program and returns what it printed.
func script(t *testing.T, args ...string) string {
	t.Helper()
	said, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, said)
	}
	return strings.TrimSpace(string(said))
}

// disturb waits for the end of all jobs and disturbs each training once, when it has done a quarter of its steps.
func disturb(t *testing.T, out string) {
	t.Helper()
	disturbed, held := map[string]bool{}, map[string]time.Time{}
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		lines := script(t, "squeue", "-h", "-r", "-o", "%i %T %r")
		if lines == "" {
			break
		}
		for line := range strings.SplitSeq(lines, "\n") {
			id, state, _ := strings.Cut(line, " ")
			if state != "PENDING BeginTime" {
				delete(held, id)
			} else if since, known := held[id]; !known {
				held[id] = time.Now()
			} else if time.Since(since) > 5*time.Second {
				// Not the two minutes that Slurm waits; at once, what is left of the first attempt is in the way.
				_ = exec.Command("scontrol", "update", "JobId="+id, "StartTime=now").Run() // it may run meanwhile
			}
			if !strings.HasPrefix(state, "RUNNING") || disturbed[id] || !advanced(out, id) {
				continue
			}
			disturbed[id] = true
			_, element, _ := strings.Cut(id, "_")
			t.Logf("disturbing %s", id)
			switch element {
			case "0":
				trainings := children(taskOf(t, out, 1))
				if len(trainings) == 0 {
					t.Fatal("run-task has no child")
				}
				kill(t, trainings[0])
			case "1":
				kill(t, taskOf(t, out, 2))
			default:
				script(t, "scontrol", "requeue", id)
			}
		}
	}
	if len(disturbed) != 3 {
		t.Errorf("disturbed: %v, want three trainings", disturbed)
	}
}

var slurmStep = regexp.MustCompile(`train (\d+)/\d+\n`)

// advanced says that a training is past a quarter of its steps.
func advanced(out, id string) bool {
	log, err := os.ReadFile(filepath.Join(out, "log", "02-train-"+id+".log"))
	if err != nil {
		return false // not of this stage, or not yet
	}
	steps := slurmStep.FindAllSubmatch(log, -1)
	if steps == nil {
		return false
	}
	n, err := strconv.Atoi(string(steps[len(steps)-1][1]))
	return err == nil && n > slurmSteps/4
}

// taskOf finds the process of run-task for a task of the export in a folder: others may run on this machine.
func taskOf(t *testing.T, out string, index int) int {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, file := range files {
		args, err := os.ReadFile(file)
		text := strings.ReplaceAll(string(args), "\x00", " ")
		is := func(part string) bool { return strings.Contains(text, part) }
		if err == nil && is("farm run-task") && is(filepath.Join(out, "job.json")) &&
			is(fmt.Sprintf(" --index %d ", index)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	t.Fatalf("no run-task runs task %d", index)
	return 0
}

// children lists the children of a process.
func children(pid int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, file := range files {
		list, _ := os.ReadFile(file) // of a thread that may have ended
		for word := range strings.FieldsSeq(string(list)) {
			child, _ := strconv.Atoi(word)
			pids = append(pids, child)
		}
	}
	return pids
}

func kill(t *testing.T, pid int) {
	t.Helper()
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
}
