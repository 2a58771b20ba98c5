package scene

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// lensCases are parameters of every model, most of them those of COLMAP's own tests (sensor/models_test.cc), for a photo of 800 x 1000 pixels.
var lensCases = []struct {
	model  LensModel
	params []float64
}{
	{LensSimplePinhole, []float64{655.123, 386.123, 511.123}},
	{LensPinhole, []float64{651.123, 655.123, 386.123, 511.123}},
	{lensSimpleRadial, []float64{651.123, 386.123, 511.123, 0.1}},
	{lensSimpleRadial, []float64{651.123, 386.123, 511.123, -0.1}},
	{lensRadial, []float64{651.123, 386.123, 511.123, 0.05, 0.03}},
	{lensOpenCV, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001}},
	{lensOpenCVFisheye, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001}},
	{lensFullOpenCV, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001, 0.001, 0.02, -0.02, 0.001}},
	{lensFOV, []float64{651.123, 655.123, 386.123, 511.123, 0}},
	{lensFOV, []float64{651.123, 655.123, 386.123, 511.123, 0.9}},
	{lensFOV, []float64{651.123, 655.123, 386.123, 511.123, 1e-6}},
	{lensSimpleRadialFisheye, []float64{651.123, 386.123, 511.123, 0.1}},
	{lensRadialFisheye, []float64{651.123, 386.123, 511.123, 0.02, 0.05}},
	{lensThinPrism, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001, 0.001, 0.02, -0.02, 0.001}},
	{lensRadTanThinPrism, []float64{651.123, 655.123, 386.123, 511.123,
		-0.0232, 0.0924, -0.0591, 0.003, 0.0048, -0.0009, 0.0002, 0.0005, -0.0009, -0.0001, 0.00007, -0.00017}},
	{lensSimpleDivision, []float64{651.123, 386.123, 511.123, 0}},
	{lensSimpleDivision, []float64{651.123, 386.123, 511.123, 0.1}},
	{lensDivision, []float64{651.123, 655.123, 386.123, 511.123, -0.1}},
	{lensSimpleFisheye, []float64{651.123, 386.123, 511.123}},
	{lensFisheye, []float64{651.123, 655.123, 386.123, 511.123}},
	{lensEUCM, []float64{651.123, 655.123, 386.123, 511.123, 0.56, 0.87}},
	{lensEUCM, []float64{400, 400, 400, 400, 0.88, 0.64}},
	{lensEUCM, []float64{651.123, 655.123, 386.123, 511.123, 0, 1}},
	{LensEquirectangular, []float64{800, 1000}},
	{LensPolynomial, []float64{651.123, 655.123, 386.123, 511.123, -0.2, 0.05, -0.01, 0.002, 0.0007, -0.0011}},
}

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
	case lensSimpleRadial:
		return p[0]*a*(1+p[3]*r2) + p[1], p[0]*b*(1+p[3]*r2) + p[2]
	case lensRadial:
		f := 1 + p[3]*r2 + p[4]*r2*r2
		return p[0]*a*f + p[1], p[0]*b*f + p[2]
	case lensOpenCV:
		a, b = brown(1+p[4]*r2+p[5]*r2*r2, p[6], p[7], a, b)
	case lensOpenCVFisheye:
		f := 1 + p[4]*th2 + p[5]*pow(th2, 2) + p[6]*pow(th2, 3) + p[7]*pow(th2, 4)
		a, b = s*f, t*f
	case lensFullOpenCV:
		f := (1 + p[4]*r2 + p[5]*pow(r2, 2) + p[8]*pow(r2, 3)) / (1 + p[9]*r2 + p[10]*pow(r2, 2) + p[11]*pow(r2, 3))
		a, b = brown(f, p[6], p[7], a, b)
	case lensFOV:
		if w := p[4]; w != 0 {
			f := math.Atan(2*math.Sqrt(r2)*math.Tan(w/2)) / (w * math.Sqrt(r2))
			if r2 == 0 {
				f = 2 * math.Tan(w/2) / w
			}
			a, b = a*f, b*f
		}
	case lensSimpleRadialFisheye:
		f := 1 + p[3]*th2
		return p[0]*s*f + p[1], p[0]*t*f + p[2]
	case lensRadialFisheye:
		f := 1 + p[3]*th2 + p[4]*th2*th2
		return p[0]*s*f + p[1], p[0]*t*f + p[2]
	case lensThinPrism:
		a, b = brown(1+p[4]*th2+p[5]*pow(th2, 2)+p[8]*pow(th2, 3)+p[9]*pow(th2, 4), p[6], p[7], s, t)
		a, b = a+p[10]*th2, b+p[11]*th2
	case lensRadTanThinPrism:
		f := 1.0
		for i := range 6 {
			f += p[4+i] * pow(th2, float64(i+1))
		}
		d := th2 * f * f
		a, b = brown(1, p[11], p[10], s*f, t*f)
		a, b = a+p[12]*d+p[13]*d*d, b+p[14]*d+p[15]*d*d
	case lensSimpleDivision:
		f := 2 / (z + math.Sqrt(z*z-4*(x*x+y*y)*p[3]))
		return p[0]*x*f + p[1], p[0]*y*f + p[2]
	case lensDivision:
		f := 2 / (z + math.Sqrt(z*z-4*(x*x+y*y)*p[4]))
		a, b = x*f, y*f
	case lensSimpleFisheye:
		return p[0]*s + p[1], p[0]*t + p[2]
	case lensFisheye:
		a, b = s, t
	case lensEUCM:
		d := p[4]*math.Sqrt(p[5]*(x*x+y*y)+z*z) + (1-p[4])*z
		a, b = x/d, y/d
	case LensEquirectangular:
		return p[0] * (0.5 + math.Atan2(x, z)/(2*math.Pi)), p[1] * (0.5 + math.Asin(y/math.Sqrt(x*x+y*y+z*z))/math.Pi)
	case LensPolynomial:
		f := 1 + p[4]*r2 + p[5]*pow(r2, 2) + p[6]*pow(r2, 3) + p[7]*pow(r2, 4)
		a, b = brown(f, p[8], p[9], a, b)
	}
	return p[0]*a + p[2], p[1]*b + p[3]
}

