package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
)

// jobRig is a job of two tasks without a device, in a folder of its own. Tests put results into the store: nothing is
// run.
type jobRig struct {
	t         *testing.T
	dir, file string
	job       *spec.Job
	plan      *spec.Plan
}

func newJobRig(t *testing.T, tasks string) *jobRig {
	t.Helper()
	r := &jobRig{t: t, dir: t.TempDir()}
	r.file = filepath.Join(r.dir, "job.toml")
	t.Setenv("XDG_STATE_HOME", filepath.Join(r.dir, "state"))
	must.Do(t, os.WriteFile(r.file, []byte("version = 1\nname = \"j\"\n"+tasks), 0o666))
	var err error
	if r.job, r.plan, err = readJob(r.file); err != nil {
		t.Fatal(err)
	}
	return r
}

// done puts results of a task into the store.
func (r *jobRig) done(index int) {
	r.t.Helper()
	root, err := store.Open(store.Options{URL: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	empty, err := os.OpenRoot(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	defer empty.Close()
	made := store.Made{Hash: r.plan.Hash(index), Attempt: 1}
	key := task.KeyOf(r.job, &r.plan.Tasks[index])
	if _, _, err := store.Commit(r.t.Context(), root, key, empty, nil, made); err != nil {
		r.t.Fatal(err)
	}
}

// run runs the job, and returns its exit code and what it says of errors.
func (r *jobRig) run(args ...string) (code int, said string) {
	var stderr bytes.Buffer
	code = run(append([]string{"farm", "run", r.file, "-o", r.dir}, args...), &bytes.Buffer{}, &stderr)
	return code, stderr.String()
}

const twoDemos = "[[task]]\nkind = \"demo\"\nid = \"a\"\n[[task]]\nkind = \"demo\"\nid = \"b\"\n"

// TestUnfinishedWorkStays runs one task of two: what the other one has on this machine stays until both are done.
func TestUnfinishedWorkStays(t *testing.T) {
	r := newJobRig(t, twoDemos)
	own := must.Get(localState("j", filepath.Join(r.dir, "j")))(t)
	saved := filepath.Join(own, "work", "b", "checkpoint")
	must.Do(t, os.MkdirAll(saved, 0o777))
	r.done(0)
	if code, said := r.run("--only", "a"); code != 0 || !output.IsFolder(saved) {
		t.Errorf("exit code %d, %s; the work of the other task is there: %v", code, said, output.IsFolder(saved))
	}
	r.done(1)
	if code, said := r.run(); code != 0 || output.IsFolder(own) {
		t.Errorf("exit code %d, %s; work is left: %v", code, said, output.IsFolder(own))
	}
}

// TestChosenAlone refuses no task for another one that could not be done here.
func TestChosenAlone(t *testing.T) {
	r := newJobRig(t, "[[task]]\nkind = \"demo\"\nid = \"film\"\n"+
		"[[task]]\nkind = \"train\"\nid = \"model\"\nsource = \"x\"\n")
	r.done(0)
	if code, said := r.run("--only", "film", "--devices", "none"); code != 0 {
		t.Errorf("exit code %d, %s", code, said)
	}
	if code, said := r.run("--devices", "none"); code != fault.ExitUsage ||
		!strings.Contains(said, "task model (train) needs a device") {
		t.Errorf("exit code %d, %s", code, said)
	}
}

// TestRedoHint tells nobody to continue with a command that would begin again.
func TestRedoHint(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for redo, want := range map[bool]string{false: "continue with the same command",
		true: "continue with the same command without --redo"} {
		v := newJobView(cli.New(nil, io.Discard, io.Discard), meter.None, "", redo)
		if got := fault.Hint(v.end(ctx, &local.Status{Tasks: make([]local.TaskStatus, 1)})); got != want {
			t.Errorf("the hint is %q, want %q", got, want)
		}
	}
}

// TestMissingInput says at the start, in a dry run and in an export which input is not there.
func TestMissingInput(t *testing.T) {
	r := newJobRig(t, "[[task]]\nkind = \"convert\"\nid = \"c\"\nto = \"spz\"\nmodel = \"nothere\"\n")
	want := "job.toml:7: task c: input \"nothere\" not found in " + r.dir
	out := filepath.Join(r.dir, "x")
	for _, args := range [][]string{{"run", "-o", r.dir}, {"run", "--dry-run"}, {"run", "--dry-run", "--json"},
		{"export", "-o", out, "--to", "slurm"}} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"farm", args[0], r.file}, args[1:]...), &stdout, &stderr)
		if code != fault.ExitSetup || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: code %d, %s", args, code, stderr.String())
		}
		listed := strings.Contains(stdout.String(), "convert")
		if listed != (args[1] == "--dry-run") || output.IsFolder(out) {
			t.Errorf("%q: %s", args, stdout.String())
		}
	}
}
