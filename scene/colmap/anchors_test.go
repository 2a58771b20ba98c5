package colmap

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// anchorModel writes a model of three photos that show points, and returns the capture as it would be loaded at half
// the photos' size.
func anchorModel(t *testing.T) (c *scene.Capture) {
	t.Helper()
	dir := t.TempDir()
	var cams []scene.Camera
	for i := range 3 {
		cams = append(cams, scene.Camera{Name: fmt.Sprintf("%d.png", i), Width: 200, Height: 100, Fx: 150, Fy: 140,
			Cx: 101, Cy: 49, R: geom.Identity, T: [3]float64{0.1 * float64(i), 0, 0}})
	}
	var points []scene.Point
	for k := range 40 {
		points = append(points, scene.Point{Pos: [3]float64{0.02 * float64(k%8-4), 0.01 * float64(k/8-2),
			2 + 0.1*float64(k%3)}})
	}
	must.Do(t, Write(dir, cams, points))
	le := binary.LittleEndian
	images := le.AppendUint64(nil, uint64(len(cams)))
	for i, cam := range cams {
		q := cam.Quat()
		images = le.AppendUint32(images, uint32(i+1))
		images = appendFloats(images, q[:]...)
		images = appendFloats(images, cam.T[:]...)
		images = le.AppendUint32(images, 1)
		images = append(images, cam.Name+"\x00"...)
		n := []int{40, 20, 7}[i]
		images = le.AppendUint64(images, uint64(n+2))
		for k := range n {
			u, v, _, _ := cam.Project(points[k].Pos, 0, math.Inf(1))
			if k == 5 {
				u += 30 // a wrong match
			}
			images = appendFloats(images, u+0.25, v-0.5)
			images = le.AppendUint64(images, uint64(k+1))
		}
		images = appendFloats(images, 10, 10)
		images = le.AppendUint64(images, math.MaxUint64) // not matched
		images = appendFloats(images, 10, 10)
		images = le.AppendUint64(images, 999) // no point of the model
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "images.bin"), images, 0o644))
	c = &scene.Capture{Format: scene.FormatColmap, Model: dir}
	for _, cam := range cams {
		c.Cameras = append(c.Cameras, cam.Rescaled(100, 50))
	}
	return c
}

// TestAnchors reads which points photos show, and where in pictures of half the size.
func TestAnchors(t *testing.T) {
	c := anchorModel(t)
	for _, most := range []int{1000, 12} {
		list := must.Get(Anchors(c, most))(t)
		want := []int{39, 19, 0} // of seven in the last photo it cannot be told
		if most == 12 {
			want[0] = len(list[0])
			if want[0] < 10 || want[0] > 12 {
				t.Errorf("%d of at most 12", want[0])
			}
			want[1] = len(list[1])
		}
		for i, anchors := range list {
			if len(anchors) != want[i] {
				t.Errorf("at most %d: photo %d has %d, want %d", most, i, len(anchors), want[i])
			}
			for _, a := range anchors {
				u, v, _, _ := c.Cameras[i].Project(a.Point, 0, math.Inf(1))
				if math.Abs(a.X-u-0.125) > 1e-9 || math.Abs(a.Y-v+0.25) > 1e-9 {
					t.Errorf("photo %d: point %v at %g, %g, want %g, %g", i, a.Point, a.X, a.Y, u+0.125, v-0.25)
				}
			}
		}
	}
	if list, err := Anchors(&scene.Capture{Format: scene.FormatTransforms}, 10); list != nil || err != nil {
		t.Errorf("transforms: %v, %v", list, err)
	}
	must.Do(t, os.Truncate(filepath.Join(c.Model, "images.bin"), 700))
	if _, err := Anchors(c, 10); err == nil {
		t.Error("a file that ends too early: no error")
	}
}

// TestAnchorsAsTaken keeps the points near the corners of photos as taken, which a lens moves far.
func TestAnchorsAsTaken(t *testing.T) {
	c := anchorModel(t)
	m, _, err := ReadModel(c)
	must.Do(t, err)
	k := scene.Calibration{Model: scene.LensOpenCV, Width: 200, Height: 100,
		Params: []float64{150, 140, 101, 49, -0.4, 0, 0, 0}}
	m.Cameras[1] = k
	o := must.Get(k.Optics(200, 100))(t)
	for p := range m.Points {
		m.Points[p].Pos[0] *= 16
	}
	far := 0.0
	for i, img := range m.Images {
		for s, seen := range m.Seen[i] {
			if seen.Point > uint64(len(m.Points)) {
				continue
			}
			at := geom.Add(m.Points[seen.Point-1].Pos, img.T)
			x, y, _ := o.Project(at)
			m.Seen[i][s].X, m.Seen[i][s].Y = x, y
			far = max(far, math.Abs(x-(150*at[0]/at[2]+101)))
		}
	}
	c.Calibrated = m.Files()
	for i := range c.Cameras {
		views := must.Get(k.Views(c.Cameras[i], 200, 100, 1))(t)
		c.Cameras[i] = must.Get(views[0].AsTaken())(t)
	}
	if list := must.Get(Anchors(c, 100))(t); far < strayPixels || len(list[0]) != 40 {
		t.Errorf("%d of 40 points, which the lens moves by up to %.1f px", len(list[0]), far)
	}
}

// TestInPicture maps pixels of photos with lenses to the pictures that are trained on.
func TestInPicture(t *testing.T) {
	for name, k := range map[string]scene.Calibration{
		"perspective": {Model: scene.LensOpenCV, Width: 200, Height: 100,
			Params: []float64{150, 140, 101, 49, -0.2, 0.05, 0.001, -0.002}},
		"fisheye": {Model: scene.LensOpenCVFisheye, Width: 200, Height: 100,
			Params: []float64{80, 80, 101, 49, 0.02, -0.01, 0, 0}},
	} {
		cams, err := k.Views(scene.Camera{Name: "a", R: geom.Identity}, 200, 100, 1)
		if err != nil || cams[0].Lens == nil {
			t.Fatal(name, err)
		}
		o := must.Get(k.Optics(200, 100))(t)
		for _, point := range [][3]float64{{0, 0, 1}, {0.3, -0.1, 1}, {-0.5, 0.25, 1.5}} {
			x, y, _ := o.Project(point)
			u, v, _, _ := cams[0].Project(point, 0, math.Inf(1))
			if px, py, ok := inPicture(&cams[0], k, x, y); !ok || math.Hypot(px-u, py-v) > 1e-6 {
				t.Errorf("%s: %v is at %g, %g, want %g, %g", name, point, px, py, u, v)
			}
		}
	}
}
