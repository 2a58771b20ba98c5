//go:build unix

package train

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
)

// contentsOf maps the files below a folder to hashes of their contents, without locks and what is temporary.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range filetest.List(t, dir) {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		if !strings.Contains(filepath.Base(name), ".tmp") && filepath.Base(name) != output.LockName &&
			!strings.HasPrefix(filepath.Base(name), ".probe") {
			all[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	return all
}

// overwriting is a run in a process of its own that replaces another one.
type overwriting struct{ Scene, Out, Resume string }

// options are those of a run of so many steps.
func (w *overwriting) options(steps int) *Options {
	o := NewOptions()
	o.Scene, o.Out, o.Config.Iterations, o.Eval, o.Tensorboard, o.Progress = w.Scene, w.Out, steps, true, true,
		meter.None
	o.Checkpoints.Overwrite, o.Checkpoints.Resume = true, w.Resume
	return o
}

// start begins a run that has no end.
func (w *overwriting) start(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	text := must.Get(json.Marshal(w))(t)
	var said bytes.Buffer
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledOverwrite$")
	cmd.Env = append(os.Environ(), ownProcess+"="+string(text))
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if a test failed before
	return cmd, &said
}

// ownProcess is set where a test runs in a process of its own.
const ownProcess = "VKSPLAT_TEST_PROCESS"

// TestKilledOverwrite kills runs at random moments that replace another one: at each, the other one is there or the new
// one has a checkpoint.
func TestKilledOverwrite(t *testing.T) {
	if text := os.Getenv(ownProcess); text != "" {
		var w overwriting
		must.Do(t, json.Unmarshal([]byte(text), &w))
		o := w.options(1000000)
		o.Checkpoints.Every, o.EvalAt = everyFlag{steps: 10}, cli.Steps{4}
		_, err := Do(cli.New(nil, os.Stdout, os.Stderr), o)
		t.Fatal("the run has ended: ", err)
	}
	kills := 6
	if filetest.Long() {
		kills = 60
	}
	scene, out := runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	var old map[string]string
	came, stood := 0, 0
	for i := range kills {
		if old == nil {
			o := (&overwriting{Scene: scene, Out: out}).options(6)
			o.Checkpoints.SaveAt = cli.Steps{3}
			must.Get(Do(cli.New(nil, io.Discard, io.Discard), o))(t)
			old = contentsOf(t, out)
		}
		began := time.Now()
		w := overwriting{Scene: scene, Out: out}
		if i%2 == 1 {
			w.Resume = filepath.Join(out, output.CheckpointFolder, "step_3.safetensors")
		}
		cmd, said := w.start(t)
		// the first is killed while it begins, half of the others about when they replace the earlier run
		until := []string{out, filepath.Join(out, output.NextFolder),
			filepath.Join(out, output.NextFolder, output.CheckpointFolder, ".step_10*")}[min(i, 1+i/2%2)]
		for there := 0; there == 0 && time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
			list, err := filepath.Glob(until)
			if there = len(list); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(random.Int63n(int64(400 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		_ = cmd.Wait() // it was killed
		must.Get(output.Recover(out))(t)
		switch now := contentsOf(t, out); {
		case maps.Equal(now, old):
			came++
		case wholeAbove(t, out, 6): // the new run's first checkpoint is of step 10
			stood, old = stood+1, nil
		default:
			t.Fatalf("seed %d: there are %v, want %v\n%s", seed, now, old, said)
		}
	}
	t.Logf("the earlier run was there %d times, the new one %d times", came, stood)
}

// wholeAbove reports whether the newest checkpoint in out is whole, above a step, and of a run that has a record.
func wholeAbove(t *testing.T, out string, step int) bool {
	t.Helper()
	dir := filepath.Join(out, output.CheckpointFolder)
	list, err := output.ListCheckpoints(dir)
	if err != nil || len(list) == 0 || list[len(list)-1].Step <= step || readBegun(dir) == nil {
		return false
	}
	c, err := output.OpenWhole(list[len(list)-1].Path)
	return err == nil && c.Close() == nil
}

// TestKilledExport claims the folder of a run that was killed while it replaced one with an export: the earlier run is
// as it was, and its export counts as the program's.
func TestKilledExport(t *testing.T) {
	o := NewOptions()
	o.Out, o.Checkpoints.Resume = t.TempDir(), ResumeAuto
	export := filepath.Join(t.TempDir(), "made.spz")
	o.Exports = convert.Exports{export}
	s := &NewRun(o, cli.New(nil, io.Discard, io.Discard)).place
	filetest.Make(t, o.Out, "stats.json")
	filetest.Make(t, filepath.Dir(export), "made.spz")
	own := output.ReadWritten(o.Out)
	must.Do(t, errors.Join(own.Begin(filepath.Join(o.Out, "stats.json"), export), own.End()))
	s.old = output.Replaced(o.Out, -1)
	must.Do(t, errors.Join(s.stage(), s.list()))
	release := must.Get(s.claim())(t)
	release()
	if !output.IsFile(filepath.Join(o.Out, "stats.json")) || output.IsFolder(filepath.Join(o.Out, output.NextFolder)) {
		t.Error("the earlier run is not as it was")
	}
}

// TestStopOnFullDisk stops a run that is to replace another one and whose checkpoint cannot be written: its model
// replaces the other run.
func TestStopOnFullDisk(t *testing.T) {
	r, _ := startedRun(t, false)
	must.Do(t, r.Trainer.RunTo(t.Context(), 2, nil))
	filetest.Make(t, r.Out, "point_cloud/iteration_7/point_cloud.ply")
	r.place.old = output.Replaced(r.Out, -1)
	must.Do(t, errors.Join(r.place.stage(), r.place.list()))
	watched(t, r)
	filetest.Make(t, r.Out, output.NextFolder+"/"+output.CheckpointFolder) // a file where the folder is to be
	r.id.text = "known"
	_, err := r.conclude(t.Context(), true)
	if err == nil || !output.IsFile(modelFile(r.Out, 2)) || output.IsFile(modelFile(r.Out, 7)) || r.place.staged {
		t.Errorf("%v: there are %q", err, filetest.List(t, r.Out))
	}
}

// TestReplacedLate has what is replaced in use for a while: the run writes on beside it, and replaces it with the next
// checkpoint.
func TestReplacedLate(t *testing.T) {
	o := NewOptions()
	o.Out, o.Tensorboard = t.TempDir(), true
	filetest.Make(t, o.Out, "test/ours_7/a.png", "checkpoints/step_7.safetensors")
	var said strings.Builder
	r := NewRun(o, cli.New(nil, io.Discard, &said))
	s := &r.place
	s.old = output.Replaced(o.Out, -1)
	must.Do(t, errors.Join(s.stage(), s.list()))
	file := &metricsFile{unsure: unsure{console: r.Console}, path: filepath.Join(o.Out, output.MetricsFile)}
	shown, err := newBoard(o, r.Console)
	if err != nil {
		t.Fatal(err)
	}
	r.observers = []Observer{file, shown}
	err = r.emit(&Started{Options: o, At: r.place.at, Past: &history{}})
	must.Do(t, errors.Join(err, r.emit(&Begun{})))
	write := func(text string) {
		t.Helper()
		_, err := file.f.WriteString(text)
		must.Do(t, errors.Join(err, shown.(*board).file.scalars(1, scalar{"a", 1})))
	}
	write("one ")
	away, stuck := filepath.Join(t.TempDir(), "away"), filepath.Join(o.Out, "test", "ours_7")
	must.Do(t, errors.Join(os.Rename(stuck, away), os.WriteFile(stuck, nil, 0o666)))
	if err := s.replaceEarlier(); err == nil || !s.staged {
		t.Fatal("replaced, though a file of the earlier run cannot be removed")
	}
	write("two ")
	must.Do(t, errors.Join(os.Remove(stuck), os.Rename(away, stuck), s.replaceEarlier()))
	write("three")
	must.Do(t, errors.Join(file.Close(), shown.Close()))
	text, err := os.ReadFile(filepath.Join(o.Out, output.MetricsFile))
	if err != nil || string(text) != "one two three" {
		t.Errorf("%q, %v", text, err)
	}
	if names := filetest.List(t, o.Out); slices.Contains(names, "checkpoints/step_7.safetensors") || len(names) != 3 {
		t.Errorf("there are %q", names)
	}
}
