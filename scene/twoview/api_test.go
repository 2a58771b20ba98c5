package twoview_test

import (
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/twoview"
)

// Photos of different sizes and lenses without matches are unrelated.
func TestNothing(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimplePinhole, Width: 640, Height: 480, Params: []float64{500, 320, 240}}
	v := twoview.View{Optics: must.Get(k.Optics(640, 480))(t), FocalKnown: true}
	r := twoview.Relate(v, v, nil, twoview.Options{Key: 1})
	if r.Kind != twoview.Unrelated || len(r.Inliers) != 0 {
		t.Errorf("relation %+v of no matches", r)
	}
}

// Two photos are not enough matches, nor is one point.
func TestTooFew(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimplePinhole, Width: 640, Height: 480, Params: []float64{500, 320, 240}}
	if _, ok := twoview.Locate(k, true, [][2]float32{{1, 2}}, [][3]float64{{1, 2, 3}}, twoview.Options{}); ok {
		t.Error("located by one point")
	}
	s, _ := twoview.Look(must.Get(k.Optics(640, 480))(t), 320, 240)
	pose := adjust.Pose{R: geom.Identity}
	if p, ok := twoview.Triangulate([]adjust.Pose{pose, pose}, []twoview.Sight{s, s}, twoview.Options{}); ok {
		t.Errorf("parallel rays meet at %v", p.X)
	}
}
