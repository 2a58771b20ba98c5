package scene

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene/lenstest"
)

// brown is Brown's distortion in OpenCV's notation, written out.
func brown(radial, p1, p2, x, y float64) (float64, float64) {
	r2 := x*x + y*y
	return x*radial + 2*p1*x*y + p2*(r2+2*x*x), y*radial + 2*p2*x*y + p1*(r2+2*y*y)
}

func toAngles(x, y, z float64) (u, v float64) {
	r := math.Hypot(x, y)
	if r == 0 {
		return 0, 0
	}
	theta := math.Atan2(r, z)
	return theta * x / r, theta * y / r
}

// projectByBook is an independent implementation of every model, formula by formula.
func projectByBook(m LensModel, p []float64, x, y, z float64) (px, py float64) {
	a, b := x/z, y/z
	s, t := toAngles(x, y, z)
	r2, th2 := a*a+b*b, s*s+t*t
	pow := math.Pow
	switch m {
	case LensSimplePinhole:
		return p[0]*a + p[1], p[0]*b + p[2]
	case LensPinhole:
		return p[0]*a + p[2], p[1]*b + p[3]
	case LensSimpleRadial:
		return p[0]*a*(1+p[3]*r2) + p[1], p[0]*b*(1+p[3]*r2) + p[2]
	case LensRadial:
		f := 1 + p[3]*r2 + p[4]*r2*r2
		return p[0]*a*f + p[1], p[0]*b*f + p[2]
	case LensOpenCV:
		a, b = brown(1+p[4]*r2+p[5]*r2*r2, p[6], p[7], a, b)
	case LensOpenCVFisheye:
		f := 1 + p[4]*th2 + p[5]*pow(th2, 2) + p[6]*pow(th2, 3) + p[7]*pow(th2, 4)
		a, b = s*f, t*f
	case LensFullOpenCV:
		f := (1 + p[4]*r2 + p[5]*pow(r2, 2) + p[8]*pow(r2, 3)) / (1 + p[9]*r2 + p[10]*pow(r2, 2) + p[11]*pow(r2, 3))
		a, b = brown(f, p[6], p[7], a, b)
	case LensFOV:
		if w := p[4]; w != 0 {
			f := math.Atan(2*math.Sqrt(r2)*math.Tan(w/2)) / (w * math.Sqrt(r2))
			if r2 == 0 {
				f = 2 * math.Tan(w/2) / w
			}
			a, b = a*f, b*f
		}
	case LensSimpleRadialFisheye:
		f := 1 + p[3]*th2
		return p[0]*s*f + p[1], p[0]*t*f + p[2]
	case LensRadialFisheye:
		f := 1 + p[3]*th2 + p[4]*th2*th2
		return p[0]*s*f + p[1], p[0]*t*f + p[2]
	case LensThinPrism:
		a, b = brown(1+p[4]*th2+p[5]*pow(th2, 2)+p[8]*pow(th2, 3)+p[9]*pow(th2, 4), p[6], p[7], s, t)
		a, b = a+p[10]*th2, b+p[11]*th2
	case LensRadTanThinPrism:
		f := 1.0
		for i := range 6 {
			f += p[4+i] * pow(th2, float64(i+1))
		}
		d := th2 * f * f
		a, b = brown(1, p[11], p[10], s*f, t*f)
		a, b = a+p[12]*d+p[13]*d*d, b+p[14]*d+p[15]*d*d
	case LensSimpleDivision:
		f := 2 / (z + math.Sqrt(z*z-4*(x*x+y*y)*p[3]))
		return p[0]*x*f + p[1], p[0]*y*f + p[2]
	case LensDivision:
		f := 2 / (z + math.Sqrt(z*z-4*(x*x+y*y)*p[4]))
		a, b = x*f, y*f
	case LensSimpleFisheye:
		return p[0]*s + p[1], p[0]*t + p[2]
	case LensFisheye:
		a, b = s, t
	case LensEUCM:
		d := p[4]*math.Sqrt(p[5]*(x*x+y*y)+z*z) + (1-p[4])*z
		a, b = x/d, y/d
	case LensEquirectangular:
		return p[0] * (0.5 + math.Atan2(x, z)/(2*math.Pi)), p[1] * (0.5 + math.Asin(y/math.Sqrt(x*x+y*y+z*z))/math.Pi)
	case LensPolynomial:
		f := 1 + p[4]*r2 + p[5]*pow(r2, 2) + p[6]*pow(r2, 3) + p[7]*pow(r2, 4)
		a, b = brown(f, p[8], p[9], a, b)
	case LensSkewed, LensSkewedFisheye:
		if m == LensSkewedFisheye {
			a, b, r2 = s, t, th2
		}
		a, b = brown(1+p[4]*r2+p[5]*pow(r2, 2)+p[6]*pow(r2, 3)+p[7]*pow(r2, 4), p[8], p[9], a, b)
		return p[0]*a + p[10]*b + p[2], p[1]*b + p[3]
	}
	return p[0]*a + p[2], p[1]*b + p[3]
}

