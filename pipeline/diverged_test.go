package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/recipe"
)

// TestDivergedCheckpoint trains with a rate at which the model, but not the loss, becomes infinite. No checkpoint is
// written then, earlier files stay, and training ends, also when the file is written in the background.
func TestDivergedCheckpoint(t *testing.T) {
	for _, background := range []bool{false, true} {
		views, init, scale, cfg := promiseScene(t)
		cfg.LRSH0, cfg.Iterations, cfg.RefineEvery = 1e38, 200, 0
		tr, err := trainOn(testDevice(t), views, init, scale, cfg)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "before")
		must.Do(t, os.WriteFile(path, []byte("earlier"), 0o666))
		if err := tr.RunTo(t.Context(), 40, nil); err != nil {
			t.Fatalf("this test needs a finite loss: %v", err)
		}
		w, err := tr.SaveCheckpoint(path, background)
		if err == nil {
			err = w.Wait()
		}
		if !errors.Is(err, ErrDiverged) || fault.Hint(err) == "" {
			t.Errorf("background %v: got %v", background, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "earlier" {
			t.Errorf("the earlier file is gone: %v", err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%d files are left, %v", len(files), err)
		}
		if err := tr.Run(t.Context(), nil); !errors.Is(err, ErrDiverged) || tr.Step() != 40 {
			t.Errorf("step %d after the checkpoint: %v", tr.Step(), err)
		}
		if _, err := tr.SaveCheckpoint(path, background); !errors.Is(err, ErrDiverged) {
			t.Errorf("once more: %v", err)
		}
		if _, err := tr.Splats(); !errors.Is(err, ErrDiverged) {
			t.Errorf("the model can be read: %v", err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStrays lets a checkpoint have single splats without numbers while a refinement is to come, which removes them.
func TestStrays(t *testing.T) {
	cfg := recipe.Default()
	cfg.Iterations, cfg.RefineStart, cfg.RefineStop, cfg.RefineEvery = 1000, 100, 500, 100
	for step := range 600 {
		want := false
		for s := step; s < cfg.Iterations; s++ {
			want = want || cfg.Refines(s)
		}
		if cfg.RefinesFrom(step) != want {
			t.Errorf("a refinement after step %d: %v", step, !want)
		}
	}
	s := &saver{run: &training{cfg: cfg}, queue: &queue{next: recipe.Unit{Kind: recipe.Step, Step: 400}},
		report: &report{progress: Progress{Splats: 1000}}}
	if n := s.strays(); n != 10 {
		t.Errorf("%d strays", n)
	}
	if s.queue.next.Kind = recipe.Reset; s.strays() != 0 {
		t.Error("strays after the last refinement")
	}
}
