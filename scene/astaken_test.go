package scene

import (
	"errors"
	"math"
	"slices"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene/lenstest"
)

// takenCase is the camera that took a photo of a case.
func takenCase(t *testing.T, i int, downscale int) (was, taken Camera, err error) {
	t.Helper()
	c := lenstest.All[i]
	k := Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}
	views := must.Get(k.Views(Camera{Name: "photo", R: geom.Identity}, 800, 1000, downscale))(t)
	taken, err = views[0].AsTaken()
	return views[0], taken, err
}

// TestAsTaken: the camera has the photo's size, sees what its lens does, and knows what it was.
func TestAsTaken(t *testing.T) {
	refused := []LensModel{LensFOV, LensSimpleDivision, LensDivision, LensEUCM}
	for i, c := range lenstest.All {
		was, taken, err := takenCase(t, i, 4)
		info, _ := LensModel(c.Model).Info()
		if was.Lens != nil && was.Photo == "" && slices.Contains(refused, LensModel(c.Model)) {
			if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Hint == "" {
				t.Errorf("%s: error %v", lensName(i), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", lensName(i), err)
			continue
		}
		if was.Lens == nil || info.plane == NoPlane {
			if taken.Distortion != nil || taken.Lens != was.Lens {
				t.Errorf("%s: it has changed", lensName(i))
			}
			continue
		}
		d := taken.Distortion
		if d == nil || taken.Lens != nil || taken.Width != 200 || taken.Height != 250 {
			t.Errorf("%s: %+v", lensName(i), taken)
			continue
		}
		if (taken.Model == Fisheye) != (info.plane == AnglePlane) {
			t.Errorf("%s: the model is %v", lensName(i), taken.Model)
		}
		if u := taken.Undistorted(); u.Width != was.Width || u.Lens != was.Lens {
			t.Errorf("%s: without distortion it is %+v", lensName(i), u)
		}
		if !(d.Min[0] < 0 && d.Min[1] < 0 && d.Max[0] > 0 && d.Max[1] > 0) || math.Hypot(d.Max[0], d.Max[1]) > d.Limit {
			t.Errorf("%s: it shows %v to %v, the limit is %v", lensName(i), d.Min, d.Max, d.Limit)
		}
	}
}

// TestShows compares what a photo shows, by the table of directions, with what the lens's inverse says: of lenses that
// fold their picture within the photo.
func TestShows(t *testing.T) {
	for _, k := range []Calibration{
		{Model: LensOpenCVFisheye, Params: []float64{300, 310, 386, 511, -0.3, 0, 0, 0}},
		{Model: LensOpenCV, Params: []float64{300, 310, 386, 511, -0.3, 0, 0.01, -0.02}},
		{Model: LensThinPrism, Params: []float64{300, 310, 386, 511, -0.3, 0.01, 0.002, 0.001, 0, 0, 0.01, -0.02}},
	} {
		k.Width, k.Height = 800, 1000
		views := must.Get(k.Views(Camera{Name: "photo", R: geom.Identity}, 800, 1000, 4))(t)
		taken := must.Get(views[0].AsTaken())(t)
		o := must.Get(k.Optics(taken.Width, taken.Height))(t)
		wrong, dark := 0, 0
		for y := range taken.Height {
			for x := range taken.Width {
				_, ok := o.ToPlane(float64(x)+0.5, float64(y)+0.5, [2]float64{})
				if !ok {
					dark++
				}
				if ok != taken.Shows(x, y) {
					wrong++
				}
			}
		}
		if dark == 0 || !taken.Distortion.Blind || wrong > dark/50 {
			t.Errorf("%v: %d pixels are wrong, %d show nothing; %+v", k.Model, wrong, dark, taken.Distortion.Blind)
		}
	}
}

// TestWide: a fisheye that sees behind itself is one, and says so.
func TestWide(t *testing.T) {
	k := Calibration{Model: LensOpenCVFisheye, Width: 400, Height: 300,
		Params: []float64{108, 108, 200, 150, 0.02, -0.002, 0.0003, 0}}
	views := must.Get(k.Views(Camera{Name: "wide", R: geom.Identity}, 400, 300, 1))(t)
	taken := must.Get(views[0].AsTaken())(t)
	if d := taken.Distortion; d == nil || !d.Wide || d.Blind || d.Max[0] < math.Pi/2 {
		t.Errorf("%+v", d)
	}
}