func lensName(i int) string { return fmt.Sprintf("%d %v", i, lensCases[i].model) }

func mustOptics(t testing.TB, k Calibration, width, height int) *optics {
	t.Helper()
	o, err := k.optics(width, height)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Every model projects as the book says, and the inverse of its distortion gives the ray back.
func TestLensModels(t *testing.T) {
	seen := map[LensModel]bool{}
	for i, c := range lensCases {
		seen[c.model] = true
		t.Run(lensName(i), func(t *testing.T) {
			o := mustOptics(t, Calibration{Model: c.model, Width: 800, Height: 1000, Params: c.params}, 800, 1000)
			inside := 0
			for y := -0.85; y <= 0.85; y += 0.05 {
				for x := -0.7; x <= 0.7; x += 0.05 {
					for _, z := range []float64{0.5, 1, 2} {
						px, py, ok := o.project([3]float64{x * z, y * z, z})
						wx, wy := projectByBook(c.model, c.params, x*z, y*z, z)
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
						if o.plane == noPlane {
							continue
						}
						p, ok := o.toPlane(px, py, [2]float64{})
						u, v := x, y
						if o.plane == anglePlane {
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
	for m := range colmapModels {
		if !seen[LensModel(m)] {
			t.Errorf("%v is not tested", LensModel(m))
		}
	}
}

// Up to the valid radius the distance from the centre grows; beyond it there is no place.
func TestLensNeverFolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		c := lensCases[i%len(lensCases)]
		info, _ := c.model.info()
		if info.plane == noPlane {
			continue
		}
		params := append([]float64(nil), c.params...)
		for k := info.focals + 2; k < len(params); k++ {
			params[k] += 0.3 * random.NormFloat64() * math.Pow(0.5, float64(k-info.focals))
		}
		o, err := Calibration{Model: c.model, Width: 800, Height: 1000, Params: params}.optics(800, 1000)
		if err != nil {
			continue
		}
		for d := range 8 {
			sin, cos := math.Sincos(2 * math.Pi * float64(d) / 8)
			j, last := [4]float64{}, -1.0
			for r := 0.0; r <= o.limit*0.999; r += o.limit / 200 {
				x, y := o.distort(r*cos, r*sin)
				if j = o.jacobian(r*cos, r*sin); !(j[0]*j[3]-j[1]*j[2] > 0) {
					t.Fatalf("%v %v: Jacobian %v at radius %v of %v", c.model, params, j, r, o.limit)
				}
				if at := math.Hypot(x, y); o.symmetric() && at <= last {
					t.Fatalf("%v %v: radius %v of %v falls on %v, before it %v", c.model, params, r, o.limit, at, last)
				} else {
					last = at
				}
			}
			if _, _, ok := o.fromPlane(1.001*o.limit*cos, 1.001*o.limit*sin); ok {
				t.Errorf("%v: a place beyond the valid radius", c.model)
			}
		}
	}
	// r - r³/3 turns at 1.
	o := mustOptics(t, Calibration{Model: lensSimpleRadial, Width: 10, Height: 10, Params: []float64{5, 5, 5, -1.0 / 3}}, 10, 10)
	if math.Abs(o.limit-1) > 1e-6 {
		t.Errorf("the valid radius is %v, want 1", o.limit)
	}
}

// Rays from behind have no place in a perspective photo.
func TestLensBehind(t *testing.T) {
	for i, c := range lensCases {
		o := mustOptics(t, Calibration{Model: c.model, Width: 800, Height: 1000, Params: c.params}, 800, 1000)
		_, _, ok := o.project([3]float64{0.1, 0.2, -1})
		want := c.model == LensEquirectangular || c.model == lensSimpleFisheye || c.model == lensFisheye
		if o.plane != noPlane && o.limit < 2.9 && ok || want && !ok {
			t.Errorf("%s: behind: %v with limit %v", lensName(i), ok, o.limit)
		}
	}
}

func TestLensNames(t *testing.T) {
	for m, info := range colmapModels {
		got, ok := LensModelByName(strings.ToLower(info.name))
		if !ok || got != LensModel(m) || got.String() != info.name || got.NumParams() != info.params {
			t.Errorf("%s: %v, %v, %d parameters", info.name, got, ok, got.NumParams())
		}
	}
	if m, ok := LensModelByName("polynomial"); !ok || m != LensPolynomial || m.NumParams() != 10 {
		t.Errorf("polynomial: %v %v", m, ok)
	}
	if _, ok := LensModelByName("FOO"); ok || LensModel(18).NumParams() != 0 || LensModel(-1).String() != "lens model -1" {
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
		{Calibration{Model: LensPinhole, Width: 8, Height: 8, Params: []float64{1, -1, 4, 4}}, "focal lengths are 1, -1"},
		{Calibration{Model: LensPinhole, Width: 0, Height: 8, Params: []float64{1, 1, 4, 4}}, "0 x 8"},
		{Calibration{Model: lensFOV, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 3.2}}, "omega"},
		{Calibration{Model: lensEUCM, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 1.01, 1}}, "alpha"},
		{Calibration{Model: lensEUCM, Width: 8, Height: 8, Params: []float64{1, 1, 4, 4, 0.5, 0}}, "beta"},
		{Calibration{Model: lensRadial, Width: 8, Height: 8, Params: []float64{1, 4, 4, -1e9, 0}}, "folds"},
	} {
		_, err := c.k.Views(Camera{Name: "a.jpg"}, 8, 8, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || Hint(err) == "" {
			t.Errorf("%v: %v, want %q with a hint", c.k, err, c.want)
		}
	}
}
