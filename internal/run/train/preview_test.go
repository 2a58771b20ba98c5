package train

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
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
	if !filetest.Long() {
		t.Skip("VKSPLAT_LONG=1 trains for a minute")
	}
	o := previewing(runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out"), 500)
	o.Preview = PreviewOptions{File: filepath.Join(t.TempDir(), "now.jpg"), Every: 1e-9}
	must.Do(t, os.MkdirAll(o.Out, 0o777))
	r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	must.Do(t, r.Begin(t.Context()))
	p, err := newPreview(o, r.Console)
	if err != nil {
		t.Fatal(err)
	}
	started, err := r.Started(io.Discard)
	if err == nil {
		err = p.Observe(started)
	}
	if err == nil {
		err = r.Trainer.RunTo(t.Context(), o.Config.Iterations, func(pipeline.Progress) { _ = p.Observe(&Stepped{}) })
	}
	must.Do(t, errors.Join(err, p.Close()))
	share := r.control.between.Lost().Seconds() / r.Trainer.Seconds()
	t.Logf("%.2f %% of %.1f s", 100*share, r.Trainer.Seconds())
	if share > 0.015 || share == 0 {
		t.Errorf("%.2f %% of the time is for pictures", 100*share)
	}
}

// openPreview reads a preview and wants it to be what it shall be.
func openPreview(t *testing.T, data []byte) image.Image {
	t.Helper()
	img := must.Get(jpeg.Decode(bytes.NewReader(data)))(t)
	if size := img.Bounds(); len(data) > photo.PreviewBytes || max(size.Dx(), size.Dy()) > photo.PreviewSide {
		t.Errorf("a preview of %d bytes and %v pixels", len(data), size)
	}
	return img
}

// previewing are the options of a run that writes no checkpoint on the way.
func previewing(scene, out string, steps int) *Options {
	o := NewOptions()
	o.Scene, o.Out, o.Config.Iterations, o.Progress = scene, out, steps, meter.None
	o.Checkpoints.Every = everyFlag{}
	return o
}

// TestPreviewBytes trains with and without --preview: pictures come while it trains, the last is of the end, and the
// model has the same bytes.
func TestPreviewBytes(t *testing.T) {
	capture, dir := runtest.SmallScene(t, 300), t.TempDir()
	options := func(out string, steps int) *Options {
		o := previewing(capture, out, steps)
		o.Config.RefineStart, o.Config.RefineEvery, o.Config.RefineStop, o.Eval = 20, 30, 150, true
		return o
	}
	alone, watched, file := filepath.Join(dir, "alone"), filepath.Join(dir, "watched"), filepath.Join(dir, "now.jpg")
	steps := 200
	const long = 3 * time.Second // pictures take a hundredth of the time: on fast devices few steps see none
	for began := time.Now(); ; began = time.Now() {
		o := options(alone, steps)
		o.Checkpoints.Overwrite = true
		must.Get(Do(cli.New(nil, io.Discard, io.Discard), o))(t)
		if time.Since(began) >= long || steps == 20000 {
			break
		}
		steps *= 10
	}
	o, ended := options(watched, steps), make(chan error, 1)
	o.Preview = PreviewOptions{File: file, Every: 0.1}
	go func() {
		_, err := Do(cli.New(nil, io.Discard, io.Discard), o)
		ended <- err
	}()
	seen := map[string]bool{}
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		case <-time.After(5 * time.Millisecond):
		}
		if data, err := os.ReadFile(file); err == nil && !seen[string(data)] {
			openPreview(t, data) // never half of one
			seen[string(data)] = true
		}
	}
	if len(seen) < 2 {
		t.Errorf("%d pictures were seen, one of them at the end", len(seen))
	}
	model := fmt.Sprintf("point_cloud/iteration_%d/point_cloud.ply", steps)
	filetest.Same(t, filepath.Join(alone, model), filepath.Join(watched, model))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The last one is the first held-out view as it was measured.
	_, want, err := photo.ReadSheet(firstSheet(t, filepath.Join(watched, "test", fmt.Sprint("ours_", steps))))
	if err != nil {
		t.Fatal(err)
	}
	img, got := openPreview(t, data), scene.Image{Width: want.Width, Height: want.Height}
	for y := range got.Height {
		for x := range got.Width {
			red, green, blue, _ := img.At(x, y).RGBA()
			got.Pix = append(got.Pix, uint8(red>>8), uint8(green>>8), uint8(blue>>8), 255)
		}
	}
	if p := runtest.Apart(t, got, want); p < 24 { // 64x48 pixels in a JPEG
		t.Errorf("the last preview is %.1f dB from the picture that was measured", p)
	}
}

// firstSheet is the first picture below a folder of held-out views.
func firstSheet(t *testing.T, dir string) string {
	t.Helper()
	var first string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && first == "" && filepath.Ext(path) == ".png" {
			first = path
		}
		return err
	})
	if err != nil || first == "" {
		t.Fatal("no picture in", dir, err)
	}
	return first
}

// TestPreviewOfTeam trains on two devices, which are one: the preview is of the whole model.
func TestPreviewOfTeam(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "now.jpg")
	o := previewing(runtest.SmallScene(t, 300), filepath.Join(dir, "out"), 20)
	o.Devices, o.Preview.File = "0,0", file
	must.Get(Do(cli.New(nil, io.Discard, io.Discard), o))(t)
	data := must.Get(os.ReadFile(file))(t)
	openPreview(t, data)
}
