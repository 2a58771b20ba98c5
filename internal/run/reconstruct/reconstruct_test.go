package reconstruct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/models"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/pipeline/features"
	"vksplat/scene"
	"vksplat/scene/calibrate"
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
func photosIn(t *testing.T, n int, lens capturetest.Lens) (photos []Photo) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, capturetest.Photos(dir, n, 200, 150, lens))
	for i := range n {
		name := fmt.Sprintf("%03d.png", i)
		photos = append(photos, Photo{Name: name, Path: filepath.Join(dir, name)})
	}
	return photos
}

// findIt finds the features of photos.
func findIt(t *testing.T, d *pipeline.Device, photos []Photo) (found []Features) {
	t.Helper()
	must.Do(t, Find(t.Context(), d, photos, features.Default(), 0, func(f *Features) error {
		found = append(found, *f)
		return nil
	}))
	return found
}

// camerasOf finds the cameras of photos, all of them.
func camerasOf(t *testing.T, d *pipeline.Device, photos []Photo) *colmap.Model {
	t.Helper()
	found := findIt(t, d, photos)
	list := must.Get(Match(t.Context(), d, photos, found, nil, pairs.Defaults, none))(t)
	m, model, _, err := Map(t.Context(), photos, found, list, none, nil)
	must.Do(t, err)
	if len(model.Missing) > 0 || len(m.Images) != len(photos) {
		t.Fatalf("%d of %d photos have a camera, missing are %v", len(m.Images), len(photos), model.Missing)
	}
	return m
}

// place checks where cameras are, and the focal length.
func place(t *testing.T, m *colmap.Model, drawn float64) {
	t.Helper()
	var here, there []geom.Vec
	for i, v := range m.Images {
		turn, _ := geom.RotationFromQuat(v.Quat)
		here = append(here, geom.TranslationOf(geom.Transposed(turn), v.T))
		there = append(there, capturetest.Walk(i, len(m.Images)))
	}
	worst, size := capturetest.Misfit(here, there)
	t.Logf("cameras are off by up to %.3f %% of the path's size, %v", 100*worst/size, m.Cameras[1])
	if worst > 0.005*size {
		t.Errorf("a camera is %.3g off, the path has a size of %.3g", worst, size)
	}
	if focal := m.Cameras[1].Params[0]; math.Abs(focal/drawn-1) > 0.025 {
		t.Errorf("the focal length is %g pixels, want %g", focal, drawn)
	}
}

