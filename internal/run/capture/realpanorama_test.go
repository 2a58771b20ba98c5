//go:build unix

package capture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/parallel"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/runtest"
)

// takePanorama draws all that is around a place, by a camera that is turned.
func takePanorama(from geom.Vec, turn [9]float64, w, h int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sum := 0.0
			for s := range 4 { // rays a pixel
				east := ((float64(x)+0.25+0.5*float64(s%2))/float64(w) - 0.5) * 2 * math.Pi
				north := (0.5 - (float64(y)+0.25+0.5*float64(s/2))/float64(h)) * math.Pi
				ray := geom.Vec{math.Sin(east) * math.Cos(north), math.Cos(east) * math.Cos(north), math.Sin(north)}
				sum += capturetest.Shade(from, geom.Rotate(turn, ray)) / 4
			}
			img.SetGray(x, y, color.Gray{Y: uint8(255*sum + 0.5)})
		}
	}
	return img
}

// panoramasIn writes panoramas from n places to a folder, and gives the places. Each is turned by so much more.
func panoramasIn(t *testing.T, n, w int, turned float64) (dir string, places []geom.Vec) {
	t.Helper()
	dir = t.TempDir()
	errs := make([]error, n)
	for i := range n {
		p := capturetest.Walk(i, n)
		places = append(places, geom.Vec{0.6 * p[0], 0.4*p[1] - 0.3, p[2]})
	}
	parallel.For(n, func(i int) {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.png", i)))
		if err == nil {
			turn := geom.RotationFromVector(geom.Scale([3]float64{math.Sin(float64(i)), 0.2, float64(i)}, turned))
			err = errors.Join(png.Encode(f, takePanorama(places[i], turn, w, w/2)), f.Close())
		}
		errs[i] = err
	})
	must.Do(t, errors.Join(errs...))
	return dir, places
}

// TestRealPanoramas finds the places of made-up panoramas with the COLMAP that is installed, be it as such or as faces.
func TestRealPanoramas(t *testing.T) {
	if !filetest.Long() {
		t.Skip("takes a minute; VKSPLAT_LONG=1 runs it")
	}
	if _, err := exec.LookPath(colmapName); err != nil {
		t.Skip("there is no colmap here: apt-get install colmap")
	}
	dir, places := panoramasIn(t, 8, 640, 0)
	o := optionsOf(t, dir)
	o.CameraModel = Panorama
	placesFound(t, o, places, 0.01)
}

// TestOwnPanoramas finds the places of made-up panoramas without COLMAP, and the same ones on one core.
func TestOwnPanoramas(t *testing.T) {
	runtest.NeedDevice(t)
	dir, places := panoramasIn(t, 6, 480, 0.5)
	o := optionsOf(t, dir)
	o.Mapper, o.CameraModel = Auto, Panorama
	t.Setenv("PATH", t.TempDir()) // no COLMAP there
	placesFound(t, o, places, 0.001)
	want := modelBytes(t, o)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	must.Do(t, os.RemoveAll(o.in(componentsFolder)))
	must.Get(run(t.Context(), o))(t)
	if modelBytes(t, o) != want {
		t.Error("on one core the cameras are others")
	}
}

// placesFound finds the cameras of panoramas, which are off by a share of the path's size at most.
func placesFound(t *testing.T, o *Options, places []geom.Vec, share float64) {
	t.Helper()
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Log(said)
	found := centers(t, o.in(modelFolder))
	var here, there []geom.Vec
	for i, place := range places {
		var mean geom.Vec
		n := 0.0
		for name, at := range found {
			if strings.HasPrefix(name, fmt.Sprintf("%03d", i)) {
				mean, n = mean.Add(at), n+1
			}
		}
		if n > 0 {
			here, there = append(here, place), append(there, mean.Mul(1/n))
		}
	}
	if len(here) < len(places) {
		t.Fatalf("%d of %d panoramas have a camera:\n%s", len(here), len(places), said)
	}
	worst, size := capturetest.Misfit(there, here)
	t.Logf("cameras are off by up to %.3f %% of the path's size", 100*worst/size)
	if worst > share*size {
		t.Errorf("a camera is %.3g off, the path has a size of %.3g", worst, size)
	}
}

