//go:build unix

package train

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	"vksplat/internal/run/captured"
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
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(filepath.Base(name), ".tmp") && filepath.Base(name) != output.LockName &&
			!strings.HasPrefix(filepath.Base(name), ".probe") {
			all[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	return all
}

// lacks returns the files of old that are neither in out nor put aside there.
func lacks(t *testing.T, old map[string]string, out string) (list []string) {
	t.Helper()
	now := contentsOf(t, out)
	for name, content := range old {
		if now[name] != content && now[output.AsideFolder+"/"+name] != content &&
			now[output.AsideMoving+"/"+name] != content {
			list = append(list, name)
		}
	}
	return list
}

// killedAt calls f and ends it before its n-th change of the disk, as a kill does. done says that there was no such
// change.
func killedAt(n int, f func()) (done bool) {
	type kill struct{}
	defer func() {
		output.AsideStep = func() {}
		if r := recover(); r != nil {
			if _, killed := r.(kill); !killed {
				panic(r)
			}
		}
	}()
	output.AsideStep = func() {
		if n--; n < 0 {
			panic(kill{})
		}
	}
	f()
	return true
}

// listFiles writes the list of a folder whose files of these names a run wrote.
func listFiles(t *testing.T, out string, names ...string) {
	t.Helper()
	own := output.ReadWritten(out)
	wrote := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == output.WrittenFile })
	if err := errors.Join(own.Begin(captured.PathsIn(out, wrote)...), own.End()); err != nil {
		t.Fatal(err)
	}
}

// TestAsideAnywhere ends the putting aside of a run at every place, and then its coming back at every place: the run is
// never lost, and comes back whole.
func TestAsideAnywhere(t *testing.T) {
	const event = "tensorboard/" + output.TensorboardPrefix
	old := []string{"cameras.json", "metrics.jsonl", "report.html", "stats.json", output.WrittenFile,
		"checkpoints/save_at.json", "checkpoints/step_7.safetensors", event + "1" + output.TensorboardSuffix,
		"point_cloud/iteration_7/point_cloud.ply", "point_cloud/iteration_7/mine.ply", "test/ours_7/a.png"}
	stride := 4
	if filetest.Long() {
		stride = 1
	}
	for _, back := range []bool{false, true} { // whether the new run goes on with a step of the old one
		for n, done := 0, false; !done; n++ {
			for m, settled := n%stride, false; !settled; m += stride {
				out := t.TempDir()
				filetest.Make(t, out, old...)
				listFiles(t, out, old...)
				o := NewOptions()
				o.Out = out
				before := contentsOf(t, out)
				r := NewRun(o, &cli.Console{})
				s := newSaver(r)
				r.saver = s
				after := -1
				if back {
					after = 3
				}
				s.left, s.foreign = output.RunLeftovers(out, after), []string{s.checkpointPath(7)}
				done = killedAt(n, func() {
					if err := s.putAside(after); err != nil {
						t.Fatal(err)
					}
					if err := s.list(); err != nil {
						t.Fatal(err)
					}
					output.AsideStep()
					wrote := []string{"test/ours_4/b.png", "point_cloud/iteration_4/point_cloud.ply"}
					for _, name := range wrote {
						if err := s.own.Begin(filepath.Join(out, name)); err != nil {
							t.Fatal(err)
						}
					}
					filetest.Make(t, out, append(wrote, "input.ply", event+"2"+output.TensorboardSuffix)...)
					for _, name := range []string{output.MetricsFile, "cameras.json", "checkpoints/save_at.json"} {
						if err := os.WriteFile(filepath.Join(out, name), []byte("other"), 0o666); err != nil {
							t.Fatal(err)
						}
					}
					output.AsideStep()
					if err := s.unlist(); err != nil {
						t.Fatal(err)
					}
				})
				if list := lacks(t, before, out); len(list) > 0 {
					t.Fatalf("ended at change %d: lost %q", n, list)
				}
				var err error
				settled = killedAt(m, func() { _, err = output.RecoverAside(out) })
				if list := lacks(t, before, out); err != nil || len(list) > 0 {
					t.Fatalf("ended at change %d and in coming back at %d: %v, lost %q", n, m, err, list)
				}
				if _, err := output.RecoverAside(out); err != nil {
					t.Fatal(err)
				}
				if after := contentsOf(t, out); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Fatalf("ended at change %d and in coming back at %d: there are %v, want %v", n, m, after, before)
				}
			}
		}
	}
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
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledOverwrite$")
	cmd.Env = append(os.Environ(), ownProcess+"="+string(text))
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
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
			if _, err := Do(cli.New(nil, io.Discard, io.Discard), o); err != nil {
				t.Fatal(err)
			}
			old = contentsOf(t, out)
		}
		began := time.Now()
		w, after := overwriting{Scene: scene, Out: out}, -1
		if i%2 == 1 {
			after, w.Resume = 3, filepath.Join(out, output.CheckpointFolder, "step_3.safetensors")
		}
		cmd, said := w.start(t)
		folder := filepath.Join(out, output.AsideFolder)
		// the first is killed while it begins
		for i > 0 && !output.IsFolder(folder) && time.Since(began) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.Int63n(int64(400 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		_ = cmd.Wait() // it was killed
		if lost := lacks(t, old, out); len(lost) > 0 && !output.Stands(out, after) {
			t.Fatalf("seed %d: there is no checkpoint, and lost is %q\n%s", seed, lost, said)
		}
		back, err := output.RecoverAside(out)
		if err != nil {
			t.Fatal(err)
		}
		if lost := lacks(t, old, out); len(lost) > 0 {
			stood++
			if back || !output.Stands(out, after) {
				t.Fatalf("seed %d: came back %v, lost is %q", seed, back, lost)
			}
			old = nil
			continue
		}
		if now := contentsOf(t, out); fmt.Sprint(now) != fmt.Sprint(old) {
			t.Fatalf("seed %d: there are %v, want %v", seed, now, old)
		}
		came++
	}
	t.Logf("the earlier run was there %d times, the new one %d times", came, stood)
}

