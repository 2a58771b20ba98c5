package scene

import (
	"errors"
	"math"
	"reflect"
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
		point := [3]float64{0.1, -0.2, 1.5}
		x, y, _ := must.Get(was.Lens.Calibration.Optics(200, 250))(t).Project(point)
		if u, v, _, in := taken.Project(point, 0, 2); !in || math.Hypot(u-x, v-y) > 1e-9 {
			t.Errorf("%s: it shows %v at %g, %g, want %g, %g", lensName(i), point, u, v, x, y)
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

// TestAsTakenList looks once through a lens that photos share, and gives each photo the camera that it has alone.
func TestAsTakenList(t *testing.T) {
	var cams []Camera
	lenses := [][]float64{{300, 310, 386, 511, -0.3, 0, 0, 0}, {300, 310, 386, 511, -0.31, 0, 0, 0}}
	for i, name := range []string{"a", "b", "c", "d"} {
		k := Calibration{Model: LensOpenCVFisheye, Width: 800, Height: 1000, Params: slices.Clone(lenses[i%2])}
		cams = append(cams, must.Get(k.Views(Camera{Name: name, R: geom.Identity}, 800, 1000, 1+i/3))(t)...)
	}
	cams = append(cams, Camera{Name: "plain", Width: 8, Height: 8, Fx: 8, Fy: 8})
	taken, bent, err := AsTaken(cams)
	must.Do(t, err)
	if bent != 4 || len(taken) != 5 {
		t.Fatalf("%d cameras, %d of them bent", len(taken), bent)
	}
	for i, c := range cams {
		if alone := must.Get(c.AsTaken())(t); !reflect.DeepEqual(taken[i], alone) {
			t.Errorf("%s: %+v, alone %+v", c.Name, taken[i], alone)
		}
	}
	edge := func(i int) *float64 { return &taken[i].Distortion.reach[0] }
	if edge(0) != edge(2) || edge(0) == edge(1) || edge(1) == edge(3) {
		t.Error("photos of one lens and size do not share the walk along its edge, or others do")
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

// TestRefitted changes every lens that can be drawn through, as training does it, and wants its calibration to be that
// of the camera: the same photo as taken by both.
func TestRefitted(t *testing.T) {
	tried := 0
	for i := range lenstest.All {
		was, taken, err := takenCase(t, i, 4)
		if err != nil || taken.Distortion == nil || taken.Distortion.After {
			continue
		}
		tried++
		refined, d := taken, *taken.Distortion
		refined.Fx, refined.Fy, refined.Cx, refined.Cy = 1.01*taken.Fx, 1.01*taken.Fy, taken.Cx+1.5, taken.Cy-0.5
		d.Num[0], d.Num[1] = d.Num[0]+0.002, d.Num[1]-0.001
		if taken.Model == Fisheye {
			d.Num[2], d.Num[3] = d.Num[2]+0.0005, d.Num[3]-0.0002
		} else {
			d.P1, d.P2 = d.P1+0.001, d.P2-0.002
		}
		refined.Distortion = &d
		again := was
		again.Lens = &Lens{Calibration: was.Lens.Calibration.Refitted(&taken, &refined), R: was.Lens.R,
			Width: was.Lens.Width, Height: was.Lens.Height}
		got := must.Get(again.AsTaken())(t)
		off := func(name string, x, want float64) {
			if !(math.Abs(x-want) <= 1e-9*max(1, math.Abs(want))) {
				t.Errorf("%s: %s is %v, want %v", lensName(i), name, x, want)
			}
		}
		off("fx", got.Fx, refined.Fx)
		off("fy", got.Fy, refined.Fy)
		off("cx", got.Cx, refined.Cx)
		off("cy", got.Cy, refined.Cy)
		off("p1", got.Distortion.P1, d.P1)
		off("p2", got.Distortion.P2, d.P2)
		off("skew", got.Distortion.Skew, d.Skew)
		for k := range d.Num {
			off("radial term", got.Distortion.Num[k], d.Num[k])
		}
	}
	if tried < 8 {
		t.Errorf("%d lenses were tried", tried)
	}
	k := Calibration{Model: LensSimplePinhole, Width: 100, Height: 80, Params: []float64{90, 50, 40}}
	c := must.Get(k.Views(Camera{Name: "a", R: geom.Identity}, 100, 80, 1))(t)[0].Straight()
	bent, d := c, *c.Distortion
	d.Num[0], bent.Fx, bent.Fy, bent.Distortion = -0.1, 91, 91, &d
	if got := k.Refitted(&c, &bent); got.Model != LensOpenCV ||
		!slices.Equal(got.Params, []float64{91, 91, 50, 40, -0.1, 0, 0, 0}) {
		t.Errorf("a pinhole with distortion is %+v", got)
	}
}