func lensName(i int) string { return fmt.Sprintf("%d %v", i, lenstest.All[i].Model) }

func mustOptics(t testing.TB, k Calibration, width, height int) *Optics {
	t.Helper()
	o := must.Get(k.Optics(width, height))(t)
	return o
}

// Every model projects as the book says, and the inverse of its distortion gives the ray back.
func TestLensModels(t *testing.T) {
	seen := map[LensModel]bool{}
	for i, c := range lenstest.All {
		seen[LensModel(c.Model)] = true
		t.Run(lensName(i), func(t *testing.T) {
			o := mustOptics(t, Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}, 800,
				1000)
			inside := 0
			for y := -0.85; y <= 0.85; y += 0.05 {
				for x := -0.7; x <= 0.7; x += 0.05 {
					for _, z := range []float64{0.5, 1, 2} {
						px, py, ok := o.Project([3]float64{x * z, y * z, z})
						wx, wy := projectByBook(LensModel(c.Model), c.Params, x*z, y*z, z)
						if !ok {
							if math.Hypot(x, y) < 0.75 {
								t.Fatalf("no place for %v %v, want %v %v", x, y, wx, wy)
							}
							continue
						}
						if math.Abs(px-wx) > 1e-9 || math.Abs(py-wy) > 1e-9 {
							t.Fatalf("ray %v %v %v falls on %v %v, want %v %v", x*z, y*z, z, px, py, wx, wy)
						}
						inside++
						if o.Plane == NoPlane {
							continue
						}
						p, ok := o.ToPlane(px, py, [2]float64{})
						u, v := x, y
						if o.Plane == AnglePlane {
							u, v = toAngles(x, y, 1)
						}
						if !ok || math.Abs(p[0]-u) > 1e-9 || math.Abs(p[1]-v) > 1e-9 {
							t.Fatalf("pixel %v %v comes from %v (%v), want %v %v", px, py, p, ok, u, v)
						}
					}
				}
			}
			if inside < 1000 {
				t.Errorf("only %d rays", inside)
			}
		})
	}
	for m := range ColmapModels {
		if !seen[LensModel(m)] {
			t.Errorf("%v is not tested", LensModel(m))
		}
	}
}

