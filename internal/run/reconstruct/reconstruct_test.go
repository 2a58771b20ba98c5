package reconstruct

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/models"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene/colmap"
	"vksplat/scene/pairs"
)

// none is told how far the work is.
func none(int, int) {}

// open opens the device.
func open(t *testing.T) *pipeline.Device {
	t.Helper()
	runtest.NeedDevice(t)
	d := must.Get(pipeline.OpenDevice(pipeline.DeviceOptions{}))(t)
	t.Cleanup(func() { models.CloseDevice(d) })
	return d
}

// photosIn draws photos.
func photosIn(t *testing.T, n int) (photos []Photo) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, capturetest.Photos(dir, n, 200, 150))
	for i := range n {
		name := fmt.Sprintf("%03d.png", i)
		photos = append(photos, Photo{Name: name, Path: filepath.Join(dir, name)})
	}
	return photos
}

// camerasOf finds the cameras of photos, all of them.
func camerasOf(t *testing.T, d *pipeline.Device, photos []Photo) *colmap.Model {
	t.Helper()
	found := must.Get(Find(t.Context(), d, photos, features.Default(), func(int) {}))(t)
	list := must.Get(Match(t.Context(), d, photos, found, pairs.Defaults, none))(t)
	m, missing, _, err := Map(t.Context(), photos, found, list, none)
	must.Do(t, err)
	if len(missing) > 0 || len(m.Images) != len(photos) {
		t.Fatalf("%d of %d photos have a camera, missing are %v", len(m.Images), len(photos), missing)
	}
	return m
}

// TestCameras finds the cameras of made-up photos, where they were, and the same ones on one core.
func TestCameras(t *testing.T) {
	const n = 12
	d, photos := open(t), photosIn(t, n)
	m := camerasOf(t, d, photos)
	var here, there []geom.Vec
	for i, v := range m.Images {
		turn, _ := geom.RotationFromQuat(v.Quat)
		here = append(here, geom.TranslationOf(geom.Transposed(turn), v.T))
		there = append(there, capturetest.Walk(i, n))
	}
	worst, size := capturetest.Misfit(here, there)
	t.Logf("cameras are off by up to %.3f %% of the path's size", 100*worst/size)
	if worst > 0.005*size {
		t.Errorf("a camera is %.3g off, the path has a size of %.3g", worst, size)
	}
	if focal := m.Cameras[1].Params[0]; focal < 215 || focal > 225 { // they were drawn with 220
		t.Errorf("the focal length is %g pixels", focal)
	}
	if len(m.Points) < 1000 {
		t.Errorf("there are %d points", len(m.Points))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !reflect.DeepEqual(camerasOf(t, d, photos), m) {
		t.Error("on one core the cameras are others")
	}
}

// TestCancel ends every step with the context's error.
func TestCancel(t *testing.T) {
	d, photos := open(t), photosIn(t, 4)
	found := must.Get(Find(t.Context(), d, photos, features.Default(), func(int) {}))(t)
	list := must.Get(Match(t.Context(), d, photos, found, pairs.Defaults, none))(t)
	for name, step := range map[string]func(ctx context.Context) error{
		"features": func(ctx context.Context) error {
			_, err := Find(ctx, d, photos, features.Default(), func(int) {})
			return err
		},
		"matches": func(ctx context.Context) error {
			_, err := Match(ctx, d, photos, found, pairs.Defaults, none)
			return err
		},
		"mapping": func(ctx context.Context) error {
			_, _, _, err := Map(ctx, photos, found, list, none)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := step(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
