package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// checkpointScene is the promise scene with refinements and resets close together, and a record of the run.
func checkpointScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config, RunRecord) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	cfg.Iterations, cfg.SHInterval = 40, 10
	cfg.RefineStart, cfg.RefineStop, cfg.RefineEvery, cfg.ResetEvery = 5, 38, 6, 18
	run := RunRecord{Version: "test",
		Capture: checkpoint.CaptureRecord{Fingerprint: "f", Photos: len(views), Points: init.N, Resolution: "64x48"},
		Frame:   checkpoint.FrameRecord{Scale: 1, SceneScale: scale}}
	return views, init, scale, cfg, run
}

// saved is a checkpoint of tr as bytes.
func saved(t testing.TB, tr *Trainer, path string) []byte {
	t.Helper()
	w := must.Get(tr.SaveCheckpoint(path, false))(t)
	return contents(t, w)
}

func contents(t testing.TB, w *checkpoint.Write) []byte {
	t.Helper()
	must.Do(t, w.Wait())
	data := must.Get(os.ReadFile(w.Path))(t)
	if int64(len(data)) != w.Bytes {
		t.Errorf("%d bytes written, %d announced", len(data), w.Bytes)
	}
	return data
}

// resumed goes on with a checkpoint.
func resumed(t testing.TB, d *Device, path string, cfg recipe.Config) *Trainer {
	t.Helper()
	return resumedWith(t, d, path, cfg, TrainerOptions{})
}

// resumedWith is resumed with options.
func resumedWith(t testing.TB, d *Device, path string, cfg recipe.Config, o TrainerOptions) *Trainer {
	t.Helper()
	views, _, _, _, _ := checkpointScene(t)
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	defer c.Close()
	must.Do(t, c.Verify())
	cams, photos := splitViews(views)
	o.Depths = depthsOf(cams)
	tr := must.Get(NewTrainerFrom(d, cams, photos, c, cfg, o))(t)
	return tr
}

// undisturbed is one run with a checkpoint after every unit, by the number of the unit that comes next, and the model
// at the end.
type undisturbed struct {
	paths  map[uint32]string
	kinds  map[uint32]recipe.Kind
	last   uint32
	splats *scene.Splats
	grew   int // units that failed for want of room and were done again
}

func runUndisturbed(t testing.TB, d *Device, dir string, change func(*recipe.Config)) undisturbed {
	t.Helper()
	views, init, scale, cfg, run := checkpointScene(t)
	change(&cfg)
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	tr.SetRun(run)
	u := undisturbed{paths: map[uint32]string{}, kinds: map[uint32]recipe.Kind{}}
	for tr.queue.next.Step < cfg.Iterations {
		must.Do(t, tr.queue.advance(context.Background()))
		path := filepath.Join(dir, "now.safetensors")
		data := saved(t, tr, path)
		keep := filepath.Join(dir,
			"unit"+string(rune('a'+tr.queue.next.Number/26))+string(rune('a'+tr.queue.next.Number%26)))
		if old, err := os.ReadFile(keep); err == nil {
			u.grew++
			if !bytes.Equal(old, data) {
				t.Errorf("unit %d failed, and the state it goes back to is another", tr.queue.next.Number)
			}
		}
		must.Do(t, os.Rename(path, keep))
		u.last = tr.queue.next.Number
		u.paths[u.last], u.kinds[u.last] = keep, tr.queue.next.Kind
	}
	u.splats = must.Get(tr.Splats())(t)
	return u
}

// smallChunks makes devices opened from now on have chunks of few splats, as many as a binding of so many bytes holds,
// so that models grow by some of them.
func smallChunks(t *testing.T, bytes int) {
	t.Helper()
	limits := t.TempDir() + "/limits.json"
	text := fmt.Sprintf(`{"maxStorageBufferRange": %d, "maxMemoryAllocationSize": 8388608}`, bytes)
	must.Do(t, os.WriteFile(limits, []byte(text), 0o644))
	t.Setenv("VKSPLAT_LIMITS", limits)
}

