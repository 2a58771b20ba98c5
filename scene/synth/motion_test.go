package synth

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
)

// TestShutter: each row of a photo is the one that a still camera sees from its pose, those that are held out are those
// of still cameras, and the capture tells all that.
func TestShutter(t *testing.T) {
	o := Options{Images: 9, Width: 40, Height: 30, Points: 50, Shutter: 0.1, Scale: 3, Offset: [3]float64{5, -2, 1}}
	moving := must.Get(New(o))(t)
	o.Shutter = 0
	still := must.Get(New(o))(t)
	const row = 4 * 40
	for i := range 9 {
		got, plain := moving.Photo(i, 1).Pix, still.Photo(i, 1).Pix
		if held := i%8 == 0; bytes.Equal(got, plain) != held {
			t.Errorf("photo %d is that of a still camera: %v, want %v", i, !held, held)
		}
		for _, y := range []int{0, 14, 29} {
			c := moving.views[i].At((float64(y)+0.5)/30 - 0.5)
			c.Motion = scene.Motion{}
			if want := moving.world.photo(&c).Pix; !bytes.Equal(got[y*row:][:row], want[y*row:][:row]) {
				t.Errorf("row %d of photo %d is not what its pose sees", y, i)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "scene")
	o.Shutter = 0.1
	must.Do(t, Write(dir, o))
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	if len(c.Points) != o.Points || len(c.Warnings) > 0 {
		t.Errorf("%d points, %v", len(c.Points), c.Warnings)
	}
	for i, want := range moving.Cameras() {
		got := c.Cameras[i]
		if got.Moved() != (i%8 != 0) {
			t.Errorf("camera %d: motion %+v", i, got.Motion)
		}
		for _, time := range []float64{-0.5, 0.5} {
			a, b := got.At(time), want.At(time)
			far := geom.Length(geom.Sub(a.Center(), b.Center()))
			for k := range a.R {
				far = max(far, math.Abs(a.R[k]-b.R[k]))
			}
			if far > 1e-12 {
				t.Errorf("camera %d at time %g: off by %g", i, time, far)
			}
		}
	}
}
