//go:build unix

package capture

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/parallel"
	"vksplat/internal/run/capture/capturetest"
	"vksplat/internal/run/output"
	"vksplat/scene/colmap"
)

// blurred is a picture whose camera moved sideways by some pixels.
func blurred(img *image.Gray, by int) *image.Gray {
	out := image.NewGray(img.Rect)
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			sum := 0
			for k := range by {
				sum += int(img.Pix[y*img.Stride+min(x+k, img.Rect.Dx()-1)])
			}
			out.Pix[y*out.Stride+x] = uint8(sum / by)
		}
	}
	return out
}

// film makes a video of ten frames a second from n places. At each five frames are taken, of which the third is sharp.
func film(t *testing.T, n, w, h int) string {
	t.Helper()
	dir := t.TempDir()
	errs := make([]error, n)
	parallel.For(n, func(i int) {
		sharp := capturetest.Picture(capturetest.Walk(i, n), w, h, capturetest.Pinhole)
		for k := range candidates {
			img := sharp
			if k != 2 {
				img = blurred(sharp, 5+k)
			}
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.png", candidates*i+k)))
			if err == nil {
				err = errors.Join(png.Encode(f, img), f.Close())
			}
			errs[i] = errors.Join(errs[i], err)
		}
	})
	must.Do(t, errors.Join(errs...))
	path := filepath.Join(dir, "walk.mp4")
	out, err := exec.Command("ffmpeg", "-loglevel", "error", "-framerate", "10", "-i", filepath.Join(dir, "%03d.png"),
		"-c:v", "libx264", "-crf", "8", "-pix_fmt", "yuv420p", path).CombinedOutput()
	if err != nil {
		t.Skipf("this ffmpeg makes no such video: %v: %s", err, out)
	}
	return path
}

// TestRealColmap finds the cameras of a made-up video with the ffmpeg and the COLMAP that are installed.
func TestRealColmap(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 25 seconds")
	}
	for _, program := range []string{colmapName, "ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here: apt-get install colmap ffmpeg", program)
		}
	}
	const n = 12
	o := optionsOf(t, film(t, n, 256, 192))
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Log(said)
	if r := reportOf(t, o); r.Photos != n || 100*r.Registered < 95*n || !output.IsFile(o.in(r.Coverage)) {
		t.Fatalf("%d of %d frames have a camera:\n%s", r.Registered, r.Photos, said)
	}
	found := centers(t, o.in(modelFolder))
	var here, there []geom.Vec
	for i := range n {
		if at, has := found[fmt.Sprintf("%05d.jpg", i+1)]; has {
			here, there = append(here, capturetest.Walk(i, n)), append(there, at)
		}
	}
	// COLMAP's threads take turns as they like, so that every run has another result; 1.4 % was seen.
	worst, size := capturetest.Misfit(there, here)
	t.Logf("cameras are off by up to %.3f %% of the path's size", 100*worst/size)
	if worst > 0.04*size {
		t.Errorf("a camera is %.3g off, the path has a size of %.3g", worst, size)
	}
}

// centers reads where the photos of a model were taken from.
func centers(t *testing.T, dir string) map[string]geom.Vec {
	t.Helper()
	list := map[string]geom.Vec{}
	must.Do(t, colmap.BinaryModel.Read(filepath.Join(dir, "images.bin"), func(r io.Reader) error {
		views, err := colmap.BinaryModel.Images(r)
		for _, v := range views {
			list[v.Name] = center(v)
		}
		return err
	}))
	return list
}

// TestMisfit finds a similarity that is known.
func TestMisfit(t *testing.T) {
	var from, to []geom.Vec
	for i := range 10 {
		p := capturetest.Walk(i, 10)
		from = append(from, p)
		to = append(to, geom.Vec{3 - 2*p[1], 2*p[0] + 1, 2 * p[2]}) // a quarter turn, twice as large, moved
	}
	if worst, size := capturetest.Misfit(from, to); worst > 1e-6*size {
		t.Errorf("off by %g of %g", worst, size)
	}
	to[3][0]++
	if worst, _ := capturetest.Misfit(from, to); worst < 0.3 {
		t.Errorf("a point that is off by 1 is off by %g", worst)
	}
}
