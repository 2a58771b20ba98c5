package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// endedRun trains all steps of a run with held-out photos and a checkpoint of step 2.
func endedRun(t *testing.T) *Run {
	t.Helper()
	r, _ := startedRun(t, true)
	_, r.Test = r.Capture.Split(2)
	r.id.text = "known"
	r.saver.o.Every.steps = 2
	must.Do(t, r.train(t.Context()))
	return r
}

// TestEnding writes checkpoint, model and scores of a run that is done: one checkpoint is left, and stats.json tells of
// both.
func TestEnding(t *testing.T) {
	r := endedRun(t)
	st := must.Get(r.conclude(t.Context(), false))(t)
	if n := len(st.Run.Checkpoints); n != 2 || st.Run.Checkpoints[1].Step != 3 || st.Scores == nil {
		t.Errorf("%+v, scores %v", st.Run.Checkpoints, st.Scores)
	}
	have := filetest.List(t, filepath.Join(r.Out, output.CheckpointFolder))
	if text := strings.Join(have, " "); strings.Contains(text, "step_2") || strings.Contains(text, ".tmp") ||
		!output.IsFile(r.saver.checkpointPath(3)) || r.saver.newest() != r.saver.checkpointPath(3) {
		t.Errorf("checkpoints: %q, newest %q", have, r.saver.newest())
	}
	if !output.IsFile(modelFile(r.Out, 3)) {
		t.Error("there is no model")
	}
}

// TestEndingCheckpointFails has the last checkpoint fail in the background: the run ends with that error, the model and
// the scores are written all the same, and the checkpoint before it stays.
func TestEndingCheckpointFails(t *testing.T) {
	r := endedRun(t)
	path := r.saver.checkpointPath(3)
	filetest.Make(t, path, "in the way") // a folder is not replaced
	_, err := r.conclude(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if r.saver.newest() != r.saver.checkpointPath(2) || !output.IsFile(r.saver.checkpointPath(2)) {
		t.Errorf("the newest checkpoint is %q", r.saver.newest())
	}
	if !output.IsFile(modelFile(r.Out, 3)) || !output.IsFile(filepath.Join(r.Out, output.StatsFile)) {
		t.Error("model or scores are missing")
	}
}

// TestEndingModelFails has the model fail while the checkpoint is being written, which is whole when the run ends.
func TestEndingModelFails(t *testing.T) {
	r := endedRun(t)
	filetest.Make(t, modelFile(r.Out, 3), "in the way")
	_, err := r.conclude(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), modelFile(r.Out, 3)) {
		t.Errorf("got %v", err)
	}
	if c, err := output.OpenWhole(r.saver.checkpointPath(3)); err != nil {
		t.Error(err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestEndingDiverged ends a run whose model holds no numbers: there is no checkpoint and no model, nor a folder of one.
func TestEndingDiverged(t *testing.T) {
	r, _ := startedRun(t, true, func(o *Options) {
		o.Config.LRSH0, o.Config.Iterations, o.Config.RefineEvery = 3e38, 2, 0
	})
	r.id.text = "known"
	must.Do(t, errors.Join(r.saver.begin(), r.Trainer.RunTo(context.Background(), 2, nil)))
	if _, err := r.conclude(t.Context(), false); !errors.Is(err, pipeline.ErrDiverged) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(modelFile(r.Out, 2)))); !errors.Is(err, os.ErrNotExist) ||
		r.saver.newest() != "" {
		t.Errorf("%v; there is %q", err, filetest.List(t, r.Out))
	}
}
