package scene_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

func TestSplatsValidate(t *testing.T) {
	for degree := range scene.MaxSHDegree + 1 {
		if err := scenetest.RandomSplats(7, degree).Validate(); err != nil {
			t.Errorf("degree %d: %v", degree, err)
		}
	}
	if err := scene.NewSplats(0, 3).Validate(); err != nil {
		t.Errorf("no splats: %v", err)
	}
	s := scenetest.RandomSplats(7, 2)
	s.SH[27*4+5] = float32(math.NaN())
	if err := s.Validate(); !errors.Is(err, scene.ErrNotFinite) || !strings.Contains(err.Error(), "splat 4: sh[5]") {
		t.Errorf("NaN: %v", err)
	}
	s = scenetest.RandomSplats(7, 2)
	s.Quats = s.Quats[:27]
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "quats holds 27") {
		t.Errorf("short quats: %v", err)
	}
	s.Degree = 4
	if err := s.Validate(); err == nil {
		t.Error("degree 4 passes")
	}
}

func TestSplatsFrames(t *testing.T) {
	s := scenetest.RandomSplats(100, 1)
	frame := scene.Frame{Center: [3]float64{5e6, -5e6, 123}, Scale: 1.0 / 1000}
	origin := [3]float64{5e6, -5e6, 0}
	out := s.ToCapture(frame, origin)
	for i := range s.N {
		want := float64(s.Means[3*i])*1000 + 0
		if got := float64(out.Means[3*i]); math.Abs(got-want) > 1e-4*math.Abs(want) {
			t.Fatalf("splat %d: x = %v, want %v", i, got, want)
		}
		wantScale := float64(s.LogScales[3*i]) + math.Log(1000)
		if got := float64(out.LogScales[3*i]); math.Abs(got-wantScale) > 1e-6*wantScale {
			t.Fatalf("splat %d: log scale %v, want %v", i, got, wantScale)
		}
	}
	if &out.SH[0] != &s.SH[0] || &out.Means[0] == &s.Means[0] {
		t.Error("SH is copied, or means are not")
	}
	back := out.FromCapture(frame, origin)
	for i, x := range back.Means {
		if math.Abs(float64(x-s.Means[i])) > 1e-5 {
			t.Fatalf("mean %d: %v after the way back, was %v", i, x, s.Means[i])
		}
	}
	for i, x := range back.LogScales {
		if math.Abs(float64(x-s.LogScales[i])) > 2e-6 {
			t.Fatalf("log scale %d: %v after the way back, was %v", i, x, s.LogScales[i])
		}
	}
}

// A camera sees a splat at the same place before and after both moved to the
// frame of the files.
func TestFramesAgree(t *testing.T) {
	s := scenetest.RandomSplats(20, 0)
	frame := scene.Frame{Center: [3]float64{3, -2, 7}, Scale: 0.25}
	origin := [3]float64{2, 2, 2}
	c := scene.Camera{Width: 10, Height: 10, Fx: 1, Fy: 1}
	scene.LookAt(&c, geom.Vec{4, 1, 2}, geom.Vec{0.1, 0.2, 0.3})
	moved, written := frame.ToCapture(c, origin), s.ToCapture(frame, origin)
	for i := range s.N {
		p, q := s.Means[3*i:], written.Means[3*i:]
		a := c.ToCamera([3]float64{float64(p[0]), float64(p[1]), float64(p[2])})
		b := moved.ToCamera([3]float64{float64(q[0]), float64(q[1]), float64(q[2])})
		for k := range a {
			if math.Abs(a[k]-b[k]*frame.Scale) > 1e-5 {
				t.Fatalf("splat %d: camera coordinates %v and %v", i, a, b)
			}
		}
	}
}

// TestHuge counts no splat twice: one that is huge and not finite is not finite.
func TestHuge(t *testing.T) {
	s := scenetest.RandomSplats(6, 1)
	s.LogScales[3*1] = 3e38
	s.LogScales[3*2+2] = scene.HugeLog + 1
	s.LogScales[3*3+1], s.SH[12*3+5] = 3e38, float32(math.NaN())
	s.LogScales[3*4] = float32(math.Inf(1))
	s.LogScales[3*5], s.LogScales[3*5+1] = scene.HugeLog, -3e38
	if s.Huge() != 2 || s.NonFinite() != 2 {
		t.Errorf("%d huge, %d not finite", s.Huge(), s.NonFinite())
	}
}
