package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/picture"
	"vksplat/scene/synth"
)

// small is a capture that takes no time to make; its sides are no multiples of shrink.
var small = options{photos: 5, width: 131, height: 93, points: 203, shrink: 2, noise: 6, quality: 90, seed: 3,
	tracks: -1}

// written writes a capture and returns its files by name.
func written(t *testing.T, o options) map[string][]byte {
	t.Helper()
	o.out = t.TempDir()
	must.Do(t, o.write())
	files := map[string][]byte{"": []byte(o.out)}
	for _, name := range []string{"images/view_000.jpg", "images/view_004.jpg", "sparse/0/cameras.bin",
		"sparse/0/images.bin", "sparse/0/points3D.bin"} {
		data := must.Get(os.ReadFile(filepath.Join(o.out, name)))(t)
		files[name] = data
	}
	return files
}

// TestCapture loads what was written: the scene of package scene, and photos that show it but for their noise.
func TestCapture(t *testing.T) {
	files := written(t, small)
	c := must.Get(load.Capture(string(files[""]), scene.LoadOptions{Model: scene.AnyModel}))(t)
	if len(c.Cameras) != small.photos || len(c.Points) != small.points || len(c.Warnings) > 0 {
		t.Fatalf("%d cameras, %d points, %v", len(c.Cameras), len(c.Points), c.Warnings)
	}
	s := must.Get(synth.New(synth.Options{Images: small.photos, Width: small.width, Height: small.height,
		Points: small.points, Seed: small.seed}))(t)
	for i, cam := range c.Cameras {
		photo := must.Get(photo.Decode(cam))(t)
		if photo.Width != small.width || photo.Height != small.height {
			t.Fatalf("photo %d has %dx%d pixels", i, photo.Width, photo.Height)
		}
		want := s.Photo(i, 1).Pix
		row := 4 * small.width
		there := difference(photo.Pix, want)
		beside, below := difference(photo.Pix[4:], want[:len(want)-4]),
			difference(photo.Pix[row:], want[:len(want)-row])
		t.Logf("photo %d differs by %.2f of 255 in the mean, moved by a pixel by %.2f and %.2f", i, there, beside,
			below)
		if there > 8 || there > 0.9*beside || there > 0.9*below {
			t.Errorf("photo %d differs by %g, moved by a pixel by %g and %g", i, there, beside, below)
		}
	}
}

// TestTracks holds where photos show points, as they are read back, against the cameras.
func TestTracks(t *testing.T) {
	for _, c := range []struct {
		lens  string
		noise float64
	}{{"", 0}, {"", 0.5}, {"opencv", 0}} {
		o := small
		o.lens, o.tracks, o.out = c.lens, c.noise, t.TempDir()
		must.Do(t, o.write())
		made := must.Get(load.Capture(o.out, scene.LoadOptions{Model: scene.AnyModel}))(t)
		tracks := make([]int, o.photos)
		must.Do(t, colmap.EachTrack(made, func(point int, cams []int) {
			if len(cams) == 0 {
				t.Errorf("no photo shows point %d", point)
			}
			for _, i := range cams {
				tracks[i]++
			}
		}))
		var sum, n float64
		for i, list := range must.Get(colmap.Anchors(made, o.points))(t) {
			// a picture without distortion may show less than the photo
			if len(list) > tracks[i] || len(list) < tracks[i]*9/10 || tracks[i] < o.points/5 || tracks[i] == o.points {
				t.Errorf("photo %d shows %d points, by their tracks %d", i, len(list), tracks[i])
			}
			for _, a := range list {
				x, y, _, _ := made.Cameras[i].Project(a.Point, 0, math.Inf(1))
				sum, n = sum+(x-a.X)*(x-a.X)+(y-a.Y)*(y-a.Y), n+2
			}
		}
		if off := math.Sqrt(sum / n); math.Abs(off-c.noise) > 0.1*c.noise+1e-6 {
			t.Errorf("lens %q: noise of %g pixels is %g", c.lens, c.noise, off)
		}
	}
}

// difference is the mean difference of two lists of the same length.
func difference(a, b []uint8) float64 {
	sum := 0
	for i := range a {
		sum += int(max(a[i], b[i]) - min(a[i], b[i]))
	}
	return float64(sum) / float64(len(a))
}

