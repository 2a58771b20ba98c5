package sky

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/synth"
)

// tagged is a JPEG with an EXIF orientation.
func tagged(t *testing.T, img image.Image, tag byte) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}))
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	exif[6+19] = tag
	head := append([]byte{0xff, 0xd8, 0xff, 0xe1, 0, byte(2 + len(exif))}, exif...)
	return append(head, b.Bytes()[2:]...)
}

// turned writes the photos of a capture as a phone stores them that is held otherwise: turned by 90 degrees so many
// times against the clock, with the tag. The poses are of the pixels as stored.
func turned(t *testing.T, c *scene.Capture, times int, tag byte) {
	t.Helper()
	dir := t.TempDir()
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		img := must.Get(photo.Decode(*cam))(t)
		stored := &image.RGBA{Pix: img.Pix, Stride: 4 * cam.Width, Rect: image.Rect(0, 0, cam.Width, cam.Height)}
		for range times {
			w, h := cam.Width, cam.Height
			next := image.NewRGBA(image.Rect(0, 0, h, w))
			for y := range h {
				for x := range w {
					next.Set(y, w-1-x, stored.At(x, y))
				}
			}
			stored = next
			cam.Width, cam.Height, cam.Fx, cam.Fy, cam.Cx, cam.Cy = h, w, cam.Fy, cam.Fx, cam.Cy, float64(w)-cam.Cx
			for k := range 3 {
				cam.R[k], cam.R[3+k] = cam.R[3+k], -cam.R[k]
			}
			cam.T[0], cam.T[1] = cam.T[1], -cam.T[0]
		}
		cam.Path = filepath.Join(dir, filepath.Base(cam.Name)+".jpg")
		must.Do(t, os.WriteFile(cam.Path, tagged(t, stored, tag), 0o666))
	}
}

// TestTurned: the sky is above photos that were stored turned, as their tags say, and as the pixels say where the tags
// make no sense.
func TestTurned(t *testing.T) {
	upright := capture(t, synth.Options{Open: true})
	up := must.Get(scene.MeanUp(upright.Cameras))(t)
	for _, c := range []struct {
		name  string
		times int
		tag   byte
	}{{"portrait", 1, 6}, {"upside down", 2, 3}, {"portrait, the other way", 3, 8}, {"a tag that was left", 0, 6}} {
		stored := *upright
		stored.Cameras = slices.Clone(upright.Cameras)
		turned(t, &stored, c.times, c.tag)
		shell, err := Find(context.Background(), &stored, enough)
		if err != nil || len(shell.Points) < 2*leastCells {
			t.Errorf("%s: %d points, %v", c.name, len(shell.Points), err)
		}
		for _, p := range shell.Points {
			if geom.Dot(p.Pos, up) < (lowest-0.01)*shell.Radius {
				t.Errorf("%s: a point of the sky at %v, up is %v", c.name, p.Pos, up)
				break
			}
		}
	}
}

// TestDown checks all orientations against what the standard says of the first row and the first column.
func TestDown(t *testing.T) {
	r := [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1} // x is to the right, y down in the pixels as stored
	for tag, want := range [][2]float64{{0, 1}, {0, 1}, {0, 1}, {0, -1}, {0, -1}, {1, 0}, {1, 0}, {-1, 0}, {-1, 0}} {
		if d := down(tag, &r); math.Abs(d[0]-want[0])+math.Abs(d[1]-want[1])+math.Abs(d[2]) > 0 {
			t.Errorf("orientation %d: %v, want %v", tag, d, want)
		}
	}
}
