package train

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
)

func TestPreviewFlags(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		PreviewOptions
		good bool
	}{
		{PreviewOptions{"", defaultPreviewEvery}, true},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), 1}, true},
		{PreviewOptions{"", 5}, false},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), 0}, false},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), -1}, false},
		{PreviewOptions{filepath.Join(dir, "none", "a.jpg"), 30}, false},
		{PreviewOptions{dir, 30}, false},
	} {
		if err := c.resolve(false); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.PreviewOptions, err)
		}
	}
}

// TestPreviewShare asks for pictures as fast as can be: less than a hundredth of the training's time is theirs, with
// room for what a busy machine adds.
func TestPreviewShare(t *testing.T) {
	if os.Getenv("VKSPLAT_LONG") != "1" {
		t.Skip("VKSPLAT_LONG=1 trains for a minute")
	}
	o := NewOptions()
	o.Scene, o.Out = runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	o.Config.Iterations, o.Progress = 500, meter.None
	o.Preview = PreviewOptions{File: filepath.Join(t.TempDir(), "now.jpg"), Every: 1e-9}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		t.Fatal(err)
	}
	r := &Run{Options: o, Console: cli.New(nil, io.Discard, io.Discard)}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.preview.begin()
	err := r.Trainer.RunTo(t.Context(), o.Config.Iterations, func(pipeline.Progress) { r.preview.stepped() })
	if err != nil {
		t.Fatal(err)
	}
	r.preview.close()
	share := r.preview.between.Lost().Seconds() / r.Trainer.Seconds()
	t.Logf("%.2f %% of %.1f s", 100*share, r.Trainer.Seconds())
	if share > 0.015 || share == 0 {
		t.Errorf("%.2f %% of the time is for pictures", 100*share)
	}
}