// inChunks fails a test of chunks where a trainer has only one.
func inChunks(t *testing.T, tr *Trainer) {
	t.Helper()
	if n := len(tr.shards.first.e.setup.model.chunks); n < 2 {
		t.Errorf("%d chunk of %d splats: the test proves nothing of chunks", n, tr.NSplats())
	}
}

// TestResumeAnywhere resumes at every unit of a run, trains that unit, and wants the checkpoint that the undisturbed
// run has after it: byte for byte, so that by induction each of them leads to the same end. Some of them are trained to
// the end. The short form leaves out most steps that follow a step.
func TestResumeAnywhere(t *testing.T) {
	steps := 4 // of the shorter runs, at least
	if filetest.Long() {
		steps = 9
	}
	t.Run("full", func(t *testing.T) {
		change := func(c *recipe.Config) { c.Iterations = 21 }
		want := map[recipe.Kind]int{recipe.Step: 6, recipe.Carve: 2, recipe.Refine: 2, recipe.Reset: 1}
		if filetest.Long() {
			change = func(*recipe.Config) {}
			want = map[recipe.Kind]int{recipe.Step: 38, recipe.Carve: 4, recipe.Refine: 4, recipe.Reset: 1}
		}
		testResumeAnywhere(t, change, want)
	})
	t.Run("mixed", func(t *testing.T) {
		testResumeAnywhere(t, func(c *recipe.Config) {
			c.Precision, c.Iterations, c.RefineEvery, c.ResetEvery = recipe.PrecisionMixed, 12, 3, 7
			c.Robust, c.RobustFactor = true, 0.5
			c.GrowGrad2D /= 8       // no chunk would fill otherwise,
			c.MaxSplats = 1_000_000 // as the ceiling of what fits in memory makes larger chunks
		}, map[recipe.Kind]int{recipe.Step: steps, recipe.Refine: 1, recipe.Reset: 1})
	})
	t.Run("progressive resolution", func(t *testing.T) {
		testResumeAnywhere(t, func(c *recipe.Config) {
			c.Iterations, c.RefineEvery, c.ResetEvery, c.NumDownscales, c.ResolutionSchedule = 12, 3, 7, 1, 6
		}, map[recipe.Kind]int{recipe.Step: steps, recipe.Refine: 1, recipe.Reset: 1})
	})
}

// testResumeAnywhere wants at least so many units of each kind.
func testResumeAnywhere(t *testing.T, change func(*recipe.Config), want map[recipe.Kind]int) {
	smallChunks(t, 1<<20)
	d := testDevice(t)
	dir := t.TempDir()
	u := runUndisturbed(t, d, dir, change)
	if u.grew == 0 {
		t.Error("nothing grew: the test proves too little")
	}
	_, _, _, cfg, _ := checkpointScene(t)
	change(&cfg)
	read := func(number uint32) []byte {
		data := must.Get(os.ReadFile(u.paths[number]))(t)
		return data
	}
	seen := map[recipe.Kind]int{}
	for number := uint32(2); number < u.last; number++ {
		if u.kinds[number] == recipe.Step && u.kinds[number-1] == recipe.Step && number%6 != 3 && !filetest.Long() {
			continue
		}
		seen[u.kinds[number]]++
		tr := resumed(t, d, u.paths[number], cfg)
		if got := saved(t, tr, filepath.Join(dir, "again")); !bytes.Equal(got, read(number)) {
			t.Errorf("unit %d: what was read is written otherwise", number)
		}
		for again := true; again || tr.queue.next.Number == number; {
			if tr.queue.next.Number == number {
				must.Do(t, tr.queue.advance(context.Background()))
			}
			again = must.Get(tr.queue.drain())(t)
		}
		if got := saved(t, tr, filepath.Join(dir, "next")); !bytes.Equal(got, read(number+1)) {
			t.Errorf("unit %d (%s): resumed, it gives other bytes", number, u.kinds[number])
		}
		if number%17 == 3 {
			must.Do(t, tr.Run(context.Background(), nil))
			if got := saved(t, tr, filepath.Join(dir, "end")); !bytes.Equal(got, read(u.last)) {
				t.Errorf("resumed at unit %d, the run ends otherwise", number)
			}
		}
		must.Do(t, tr.Close())
	}
	for kind, n := range want {
		if seen[kind] < n {
			t.Errorf("too few units of a kind: %v, want %v", seen, want)
		}
	}
	c := must.Get(checkpoint.Open(u.paths[u.last]))(t)
	defer c.Close()
	got, trained := modelHash(modelIn(t, u.paths[u.last])), modelHash(u.splats)
	if got != trained || c.Header.Step != cfg.Iterations {
		t.Errorf("the file has the model %s of step %d, the trainer %s", got, c.Header.Step, trained)
	}
}

