package live

import (
	"bytes"
	"context"
	"errors"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/view"
)

// TestViewerFrame compares a frame with the picture of the same camera, and looks at the others.
func TestViewerFrame(t *testing.T) {
	o := train.NewOptions()
	o.Scene, o.Out, o.Config.Iterations, o.Progress, o.Viewer.Address = runtest.SmallScene(t, 300),
		filepath.Join(t.TempDir(), "out"), 40, meter.None, "0"
	must.Do(t, os.MkdirAll(o.Out, 0o777))
	r := train.NewRun(o, cli.New(nil, io.Discard, io.Discard))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched, err := New(o, r.Console)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(watched.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	}()
	must.Do(t, r.Begin(ctx))
	started, err := r.Started(io.Discard)
	if err == nil {
		err = watched.Observe(started)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := watched.(*training)
	trained := make(chan error, 1)
	go func() {
		trained <- r.Trainer.RunTo(ctx, 40, func(p pipeline.Progress) {
			if l.step(p); p.Step == 30 {
				l.between.Hold()
			}
		})
	}()
	for !l.between.Still() {
		select {
		case err := <-trained:
			t.Fatal("it was not held: ", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cam := r.Capture.Cameras[1]
	var want []float32
	must.Do(t, l.between.Do(ctx, func() (err error) {
		want, err = r.Trainer.RenderInto(nil, cam)
		return err
	}))
	frame := func(q view.FrameQuery) scene.Image {
		t.Helper()
		data := must.Get(l.Frame(ctx, q))(t)
		img := must.Get(jpeg.Decode(bytes.NewReader(data)))(t)
		out := scene.Image{Width: img.Bounds().Dx(), Height: img.Bounds().Dy()}
		for y := range out.Height {
			for x := range out.Width {
				red, green, blue, _ := img.At(x, y).RGBA()
				out.Pix = append(out.Pix, uint8(red>>8), uint8(green>>8), uint8(blue>>8), 255)
			}
		}
		return out
	}
	q := view.FrameQuery{Camera: 1, Width: cam.Width, Height: cam.Height, Mode: view.ModePicture}
	through := frame(q)
	if p := runtest.Apart(t, through, photo.FromFloats(want, cam.Width, cam.Height)); p < 32 { // a JPEG
		t.Errorf("a frame through a photo's camera is %.1f dB from its picture", p)
	}
	q.Camera, q.Rotation, q.Position, q.Tangent = -1, cam.R, cam.Center(), float64(cam.Height)/2/cam.Fy
	if p := runtest.Apart(t, frame(q), through); p < 30 { // its principal point is the middle
		t.Errorf("a frame of the same pose is %.1f dB from it", p)
	}
	pictures := []scene.Image{through}
	for _, mode := range []view.Mode{view.ModeDepth, view.ModeCentres, view.ModeEllipsoids, view.ModeError} {
		q := view.FrameQuery{Camera: 1, Width: cam.Width, Height: cam.Height, Mode: mode}
		img := frame(q)
		for _, other := range pictures {
			if p := runtest.Apart(t, img, other); p > 30 {
				t.Errorf("%s looks like another mode: %.1f dB", mode, p)
			}
		}
		pictures = append(pictures, img)
	}
	l.between.Release()
	if err := <-trained; err != nil {
		t.Fatal(err)
	}
	if h := l.History(); len(h) != 40 || h[39].Step != 40 || !(h[39].Loss < h[0].Loss) || !(h[39].PSNR > h[0].PSNR) {
		t.Errorf("the course of the run: %v", h)
	}
	for i, loss := range l.Losses() {
		if loss.Camera != i || loss.Step < 33 || !(loss.Loss > 0) {
			t.Errorf("photo %d: %+v", i, loss)
		}
	}
}