// TestPanoramas gives an old COLMAP faces and a new one panoramas, and refuses what is none.
func TestPanoramas(t *testing.T) {
	dir, _ := panoramasIn(t, 3, 64, 0)
	for _, version := range []string{"3.8", "4.2"} {
		install(t, version, "colmap")
		o := optionsOf(t, dir)
		o.CameraModel = Panorama
		for range 2 {
			must.Get(run(t.Context(), o))(t)
		}
		all := strings.Join(calls(t), "\n")
		want, args := []string{"images/000.png"}, []string{"--ImageReader.camera_model EQUIRECTANGULAR"}
		if version == "3.8" {
			want = []string{"panoramas/000.png", "images/000_front.jpg", "images/002_up.jpg"}
			args = []string{"--ImageReader.camera_model PINHOLE", "--ImageReader.camera_params 8,8,8,8",
				"--Mapper.ba_refine_focal_length 0"}
		}
		wantFiles(t, o.Out, want...)
		if r := reportOf(t, o); len(r.Advice) > 0 && strings.Contains(r.Advice[0], "only") {
			t.Errorf("%s: the advice is %q", version, r.Advice)
		}
		for _, a := range args {
			if strings.Count(all, a) != 1 {
				t.Errorf("%s: %d times %s in\n%s", version, strings.Count(all, a), a, all)
			}
		}
	}
	o := optionsOf(t, dir)
	if said, err := run(t.Context(), o); err != nil || !strings.Contains(said, "give --camera-model EQUIRECTANGULAR") {
		t.Errorf("without the model: %v\n%s", err, said)
	}
	o = optionsOf(t, photosIn(t, 4))
	o.CameraModel = Panorama
	if _, err := run(t.Context(), o); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "64x48") {
		t.Errorf("photos as panoramas: %v", err)
	}
}

// TestPanoramasSay counts photos as panoramas that all say so and have the shape.
func TestPanoramasSay(t *testing.T) {
	install(t, "4.2", "colmap")
	const says = `<x:xmpmeta><rdf:Description GPano:ProjectionType="equirectangular"/></x:xmpmeta>`
	for name, c := range map[string]struct {
		width, silent int // pixels; a photo that says nothing
		panoramas     bool
	}{"all": {96, -1, true}, "all but one": {96, 2, false}, "another shape": {95, -1, false}} {
		dir := t.TempDir()
		for i := range 3 {
			path := filepath.Join(dir, fmt.Sprintf("%d.jpg", i))
			must.Do(t, writePhoto(path, c.width, 48, 1))
			if data := must.Get(os.ReadFile(path))(t); i != c.silent {
				block := "http://ns.adobe.com/xap/1.0/\x00" + says
				xmp := append([]byte{0xff, 0xe1, 0, byte(2 + len(block))}, block...)
				must.Do(t, os.WriteFile(path, slices.Concat(data[:2], xmp, data[2:]), 0o666))
			}
		}
		o := optionsOf(t, dir)
		said := must.Get(run(t.Context(), o))(t)
		if o.CameraModel == Panorama != c.panoramas ||
			strings.Contains(said, "equirectangular panoramas") != c.panoramas {
			t.Errorf("%s: the model is %s:\n%s", name, o.CameraModel, said)
		}
	}
}

// TestPanoramaVideo cuts the frames of a video into faces.
func TestPanoramaVideo(t *testing.T) {
	var tools [2]string
	for i, name := range []string{"ffmpeg", "ffprobe"} {
		var err error
		if tools[i], err = exec.LookPath(name); err != nil {
			t.Skip("there is no ffmpeg here: apt-get install ffmpeg")
		}
	}
	dir, _ := panoramasIn(t, 8, 64, 0)
	film := filepath.Join(t.TempDir(), "walk360.mp4")
	args := []string{"-loglevel", "error", "-framerate", "2", "-i", filepath.Join(dir, "%03d.png"), "-pix_fmt", "yuv420p"}
	if out, err := exec.Command(tools[0], append(args, film)...).CombinedOutput(); err != nil {
		t.Skipf("this ffmpeg makes no such video: %v: %s", err, out)
	}
	install(t, "3.8", "colmap")
	bin := os.Getenv("PATH")
	must.Do(t, errors.Join(os.Symlink(tools[0], filepath.Join(bin, "ffmpeg")),
		os.Symlink(tools[1], filepath.Join(bin, "ffprobe"))))
	o := optionsOf(t, film)
	o.CameraModel = Panorama
	said := must.Get(run(t.Context(), o))(t)
	if !strings.Contains(said, "48 faces of 8 panoramas") {
		t.Errorf("it says\n%s", said)
	}
	wantFiles(t, o.Out, "panoramas/00001.jpg", "images/00001_front.jpg", "images/00008_down.jpg")
}