// TestCheckpointWays writes one state in every way there is, and goes on with other chunks, budgets and buffers.
func TestCheckpointWays(t *testing.T) {
	t.Run("full", func(t *testing.T) {
		if filetest.Long() {
			testCheckpointWays(t, 25, func(*recipe.Config) {})
		} else {
			testCheckpointWays(t, 20, func(c *recipe.Config) { c.Iterations = 27 }) // after refinements and a reset
		}
	})
	t.Run("mixed", func(t *testing.T) {
		testCheckpointWays(t, 7, func(c *recipe.Config) { c.Precision, c.Iterations = recipe.PrecisionMixed, 13 })
	})
}

// lastAs writes a checkpoint without a copy while the model is read and drawn.
func lastAs(t *testing.T, path string) func(tr *Trainer) *checkpoint.Write {
	return func(tr *Trainer) *checkpoint.Write {
		w := must.Get(tr.saver.save(path, true, true))(t)
		if !w.Behind || w.Copied || w.Pause <= 0 {
			t.Errorf("behind %v, copied %v, pause %v", w.Behind, w.Copied, w.Pause)
		}
		n := 0
		if err := tr.ReadSplats(func(piece *scene.Splats) error {
			n += piece.N
			return nil
		}); err != nil || n != tr.NSplats() {
			t.Errorf("%d of %d splats read: %v", n, tr.NSplats(), err)
		}
		if _, err := tr.RenderInto(nil, tr.run.cams[0]); err != nil {
			t.Error(err)
		}
		return w
	}
}

// testCheckpointWays writes the state after some of the steps.
func testCheckpointWays(t *testing.T, after int, change func(*recipe.Config)) {
	d := testDevice(t)
	dir := t.TempDir()
	views, init, scale, cfg, run := checkpointScene(t)
	change(&cfg)
	run2 := func(d *Device, save func(tr *Trainer) *checkpoint.Write) []byte {
		tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
		defer tr.Close()
		tr.SetRun(run)
		tr.shards.first.maxSplats = 4000 // not what this device's memory allows
		must.Do(t, tr.RunTo(context.Background(), after, nil))
		w := save(tr)
		if err := tr.Run(context.Background(), nil); err != nil { // while the file is written
			t.Fatal(err)
		}
		data := contents(t, w)
		end := filepath.Join(dir, "end")
		if _, err := os.Stat(end); err != nil {
			saved(t, tr, end)
		}
		return data
	}
	in := func(mode checkpoint.CopyMode, wantCopy bool) func(tr *Trainer) *checkpoint.Write {
		return func(tr *Trainer) *checkpoint.Write {
			tr.saver.writer.Copies = mode
			w := must.Get(tr.SaveCheckpoint(filepath.Join(dir, "mid"), true))(t)
			if w.Copied != wantCopy || w.Pause <= 0 {
				t.Errorf("mode %d: copied %v, pause %v", mode, w.Copied, w.Pause)
			}
			return w
		}
	}
	want := run2(d, in(checkpoint.CopyNever, false))
	for _, mode := range []checkpoint.CopyMode{checkpoint.CopyIfRoom, checkpoint.CopyDevice, checkpoint.CopyMapped} {
		if got := run2(d, in(mode, true)); !bytes.Equal(got, want) {
			t.Errorf("mode %d: other bytes than streamed", mode)
		}
	}
	if got := run2(d, lastAs(t, filepath.Join(dir, "mid"))); !bytes.Equal(got, want) {
		t.Error("the last one: other bytes than streamed")
	}
	end := must.Get(os.ReadFile(filepath.Join(dir, "end")))(t)
	goOn := func(name string, d *Device, o TrainerOptions) {
		t.Helper()
		tr := resumedWith(t, d, filepath.Join(dir, "mid"), cfg, o)
		defer tr.Close()
		if m := tr.MemoryStats(); m.Ceiling != 4000 || !m.CeilingFits {
			t.Errorf("%s: a ceiling of %d splats, fits %v", name, m.Ceiling, m.CeilingFits)
		}
		must.Do(t, tr.Run(context.Background(), nil))
		if got := saved(t, tr, filepath.Join(dir, "end2")); !bytes.Equal(got, end) {
			t.Errorf("%s: the run ends with other bytes", name)
		}
		if name == "small chunks" {
			inChunks(t, tr)
		}
	}
	t.Run("bands", func(t *testing.T) {
		inBands(t, 3)
		goOn("larger buffers and bands", d, larger)
	})
	smallChunks(t, 1<<20/thinning())
	goOn("small chunks", testDevice(t), TrainerOptions{})
}

