package scene

import (
	"math"
	"slices"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene/lenstest"
)

// Derivatives of every lens model agree with differences of Project.
func TestLinearise(t *testing.T) {
	rays := [][3]float64{{0.1, -0.2, 1}, {-0.35, 0.3, 1.2}, {0, 0, 2}, {0.01, 0.4, 1}}
	for _, c := range lenstest.All {
		k := Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}
		o, err := k.Optics(800, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, ray := range rays {
			var s Slope
			x, y, ok := o.Linearise(ray, &s)
			wantX, wantY, want := o.Project(ray)
			if want = want && o.Plane != NoPlane; ok != want || ok && (x != wantX || y != wantY) {
				t.Fatalf("%v %v: %v at %v, %v, want %v at %v, %v", k.Model, ray, ok, x, y, want, wantX, wantY)
			}
			if !ok {
				continue
			}
			for i := range 3 {
				const h = 1e-6
				a, b := ray, ray
				a[i], b[i] = a[i]-h, b[i]+h
				checkSlope(t, k.Model, [2]float64{s.Ray[0][i], s.Ray[1][i]}, o, o, a, b, h)
			}
			for i := range k.Model.Calibrated() {
				h := 1e-6 * max(1, math.Abs(k.Params[i]))
				low, high := k, k
				low.Params, high.Params = slices.Clone(k.Params), slices.Clone(k.Params)
				low.Params[i] -= h
				high.Params[i] += h
				a, errA := low.Optics(800, 1000)
				b, errB := high.Optics(800, 1000)
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				checkSlope(t, k.Model, [2]float64{s.Params[0][i], s.Params[1][i]}, a, b, ray, ray, h)
			}
		}
	}
}

// A place of a panorama is missed by distances on the sphere, across the seam and near the poles too, with the
// derivatives that differences have; what is behind it is not seen there.
func TestMissPanorama(t *testing.T) {
	k := Calibration{Model: LensEquirectangular, Width: 2000, Height: 1000, Params: []float64{2000, 1000}}
	o, err := k.Optics(2000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const perRadian, h = 1000 / math.Pi, 1e-6
	rays := [][3]float64{{0.3, -0.2, 1}, {-0.001, 0.1, -2}, {0.001, 0.1, -2}, {0.02, 3, -0.01}, {-0.1, -9, 0.2}}
	for _, ray := range rays {
		x, y, _ := o.Project(ray)
		back, ok := o.Ray(x, y)
		if d := geom.Sub(back, geom.Scale(ray, 1/geom.Length(ray))); !ok || geom.Length(d) > 1e-12 {
			t.Errorf("%v has the place %v, %v, and that the ray %v", ray, x, y, back)
		}
		beside := geom.Add(back, [3]float64{0.003, -0.002, 0.004})
		along := geom.Dot(beside, back)
		want := perRadian * geom.Length(geom.Sub(beside, geom.Scale(back, along))) / along
		var s Slope
		dx, dy, ok := o.Miss(beside, x, y, &s)
		if !ok || math.Abs(math.Hypot(dx, dy)-want) > 1e-9 {
			t.Errorf("%v is missed by %v, %v, want %v", ray, dx, dy, want)
		}
		for i := range 3 {
			a, b := beside, beside
			a[i], b[i] = a[i]-h, b[i]+h
			x0, y0, _ := o.Miss(a, x, y, nil)
			x1, y1, _ := o.Miss(b, x, y, nil)
			if math.Abs(s.Ray[0][i]-(x1-x0)/(2*h)) > 1e-4 || math.Abs(s.Ray[1][i]-(y1-y0)/(2*h)) > 1e-4 {
				t.Errorf("%v: derivatives by %d are %v and %v", ray, i, s.Ray[0][i], s.Ray[1][i])
			}
		}
		if _, _, ok := o.Miss(geom.Scale(ray, -1), x, y, nil); ok {
			t.Errorf("what is behind %v is seen there", ray)
		}
	}
	dx, dy, _ := o.Miss([3]float64{-0.01, 0, -1}, 1999, 500, nil)
	if ex, _, _ := o.Project([3]float64{-0.01, 0, -1}); math.Abs(dx-(ex+1)) > 0.01 || math.Abs(dy) > 1e-9 {
		t.Errorf("across the seam %v is missed by %v, %v", ex, dx, dy)
	}
}

// checkSlope compares with a central difference of two projections.
func checkSlope(t *testing.T, model LensModel, got [2]float64, low, high *Optics, a, b [3]float64, h float64) {
	t.Helper()
	x0, y0, ok0 := low.Project(a)
	x1, y1, ok1 := high.Project(b)
	if !ok0 || !ok1 {
		t.Fatalf("%v: no place beside %v", model, a)
	}
	want := [2]float64{(x1 - x0) / (2 * h), (y1 - y0) / (2 * h)}
	for i := range 2 {
		if math.Abs(got[i]-want[i]) > 1e-4+1e-5*math.Abs(want[i]) {
			t.Errorf("%v: derivative %d is %v, want %v", model, i, got, want)
		}
	}
}