// TestCameras finds the cameras of made-up photos, where they were, and the same ones on one core.
func TestCameras(t *testing.T) {
	d, photos := open(t), photosIn(t, 12, capturetest.Pinhole)
	m := camerasOf(t, d, photos)
	place(t, m, 220)
	if len(m.Points) < 1000 {
		t.Errorf("there are %d points", len(m.Points))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !reflect.DeepEqual(camerasOf(t, d, photos), m) {
		t.Error("on one core the cameras are others")
	}
}

// TestAgain finds again in a photo what it shows, by the other photos; one without a picture shows nothing.
func TestAgain(t *testing.T) {
	d, photos := open(t), photosIn(t, 8, capturetest.Pinhole)
	m := camerasOf(t, d, photos)
	points := map[uint64]int32{}
	for i, p := range m.Points {
		points[p.ID] = int32(i)
	}
	list := make([]calibrate.Photo, len(m.Images))
	for i, v := range m.Images {
		list[i] = calibrate.Photo{Name: v.Name, Width: 400, Height: 300} // of twice the size
		for _, s := range m.Seen[i] {
			list[i].Sights = append(list[i].Sights, calibrate.Sight{X: 2 * s.X, Y: 2 * s.Y, Point: points[s.Point]})
		}
	}
	apart := []calibrate.Photo{{Name: list[3].Name, Width: 400, Height: 300}, {Name: "none", Width: 400, Height: 300}}
	others := append(slices.Clone(list[:3]), list[4:]...)
	found := must.Get(Again(t.Context(), d, apart, others, func(name string) Photo {
		at := slices.IndexFunc(photos, func(p Photo) bool { return p.Name == name })
		if at < 0 {
			return Photo{Name: name}
		}
		return photos[at]
	}))(t)
	at := map[int32]calibrate.Sight{}
	for _, s := range found[0] {
		if _, twice := at[s.Point]; twice {
			t.Errorf("point %d is shown twice", s.Point)
		}
		at[s.Point] = s
	}
	right, wrong := 0, 0
	for _, s := range list[3].Sights {
		if f, ok := at[s.Point]; ok && math.Hypot(f.X-s.X, f.Y-s.Y) < 4 {
			right++
		} else if ok {
			wrong++
		}
	}
	if right < len(list[3].Sights)/2 || wrong > right/20 || len(found[1]) > 0 {
		t.Errorf("of %d points %d are found, and %d elsewhere; %d in no picture", len(list[3].Sights), right, wrong,
			len(found[1]))
	}
}

// TestFisheye finds cameras of a lens whose model alone is known.
func TestFisheye(t *testing.T) {
	d, photos := open(t), photosIn(t, 12, capturetest.Fisheye)
	for i := range photos {
		photos[i].Model = "OPENCV_FISHEYE"
	}
	m := camerasOf(t, d, photos)
	if m.Cameras[1].Model != scene.LensOpenCVFisheye {
		t.Errorf("the lens is %v", m.Cameras[1])
	}
	place(t, m, 84)
}

// TestCancel ends every step with the context's error.
func TestCancel(t *testing.T) {
	d, photos := open(t), photosIn(t, 4, capturetest.Pinhole)
	found := findIt(t, d, photos)
	list := must.Get(Match(t.Context(), d, photos, found, nil, pairs.Defaults, none))(t)
	for name, step := range map[string]func(ctx context.Context) error{
		"features": func(ctx context.Context) error {
			return Find(ctx, d, photos, features.Default(), 1<<30, func(*Features) error { return nil })
		},
		"matches": func(ctx context.Context) error {
			_, err := Match(ctx, d, photos, found, nil, pairs.Defaults, none)
			return err
		},
		"mapping": func(ctx context.Context) error {
			_, _, _, err := Map(ctx, photos, found, list, none, nil)
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

// TestPanoramaFeatures finds features all around, at the seam and the poles too, and none where a mask is black: all of
// a face there.
func TestPanoramaFeatures(t *testing.T) {
	const w, h = 512, 256
	d, dir := open(t), t.TempDir()
	picture, mask := image.NewGray(image.Rect(0, 0, w, h)), image.NewGray(image.Rect(0, 0, w, h))
	for i := range picture.Pix {
		east, north := (float64(i%w)+0.5)/w*2*math.Pi, (0.5-(float64(i/w)+0.5)/h)*math.Pi
		ray := geom.Vec{math.Cos(east) * math.Cos(north), math.Sin(east) * math.Cos(north), math.Sin(north)}
		picture.Pix[i] = uint8(255 * capturetest.Pebbles(ray.Mul(1.5)))
		if math.Abs(north) > 0.9 || math.Abs(east-math.Pi) > 0.9 { // the rest is more than the face in front
			mask.Pix[i] = 255
		}
	}
	p := Photo{Name: "a.png", Path: filepath.Join(dir, "a.png"), Mask: filepath.Join(dir, "mask.png"),
		Model: "EQUIRECTANGULAR"}
	write := func(path string, img *image.Gray) {
		var b bytes.Buffer
		must.Do(t, png.Encode(&b, img))
		must.Do(t, os.WriteFile(path, b.Bytes(), 0o666))
	}
	write(p.Path, picture)
	write(p.Mask, mask)
	f := findIt(t, d, []Photo{p})[0]
	for i := range mask.Pix {
		mask.Pix[i] = ^mask.Pix[i]
	}
	write(p.Mask, mask)
	p.MaskInverted = true
	if again := findIt(t, d, []Photo{p})[0]; !slices.Equal(again.Points, f.Points) {
		t.Errorf("with an inverted mask there are %d features, not %d", len(again.Points), len(f.Points))
	}
	var seam, above, below int
	for _, x := range f.Points {
		if math.Abs(float64(x.Y)/h-0.5) < 0.28 && math.Abs(float64(x.X)/w-0.5) < 0.13 {
			t.Errorf("a feature is at %v, %v", x.X, x.Y)
		}
		switch {
		case x.X < 4 || x.X > w-4:
			seam++
		case x.Y < h/16:
			above++
		case x.Y > h*15/16:
			below++
		}
	}
	t.Logf("%d features, %d at the seam, %d above, %d below", len(f.Points), seam, above, below)
	if len(f.Points) < 500 || min(seam, above, below) < 3 || len(f.Colours) != 3*len(f.Points) {
		t.Error("features are missing")
	}
}