// TestStagingPieces sends chunks through staging memory that holds only a part of them, there and back.
func TestStagingPieces(t *testing.T) {
	for _, precision := range precisions {
		t.Run(precision, func(t *testing.T) { testStagingPieces(t, precision) })
	}
}

func testStagingPieces(t *testing.T, precision string) {
	d := testDevice(t)
	tr, _, _ := checkpointTrainer(t, d, func(cfg *recipe.Config) { cfg.Precision = precision })
	if n := tr.NSplats(); n <= 2*checkpoint.MinPiece {
		t.Fatalf("%d splats are too few", n)
	}
	dir := t.TempDir()
	early := filepath.Join(dir, "early")
	first := saved(t, tr, early)
	must.Do(t, tr.RunTo(context.Background(), 3, nil))
	want := saved(t, tr, filepath.Join(dir, "late"))
	live := tr.shards.state(tr.saver.extra)
	live[0].Pieces = checkpoint.MinPiece
	path := filepath.Join(dir, "pieces")
	content := checkpoint.Content{Header: tr.saver.header(), State: live}
	must.Get(tr.saver.writer.Save(path, content, time.Now(), false))(t)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Error("other bytes through a small staging buffer")
	}
	c := must.Get(checkpoint.Open(early))(t)
	defer c.Close()
	must.Do(t, live.Read(c, false))
	tr.saver.resume(&c.Header, &tr.o)
	if got := saved(t, tr, path); !bytes.Equal(got, first) {
		t.Error("other state through a small staging buffer")
	}
}

// TestMoreIterations goes on beyond the end: the bytes up to there are those of the shorter run, and the means'
// learning rate stays.
func TestMoreIterations(t *testing.T) {
	d := testDevice(t)
	tr, views, cfg := checkpointTrainer(t, d, func(c *recipe.Config) { c.Iterations = 10 })
	must.Do(t, tr.Run(context.Background(), nil))
	path := filepath.Join(t.TempDir(), "x")
	saved(t, tr, path)
	cfg.Iterations = 14
	longer := resumed(t, d, path, cfg)
	defer longer.Close()
	must.Do(t, longer.Run(context.Background(), nil))
	if longer.Step() != 14 || longer.StartStep() != 10 {
		t.Errorf("step %d, started at %d", longer.Step(), longer.StartStep())
	}
	p := longer.shards.first.e.programs.frames[0].hostParams
	if want := float32(cfg.LRMeans * tr.run.sceneScale * cfg.LRMeansFinal); p.LrMeans != want {
		t.Errorf("learning rate %g after the schedule, want %g", p.LrMeans, want)
	}
	saved(t, longer, path)
	c := must.Get(checkpoint.Open(path))(t)
	defer c.Close()
	if h := c.Header; h.ScheduleIterations != 10 || h.Config.Iterations != 14 || len(h.Deviations) != 0 {
		t.Errorf("a schedule of %d of %d iterations, deviations %v", h.ScheduleIterations, h.Config.Iterations,
			h.Deviations)
	}
	cfg.Iterations = 13
	if _, err := resumeOn(d, views, c, cfg); err == nil || !strings.Contains(err.Error(), "14 steps are done") {
		t.Errorf("of fewer iterations than done: %v", err)
	}
}
