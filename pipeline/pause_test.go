package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"vksplat/scene"
)

// TestPause prints how long training stands still for a checkpoint of VKSPLAT_PAUSE splats, streamed and copied.
func TestPause(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("VKSPLAT_PAUSE"))
	if err != nil {
		t.Skip("VKSPLAT_PAUSE is not set")
	}
	views, small, scale, cfg, run := checkpointScene(t)
	cfg.RefineEvery = 0
	init := scene.NewSplats(n, small.Degree)
	for i := range n { // those of the scene, again and again
		for row := range paramRows(small.Degree) {
			*rowValue(init, row, i) = *rowValue(small, row, i%small.N)
		}
		init.LogitOpacities[i] = -8
	}
	tr, err := trainOn(testDevice(t), views[:1], init, scale, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.SetRun(run)
	for step, mode := range []copyMode{copyNever, copyMapped, copyDevice} {
		if err := tr.RunTo(context.Background(), step+1, nil); err != nil {
			t.Fatal(err)
		}
		tr.copies = mode
		w, err := tr.SaveCheckpoint(filepath.Join(t.TempDir(), "x"), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d splats, %d MB: mode %d, pause %v, file whole after %v", n, w.Bytes/1e6, mode, w.Pause.Round(time.Microsecond), w.Took().Round(time.Millisecond))
	}
}
