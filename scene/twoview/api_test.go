package twoview_test

import (
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/twoview"
)

// Photos of different sizes and lenses without matches are unrelated.
func TestNothing(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimplePinhole, Width: 640, Height: 480, Params: []float64{500, 320, 240}}
	v := twoview.View{Calibration: &k, FocalKnown: true}
	r := twoview.Relate(v, v, nil, twoview.Options{Key: 1})
	if r.Kind != twoview.Unrelated || len(r.Inliers) != 0 {
		t.Errorf("relation %+v of no matches", r)
	}
	if twoview.Refine(v, v, nil, &r, 3) {
		t.Error("a relation without a translation was refined")
	}
}

// A ray of a sight that is projected is the pixel that was looked at.
func TestLook(t *testing.T) {
	k := scene.Calibration{Model: scene.LensSimplePinhole, Width: 640, Height: 480, Params: []float64{500, 320, 240}}
	o := must.Get(k.Optics(640, 480))(t)
	if _, ok := twoview.Look(o, 100.5, 200.5); !ok {
		t.Error("no sight of a pixel of a pinhole")
	}
}