// Up to the valid radius the distance from the centre grows; beyond it there is no place.
func TestLensNeverFolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		c := lenstest.All[i%len(lenstest.All)]
		info, _ := LensModel(c.Model).Info()
		if info.plane == NoPlane {
			continue
		}
		params := append([]float64(nil), c.Params...)
		for k := info.Focals + 2; k < len(params); k++ {
			params[k] += 0.3 * random.NormFloat64() * math.Pow(0.5, float64(k-info.Focals))
		}
		o, err := Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: params}.Optics(800, 1000)
		if err != nil {
			continue
		}
		for d := range 8 {
			sin, cos := math.Sincos(2 * math.Pi * float64(d) / 8)
			j, last := [4]float64{}, -1.0
			for r := 0.0; r <= o.Limit*0.999; r += o.Limit / 200 {
				x, y := o.distort(r*cos, r*sin)
				if j = o.jacobian(r*cos, r*sin); !(j[0]*j[3]-j[1]*j[2] > 0) {
					t.Fatalf("%v %v: Jacobian %v at radius %v of %v", c.Model, params, j, r, o.Limit)
				}
				if at := math.Hypot(x, y); symmetric(o) && at <= last {
					t.Fatalf("%v %v: radius %v of %v falls on %v, before it %v", c.Model, params, r, o.Limit, at, last)
				} else {
					last = at
				}
			}
			if _, _, ok := o.FromPlane(1.001*o.Limit*cos, 1.001*o.Limit*sin); ok {
				t.Errorf("%v: a place beyond the valid radius", c.Model)
			}
		}
	}
	// r - r³/3 turns at 1.
	o := mustOptics(t, Calibration{Model: LensSimpleRadial, Width: 10, Height: 10,
		Params: []float64{5, 5, 5, -1.0 / 3}}, 10, 10)
	if math.Abs(o.Limit-1) > 1e-6 {
		t.Errorf("the valid radius is %v, want 1", o.Limit)
	}
}

// Rays from behind have no place in a perspective photo.
func TestLensBehind(t *testing.T) {
	for i, c := range lenstest.All {
		o := mustOptics(t, Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}, 800,
			1000)
		_, _, ok := o.Project([3]float64{0.1, 0.2, -1})
		want := LensModel(c.Model) == LensEquirectangular || LensModel(c.Model) == LensSimpleFisheye ||
			LensModel(c.Model) == LensFisheye
		if o.Plane != NoPlane && o.Limit < 2.9 && ok || want && !ok {
			t.Errorf("%s: behind: %v with limit %v", lensName(i), ok, o.Limit)
		}
	}
}

func TestLensNames(t *testing.T) {
	for m, info := range ColmapModels {
		got, ok := LensModelByName(strings.ToLower(info.Name))
		if !ok || got != LensModel(m) || got.String() != info.Name || got.NumParams() != info.Params {
			t.Errorf("%s: %v, %v, %d parameters", info.Name, got, ok, got.NumParams())
		}
	}
	if m, ok := LensModelByName("polynomial"); !ok || m != LensPolynomial || m.NumParams() != 10 {
		t.Errorf("polynomial: %v %v", m, ok)
	}
	if m, ok := LensModelByName("SKEWED_FISHEYE"); !ok || m != LensSkewedFisheye || m.NumParams() != 11 {
		t.Errorf("skewed fisheye: %v %v", m, ok)
	}
	if _, ok := LensModelByName("FOO"); ok || LensModel(18).NumParams() != 0 ||
		LensModel(-1).String() != "lens model -1" {
		t.Error("a model that does not exist")
	}
}

func TestLensRefusals(t *testing.T) {
	for _, c := range []struct {
		k    Calibration
		want string
	}{
		{Calibration{Model: 99, Width: 8, Height: 8}, "not known"},
		{Calibration{Model: LensPinhole, Width: 8, Height: 8, Params: []float64{1, 1, 4}}, "has 3 parameters, want 4"},
		{Calibration{Model: LensPinhole, Width: 8, Height: 8, Params: []float64{1, math.NaN(), 4, 4}}, "not finite"},
		{Calibration{Model: LensPinhole, Width: 8, Height: 8, Params: []float64{1, -1, 4, 4}},
			"focal lengths are 1, -1"},
		{Calibration{Model: LensPinhole, Width: 0, Height: 8, Params: []float64{1, 1, 4, 4}}, "0 x 8"},
		{Calibration{Model: LensFOV, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 3.2}}, "omega"},
		{Calibration{Model: LensEUCM, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 1.01, 1}}, "alpha"},
		{Calibration{Model: LensEUCM, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 0.5, 0}}, "beta"},
		{Calibration{Model: LensRadial, Width: 8, Height: 8, Params: []float64{1, 4, 4, -1e9, 0}}, "folds"},
	} {
		_, err := c.k.Views(Camera{Name: "a.jpg"}, 8, 8, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
			t.Errorf("%v: %v, want %q with a hint", c.k, err, c.want)
		}
	}
}