// TestKilledExport claims the folder of a run that was killed while it replaced one with an export: the earlier run is
// restored, and its export counts as the program's.
func TestKilledExport(t *testing.T) {
	o := NewOptions()
	o.Out, o.Checkpoints.Resume = t.TempDir(), ResumeAuto
	export := filepath.Join(t.TempDir(), "made.spz")
	o.Exports = convert.Exports{export}
	r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
	s := newSaver(r)
	r.saver = s
	filetest.Make(t, o.Out, "stats.json")
	filetest.Make(t, filepath.Dir(export), "made.spz")
	own := output.ReadWritten(o.Out)
	if err := errors.Join(own.Begin(filepath.Join(o.Out, "stats.json"), export), own.End()); err != nil {
		t.Fatal(err)
	}
	s.left = s.leftovers()
	if err := errors.Join(s.putAside(-1), s.list()); err != nil {
		t.Fatal(err)
	}
	release, err := r.claim()
	if err != nil {
		t.Fatal(err)
	}
	release()
	if !output.IsFile(filepath.Join(o.Out, "stats.json")) {
		t.Error("the earlier run has not come back")
	}
}

// TestStopOnFullDisk stops a run that is to replace another one and whose checkpoint cannot be written: the model is.
func TestStopOnFullDisk(t *testing.T) {
	r, _ := startedRun(t, false)
	if err := r.Trainer.RunTo(t.Context(), 2, nil); err != nil {
		t.Fatal(err)
	}
	filetest.Make(t, r.Out, output.CheckpointFolder) // a file where the folder is to be
	r.saver.aside = true
	r.id.text = "known"
	_, err := r.conclude(t.Context(), true)
	if err == nil || !output.IsFile(modelFile(r.Out, 2)) || r.saver.aside {
		t.Errorf("%v: the model is there: %v", err, output.IsFile(modelFile(r.Out, 2)))
	}
}

// TestDoneStands kills a resumed run that is done, and has no checkpoint, before it removes the earlier one: it stands.
func TestDoneStands(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	r := NewRun(o, &cli.Console{})
	s := newSaver(r)
	r.saver = s
	old := []string{"stats.json", "checkpoints/step_7.safetensors"}
	filetest.Make(t, o.Out, old...)
	listFiles(t, o.Out, old...)
	s.foreign = []string{s.checkpointPath(7)}
	if err := errors.Join(s.putAside(3), s.list()); err != nil {
		t.Fatal(err)
	}
	if output.Stands(o.Out, 3) {
		t.Fatal("a run that has only begun stands")
	}
	filetest.Make(t, o.Out, "stats.json", "point_cloud/iteration_5/point_cloud.ply")
	back, err := output.RecoverAside(o.Out)
	if back || err != nil || len(output.FormerModels(o.Out)) != 1 || output.AsideIn(o.Out) != "" {
		t.Errorf("came back: %v, %v; there are %q", back, err, filetest.List(t, o.Out))
	}
}

// TestDropFails has the removal of the earlier run fail: the user is told, at the end of the run and at the next start.
func TestDropFails(t *testing.T) {
	o := NewOptions()
	o.Out = t.TempDir()
	filetest.Make(t, o.Out, output.StatsFile, output.AsideFolder+"/old")
	listFiles(t, o.Out, output.StatsFile)
	output.AsideStep = func() { filetest.Make(t, o.Out, output.AsideGone+"/in the way") }
	defer func() { output.AsideStep = func() {} }()
	var said strings.Builder
	s := newSaver(NewRun(o, cli.New(nil, io.Discard, &said)))
	s.aside = true
	s.standing()
	if !strings.Contains(said.String(),
		"the earlier run in "+filepath.Join(o.Out, output.AsideFolder)+" is not removed") {
		t.Errorf("said is %q", said.String())
	}
	if _, err := output.RecoverAside(o.Out); err == nil || fault.Hint(err) == "" {
		t.Errorf("at the next start: %v", err)
	}
}