// TestShutter writes a capture of cameras that move, as JPEG, and loads it.
func TestShutter(t *testing.T) {
	o := small
	o.shutter, o.photos, o.lens, o.out = 0.05, 9, "opencv", t.TempDir()
	must.Do(t, o.write())
	c := must.Get(load.Capture(o.out, scene.LoadOptions{Model: scene.AnyModel}))(t)
	if len(c.Cameras) != o.photos || len(c.Points) != o.points || len(c.Warnings) > 0 {
		t.Fatalf("%d cameras, %d points, %v", len(c.Cameras), len(c.Points), c.Warnings)
	}
	for i := range c.Cameras {
		if cam := &c.Cameras[i]; cam.Moved() != (i%8 != 0) || cam.Lens == nil {
			t.Errorf("camera %d: motion %+v, lens %+v", i, cam.Motion, cam.Lens)
		}
	}
	if o.lens = "prism"; o.write() == nil {
		t.Error("a transforms.json has a name for thin prisms")
	}
}

// TestFar loads a capture with photos off the path and holds these out; same options, same bytes.
func TestFar(t *testing.T) {
	o := small
	o.far, o.out = true, t.TempDir()
	must.Do(t, o.write())
	c, err := load.Capture(o.out, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(o.out, "far.txt")
	names, err := scene.ReadTestList(list)
	if err != nil || c.HoldOut(list, names) != nil {
		t.Fatalf("%q: %v", names, err)
	}
	train, test := c.Split(0)
	if len(train) != o.photos || train[o.photos-1] != o.photos-1 || len(test) != len(names) || len(test) == 0 {
		t.Fatalf("trained on %v, held out %v", train, test)
	}
	for _, cam := range c.Cameras[o.photos:] {
		file := filepath.Join(o.out, "depths", strings.TrimSuffix(cam.Name, ".jpg")+".npy")
		if !picture.WholeDepth(file, o.width, o.height) {
			t.Errorf("%s holds no depths", file)
		}
	}
	again := o
	again.out = t.TempDir()
	must.Do(t, again.write())
	for _, name := range []string{"far.txt", "images/view_far_2r_3.jpg", "depths/view_far_45deg_0.npy", "images/view_004.jpg",
		"sparse/0/images.bin", "sparse/0/points3D.bin"} {
		a, err := os.ReadFile(filepath.Join(o.out, name))
		b, errAgain := os.ReadFile(filepath.Join(again.out, name))
		if err != nil || errAgain != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between two runs: %v, %v", name, err, errAgain)
		}
	}
}

func TestDeterministic(t *testing.T) {
	first := written(t, small)
	old := runtime.GOMAXPROCS(5)
	defer runtime.GOMAXPROCS(old)
	second := written(t, small)
	other := small
	other.seed++
	third := written(t, other)
	for name := range first {
		if name == "" || name == "sparse/0/cameras.bin" {
			continue
		}
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
		if bytes.Equal(first[name], third[name]) {
			t.Errorf("%s does not depend on the seed", name)
		}
	}
	if bytes.Equal(first["images/view_000.jpg"], first["images/view_004.jpg"]) {
		t.Error("two photos are the same")
	}
}

// TestNoise makes files as large as asked for.
func TestNoise(t *testing.T) {
	quiet, loud := small, small
	quiet.noise, loud.noise = 0, 20
	a, b := written(t, quiet)["images/view_000.jpg"], written(t, loud)["images/view_000.jpg"]
	if len(b) < len(a)*6/5 {
		t.Errorf("%d bytes without noise, %d with", len(a), len(b))
	}
}

func TestRefusals(t *testing.T) {
	for _, change := range []func(*options){
		func(o *options) { o.out = "" }, func(o *options) { o.shrink = 0 }, func(o *options) { o.noise = 128 },
		func(o *options) { o.quality = 0 }, func(o *options) { o.tracks, o.shutter = 0, 0.05 },
		func(o *options) { o.photos = 2 }, func(o *options) { o.width = 0 }, func(o *options) { o.points = -1 },
	} {
		o := small
		o.out = filepath.Join(t.TempDir(), "out")
		change(&o)
		if err := o.write(); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
}
