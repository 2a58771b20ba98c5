package scene

import (
	"math"
	"slices"
	"testing"

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
