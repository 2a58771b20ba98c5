package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// BenchmarkPause measures how long training stands still for a checkpoint, streamed and copied, and how long until the
// file is whole.
func BenchmarkPause(b *testing.B) {
	for _, n := range []int{20_000, 200_000} {
		for _, c := range []struct {
			name string
			mode checkpoint.CopyMode
		}{{"streamed", checkpoint.CopyNever}, {"copied to mapped memory", checkpoint.CopyMapped},
			{"copied on the device", checkpoint.CopyDevice}} {
			b.Run(fmt.Sprintf("%d splats, %s", n, c.name), func(b *testing.B) { benchmarkPause(b, n, c.mode) })
		}
	}
}

func benchmarkPause(b *testing.B, n int, mode checkpoint.CopyMode) {
	views, small, scale, cfg, run := checkpointScene(b)
	cfg.RefineEvery, cfg.Iterations = 0, 1<<30
	init := scene.NewSplats(n, small.Degree)
	for i := range n { // those of the scene, again and again
		for row := range ref.ParamRows(small.Degree) {
			*paramsOf(init).At(row, i) = *paramsOf(small).At(row, i%small.N)
		}
		init.LogitOpacities[i] = -8
	}
	tr, err := trainOn(testDevice(b), views[:1], init, scale, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	tr.SetRun(run)
	tr.saver.writer.Copies = mode
	path := filepath.Join(b.TempDir(), "x")
	var pause, whole float64 // ms
	for b.Loop() {
		if err := tr.RunTo(context.Background(), tr.Step()+1, nil); err != nil {
			b.Fatal(err)
		}
		w, err := tr.SaveCheckpoint(path, true)
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Wait(); err != nil {
			b.Fatal(err)
		}
		pause, whole = pause+w.Pause.Seconds()*1e3, whole+w.Took().Seconds()*1e3
		b.SetBytes(w.Bytes)
	}
	b.ReportMetric(pause/float64(b.N), "ms-pause/op")
	b.ReportMetric(whole/float64(b.N), "ms-file/op")
}

// TestStretchesWhileGrowing trains in short stretches, so that nothing is in flight between them, with buffers that are
// too small again and again: what a frame said of an earlier attempt must not be taken for what it says now.
func TestStretchesWhileGrowing(t *testing.T) {
	d := testDevice(t)
	short := func(c *recipe.Config) { c.Iterations = 28 }
	want, _ := trainHash(t, d, short)
	views, init, scale, cfg := promiseScene(t)
	short(&cfg)
	tr := teamTrainer(t, []*Device{d}, views, init, scale, cfg)
	for step := 1; !tr.Complete(); step += 1 + step%4 {
		if step%3 == 0 {
			tr.shards.first.e.setup.isectCapacity = layout.MostBucket
			must.Do(t, errors.Join(tr.shards.first.e.programs.free(),
				tr.shards.first.e.memory.buildToFit()))
		}
		must.Do(t, tr.RunTo(context.Background(), step, nil))
	}
	s := must.Get(tr.Splats())(t)
	if got := modelHash(s); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
