//go:build unix

package capture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/parallel"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
)

// rigIn writes photos of two cameras that are fixed to each other to folders left and right, and gives their places by
// name. The right one is blind in one photo.
func rigIn(t *testing.T, n, w, h int) (dir string, places map[string]geom.Vec) {
	t.Helper()
	dir, places = t.TempDir(), map[string]geom.Vec{}
	errs := make([]error, 2*n)
	cameras := make([]scene.Camera, 2*n)
	for i := range n {
		var c scene.Camera
		at := capturetest.Walk(i, n)
		scene.LookAt(&c, at, geom.Vec{0.2 * float64(i%3), 0.2, 0.5})
		right := c.Turned(geom.RotationFromVector([3]float64{0.05, 0.3, 0}))
		right.T = geom.Add(right.T, [3]float64{-0.3, 0.05, 0.1})
		cameras[2*i], cameras[2*i+1] = c, right
	}
	for i, c := range cameras {
		cameras[i].Name = fmt.Sprintf("%s/%03d.png", []string{"left", "right"}[i%2], i/2)
		places[cameras[i].Name] = c.Center()
		must.Do(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(cameras[i].Name)), 0o777))
	}
	parallel.For(2*n, func(i int) {
		c, img := &cameras[i], image.NewGray(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				grey := 0.0
				for s := range 4 { // rays a pixel
					u := (float64(x) + 0.25 + 0.5*float64(s%2) - float64(w)/2) / (1.1 * float64(w))
					v := (float64(y) + 0.25 + 0.5*float64(s/2) - float64(h)/2) / (1.1 * float64(w))
					ray := geom.Vec(geom.Rotate(geom.Transposed(c.R), [3]float64{u, v, 1})).Unit()
					grey += capturetest.Shade(c.Center(), ray) / 4
				}
				if i == 5 {
					grey = 0.5
				}
				img.SetGray(x, y, color.Gray{Y: uint8(255*grey + 0.5)})
			}
		}
		f, err := os.Create(filepath.Join(dir, filepath.FromSlash(c.Name)))
		if err == nil {
			err = errors.Join(png.Encode(f, img), f.Close())
		}
		errs[i] = err
	})
	must.Do(t, errors.Join(errs...))
	return dir, places
}

// TestRig finds the cameras of a rig, one that is blind in a photo too.
func TestRig(t *testing.T) {
	runtest.NeedDevice(t)
	dir, places := rigIn(t, 8, 200, 150)
	o := optionsOf(t, dir)
	o.Mapper, o.Rig = Auto, true
	said := must.Get(run(t.Context(), o))(t)
	t.Log(said)
	var here, there []geom.Vec
	for name, at := range centers(t, o.in(modelFolder)) {
		here, there = append(here, at), append(there, places[name])
	}
	worst, size := capturetest.Misfit(here, there)
	t.Logf("cameras are off by up to %.3f %% of the path's size", 100*worst/size)
	if len(here) != 16 || worst > 0.005*size || strings.Contains(said, "by itself") {
		t.Errorf("%d cameras, off by %.3g of %.3g", len(here), worst, size)
	}
}

// TestRigRefuses wants photos that say which were taken at once.
func TestRigRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Options, dir string)
		want   string
	}{
		"names":   {func(*Options, string) {}, "0 names are in several folders"},
		"cameras": {func(o *Options, _ string) { o.Cameras = CamerasOne }, "--cameras"},
		"model":   {func(o *Options, _ string) { o.CameraModel = "FULL_OPENCV" }, "--camera-model"},
		"extension": {func(_ *Options, dir string) {
			must.Do(t, writePhoto(filepath.Join(dir, "a.jpg"), 64, 48, 1))
			must.Do(t, writePhoto(filepath.Join(dir, "a.png"), 64, 48, 1))
		}, "two photos have the name a"},
	} {
		dir := photosIn(t, 4)
		o := optionsOf(t, dir)
		o.Mapper, o.Rig = Auto, true
		c.change(o, dir)
		if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
