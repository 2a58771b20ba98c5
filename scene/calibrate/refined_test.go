package calibrate

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// TestRefined gives training photos their true cameras, and wants the points and the held-out photos to follow, which
// keep the lens that they share.
func TestRefined(t *testing.T) {
	lens := opencv(690, -0.15, 0.2)
	s := ring(pinhole(700), lens).moved(0.02, 0)
	s.c.Calibrated = s.m.Files()
	as := func(m *colmap.Model, k scene.Calibration) (cams []scene.Camera) {
		for i := range m.Images {
			img := &m.Images[i]
			if s.c.HeldOut[img.Name] {
				continue
			}
			c := must.Get(k.Views(scene.Camera{Name: img.Name}, k.Width, k.Height, 1))(t)[0]
			c.R, _ = geom.RotationFromQuat(img.Quat)
			c.T = img.T
			if c = must.Get(c.AsTaken())(t); c.Distortion == nil {
				c = c.Straight()
			}
			cams = append(cams, c)
		}
		return cams
	}
	given, right := as(s.m, s.m.Cameras[1]), as(s.true, lens)
	n := newNetwork(s.c, s.m)
	need, planned := pointBytes(int64(len(n.seen)), int64(len(n.points))), RefinedBytes(s.c, len(s.m.Points))
	if planned < need || planned > need*6/5 {
		t.Errorf("%d bytes are planned, %d are needed", planned, need)
	}
	files, note, ok, err := Refined(context.Background(), s.c, given, right, Options{Bytes: planned})
	must.Do(t, err)
	if !ok || note != "" {
		t.Fatalf("ok %v, note: %s", ok, note)
	}
	refined := *s.c
	refined.Calibrated = files
	m, _, err := colmap.ReadModel(&refined)
	must.Do(t, err)
	if k := m.Cameras[1]; k.Model != scene.LensOpenCV || !slices.EqualFunc(k.Params, lens.Params,
		func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("the lens is %+v", k)
	}
	before, after := s.off(s.m, true), s.off(m, true)
	t.Logf("held-out photos were off by %.4f, and are by %.4f", before, after)
	if s.off(m, false) > 1e-9 || !(after < 0.1*before) {
		t.Error("cameras are not where they belong")
	}
	far := 0.0
	for i, p := range m.Points {
		far += geom.Length(geom.Sub(p.Pos, s.true.Points[i].Pos)) / float64(len(m.Points))
	}
	if !(far < 0.005) {
		t.Errorf("points are off by %.4f", far)
	}
	files, note, _, err = Refined(context.Background(), s.c, given, right, Options{Bytes: 1 << 10})
	must.Do(t, err)
	refined.Calibrated = files
	m, _, err = colmap.ReadModel(&refined)
	must.Do(t, err)
	if stay := s.off(m, true); math.Abs(stay-before) > 1e-9 || s.off(m, false) > 1e-9 || !strings.Contains(note, "0 MiB are there") {
		t.Errorf("without memory, held-out photos are off by %.4f, others by %g; note: %s", stay, s.off(m, false), note)
	}
	other := &scene.Capture{Format: scene.FormatTransforms}
	if _, _, ok, err := Refined(context.Background(), other, nil, nil, Options{}); ok || err != nil ||
		RefinedBytes(other, 9) != 0 {
		t.Errorf("a capture without a model: %v, %v", ok, err)
	}
}

// TestRefinedSizes refines the lenses of photos of one camera in two sizes otherwise, and wants each photo's own in the
// model, of held-out photos that of their size.
func TestRefinedSizes(t *testing.T) {
	s := ring(pinhole(700), pinhole(700))
	s.c.Calibrated = s.m.Files()
	var given, refined []scene.Camera
	grown := map[bool]float64{false: 1.01, true: 0.98} // by whether the photo is small
	small := func(i int) bool { return i%3 == 1 }
	for i := range s.c.Cameras {
		c := &s.c.Cameras[i]
		c.Width, c.Height = 800, 600
		if small(i) {
			c.Width, c.Height = 400, 300
		}
		if s.c.HeldOut[c.Name] {
			continue
		}
		k := must.Get(s.m.Cameras[1].Views(scene.Camera{Name: c.Name}, c.Width, c.Height, 1))(t)[0]
		k.R, _ = geom.RotationFromQuat(s.m.Images[i].Quat)
		k.T = s.m.Images[i].T
		given = append(given, k)
		k.Fx, k.Fy = k.Fx*grown[small(i)], k.Fy*grown[small(i)]
		refined = append(refined, k)
	}
	files, _, _, err := Refined(context.Background(), s.c, given, refined, Options{})
	must.Do(t, err)
	again := *s.c
	again.Calibrated = files
	m, _, err := colmap.ReadModel(&again)
	must.Do(t, err)
	for i := range m.Images {
		img := &m.Images[i]
		if got, want := m.Cameras[img.Camera].Params[0], 700*grown[small(i)]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s, held out %v: focal length %g, want %g", img.Name, s.c.HeldOut[img.Name], got, want)
		}
	}
	if len(m.Cameras) != 2 {
		t.Errorf("%d cameras", len(m.Cameras))
	}
}
