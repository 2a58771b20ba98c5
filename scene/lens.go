package scene

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"vksplat/internal/geom"
)

// lensPlane is the plane in which a lens model describes its distortion.
type lensPlane int

const (
	TangentPlane lensPlane = iota // (X/Z, Y/Z): what a pinhole of focal length 1 sees
	// (X, Y) as long as the angle from the axis in radians: what an equidistant fisheye of focal length 1 sees
	AnglePlane
	NoPlane // the whole sphere
)

type lensInfo struct {
	Name   string
	Params int // numbers in Calibration.Params
	// how many of them are focal lengths: f or fx, fy; they come first, the principal point next, the distortion last
	Focals int
	plane  lensPlane
	Fish   bool // a fisheye: its photos are trained on in the equidistant projection
}

// ColmapModels are COLMAP's camera models by id, as in its sensor/models.h.
var ColmapModels = [...]lensInfo{
	LensSimplePinhole:       {"SIMPLE_PINHOLE", 3, 1, TangentPlane, false},
	LensPinhole:             {"PINHOLE", 4, 2, TangentPlane, false},
	LensSimpleRadial:        {"SIMPLE_RADIAL", 4, 1, TangentPlane, false},
	LensRadial:              {"RADIAL", 5, 1, TangentPlane, false},
	LensOpenCV:              {"OPENCV", 8, 2, TangentPlane, false},
	LensOpenCVFisheye:       {"OPENCV_FISHEYE", 8, 2, AnglePlane, true},
	LensFullOpenCV:          {"FULL_OPENCV", 12, 2, TangentPlane, false},
	LensFOV:                 {"FOV", 5, 2, TangentPlane, false},
	LensSimpleRadialFisheye: {"SIMPLE_RADIAL_FISHEYE", 4, 1, AnglePlane, true},
	LensRadialFisheye:       {"RADIAL_FISHEYE", 5, 1, AnglePlane, true},
	LensThinPrism:           {"THIN_PRISM_FISHEYE", 12, 2, AnglePlane, true},
	LensRadTanThinPrism:     {"RAD_TAN_THIN_PRISM_FISHEYE", 16, 2, AnglePlane, true},
	LensSimpleDivision:      {"SIMPLE_DIVISION", 4, 1, AnglePlane, false},
	LensDivision:            {"DIVISION", 5, 2, AnglePlane, false},
	LensSimpleFisheye:       {"SIMPLE_FISHEYE", 3, 1, AnglePlane, true},
	LensFisheye:             {"FISHEYE", 4, 2, AnglePlane, true},
	LensEUCM:                {"EUCM", 6, 2, AnglePlane, false},
	LensEquirectangular:     {"EQUIRECTANGULAR", 2, 0, NoPlane, false},
}

// ownModels are those that COLMAP does not have, from LensPolynomial on.
var ownModels = [...]lensInfo{
	{"POLYNOMIAL", 10, 2, TangentPlane, false},
	{"SKEWED", 11, 2, TangentPlane, false},
	{"SKEWED_FISHEYE", 11, 2, AnglePlane, true},
}

// Info describes a model; ok is false for one that does not exist.
func (m LensModel) Info() (info lensInfo, ok bool) {
	switch {
	case m >= 0 && int(m) < len(ColmapModels):
		return ColmapModels[m], true
	case m >= LensPolynomial && int(m-LensPolynomial) < len(ownModels):
		return ownModels[m-LensPolynomial], true
	}
	return lensInfo{}, false
}

// String gives COLMAP's name of the model, or a name like it.
func (m LensModel) String() string {
	if info, ok := m.Info(); ok {
		return info.Name
	}
	return "lens model " + strconv.Itoa(int(m))
}

// NumParams gives the length of Calibration.Params, 0 for a model that does not exist.
func (m LensModel) NumParams() int {
	info, _ := m.Info()
	return info.Params
}

// LensModelByName finds COLMAP's name of a model, in any case.
func LensModelByName(name string) (m LensModel, ok bool) {
	for m, info := range ColmapModels {
		if strings.EqualFold(info.Name, name) {
			return LensModel(m), true
		}
	}
	for i, info := range ownModels {
		if strings.EqualFold(info.Name, name) {
			return LensPolynomial + LensModel(i), true
		}
	}
	return LensPolynomial, false
}

// polynomial holds the coefficients of all models that distort by polynomials in their plane: radial terms, then
// Brown's tangential terms in OpenCV's notation, then those of thin prisms.
type polynomial struct {
	num    [6]float64 // of r², r⁴, ... r¹²
	den    [3]float64 // of r², r⁴, r⁶ in the denominator
	p1, p2 float64    // dx = 2 p1 x y + p2 (r² + 2 x²), dy = p1 (r² + 2 y²) + 2 p2 x y
	sx, sy [2]float64 // of r², r⁴
	// tangential and prism terms are functions of the radially distorted point, not of the undistorted one
	after bool
}

// Optics is a calibration made ready to project into a photo of a certain size.
type Optics struct {
	model          LensModel
	Plane          lensPlane
	fx, fy, cx, cy float64 // pixels of that photo
	poly           polynomial
	extra          [2]float64 // FOV: omega; division: k; EUCM: alpha, beta; skewed: skew in focal lengths
	plain          bool       // no distortion in the plane
	Width, Height  float64    // of the photo
	Limit          float64    // largest radius in the plane up to which different rays fall on different places
}

// Optics checks a calibration and prepares it for a photo of width x height pixels.
func (k Calibration) Optics(width, height int) (*Optics, error) {
	info, ok := k.Model.Info()
	switch {
	case !ok:
		return nil, fmt.Errorf("lens model %d is not known", int(k.Model))
	case len(k.Params) != info.Params:
		return nil, fmt.Errorf("the lens model %s has %d parameters, want %d", info.Name, len(k.Params), info.Params)
	case !geom.Finite(k.Params...):
		return nil, fmt.Errorf("the lens model %s has a parameter that is not finite", info.Name)
	case k.Width <= 0 || k.Height <= 0 || k.Width > geom.MaxSide || k.Height > geom.MaxSide || width <= 0 ||
		height <= 0 || width > MaxPixels/height:
		return nil, fmt.Errorf("a photo of %d x %d pixels with a calibration for %d x %d", width, height, k.Width,
			k.Height)
	}
	o := &Optics{model: k.Model, Plane: info.plane, Width: float64(width), Height: float64(height), plain: true}
	if info.plane == NoPlane {
		return o, nil
	}
	p := k.Params
	o.fx, o.fy = p[0], p[info.Focals-1]
	o.cx, o.cy = p[info.Focals], p[info.Focals+1]
	if !(o.fx > 0 && o.fy > 0 && o.fx < MaxCoordinate && o.fy < MaxCoordinate) || math.Abs(o.cx) > MaxCoordinate ||
		math.Abs(o.cy) > MaxCoordinate {
		return nil, fmt.Errorf("the focal lengths are %g, %g and the principal point is %g, %g", o.fx, o.fy, o.cx, o.cy)
	}
	if err := o.setDistortion(p[info.Focals+2:]); err != nil {
		return nil, err
	}
	x, y := o.Width/float64(k.Width), o.Height/float64(k.Height)
	o.fx, o.cx = o.fx*x, o.cx*x
	o.fy, o.cy = o.fy*y, o.cy*y
	o.Limit = o.validRadius()
	if !(o.Limit > 1e-3) {
		return nil, fmt.Errorf("the distortion of the lens model %s folds the picture at its centre", info.Name)
	}
	return o, nil
}

// setDistortion takes the parameters after the principal point.
func (o *Optics) setDistortion(d []float64) error {
	poly := &o.poly
	switch o.model {
	case LensSimplePinhole, LensPinhole, LensSimpleFisheye, LensFisheye:
	case LensSimpleRadial, LensRadial, LensSimpleRadialFisheye, LensRadialFisheye, LensOpenCVFisheye:
		copy(poly.num[:], d)
	case LensOpenCV, LensFullOpenCV, LensThinPrism: // k1, k2, p1, p2 and more
		poly.num[0], poly.num[1], poly.p1, poly.p2 = d[0], d[1], d[2], d[3]
		switch o.model {
		case LensFullOpenCV:
			poly.num[2] = d[4]
			copy(poly.den[:], d[5:])
		case LensThinPrism:
			poly.num[2], poly.num[3], poly.sx[0], poly.sy[0] = d[4], d[5], d[6], d[7]
		}
	case LensPolynomial, LensSkewed, LensSkewedFisheye:
		copy(poly.num[:], d[:4])
		poly.p1, poly.p2 = d[4], d[5]
		if o.model != LensPolynomial {
			o.extra[0] = d[6] / o.fx
		}
	case LensRadTanThinPrism: // k0..k5, p0, p1, s0..s3; p0 stands where OpenCV has p2
		copy(poly.num[:], d[:6])
		poly.p2, poly.p1, poly.sx, poly.sy, poly.after = d[6], d[7], [2]float64(d[8:]), [2]float64(d[10:]), true
	case LensFOV:
		o.extra[0] = d[0]
		if !(math.Abs(d[0]) < math.Pi) {
			return fmt.Errorf("the field of view omega of the lens model FOV is %g, want less than pi", d[0])
		}
	case LensSimpleDivision, LensDivision:
		o.extra[0] = d[0]
	case LensEUCM:
		copy(o.extra[:], d)
		if !(d[0] >= 0 && d[0] <= 1 && d[1] > 0) {
			return fmt.Errorf(
				"alpha and beta of the lens model EUCM are %g and %g, want alpha in 0..1 and beta above 0", d[0], d[1])
		}
	}
	o.plain = *poly == polynomial{after: poly.after} && o.extra[0] == 0
	switch {
	case !o.plain || o.Plane == TangentPlane:
	case o.model == LensSimpleDivision || o.model == LensDivision || o.model == LensEUCM:
		o.Plane = TangentPlane // they are pinholes now
	}
	return nil
}

// symmetric says whether the distortion depends on the radius alone.
func symmetric(o *Optics) bool {
	p := &o.poly
	return p.p1 == 0 && p.p2 == 0 && p.sx == [2]float64{} && p.sy == [2]float64{} && skew(o) == 0
}

// skew is by how much a point moves to the right for each unit that it is below the axis.
func skew(o *Optics) float64 {
	if o.model == LensSkewed || o.model == LensSkewedFisheye {
		return o.extra[0]
	}
	return 0
}

// distort maps a point of the plane to where it falls in the photo, in focal lengths from the principal point. Every
// product is rounded by itself, so that processors with and without fused multiply-add agree.
func (o *Optics) distort(u, v float64) (x, y float64) {
	r2 := float64(u*u) + float64(v*v)
	switch o.model {
	case LensFOV:
		f := fovFactor(o.extra[0], math.Sqrt(r2))
		return u * f, v * f
	case LensSimpleDivision, LensDivision, LensEUCM:
		if o.plain {
			return u, v
		}
		f := o.angleFactor(math.Sqrt(r2))
		return u * f, v * f
	}
	if o.plain {
		return u, v
	}
	x, y = o.poly.distort(u, v)
	if skew := skew(o); skew != 0 {
		x += float64(skew * y)
	}
	return x, y
}

// distort is Optics.distort without a skew.
func (p *polynomial) distort(u, v float64) (x, y float64) {
	r2 := float64(u*u) + float64(v*v)
	f := 1 + evenSum(p.num[:], r2)
	if p.den != [3]float64{} {
		f /= 1 + evenSum(p.den[:], r2)
	}
	x, y = u*f, v*f
	if p.after {
		u, v = x, y
		r2 = float64(u*u) + float64(v*v)
	}
	r4, uv := r2*r2, u*v
	x += float64(2*p.p1*uv) + float64(p.p2*(r2+float64(2*u*u))) + float64(p.sx[0]*r2) + float64(p.sx[1]*r4)
	y += float64(2*p.p2*uv) + float64(p.p1*(r2+float64(2*v*v))) + float64(p.sy[0]*r2) + float64(p.sy[1]*r4)
	return x, y
}

// evenSum gives c[0] r² + c[1] r⁴ + ...
func evenSum(c []float64, r2 float64) float64 {
	s := 0.0
	for i := len(c) - 1; i >= 0; i-- {
		s = float64((s + c[i]) * r2)
	}
	return s
}

// fovFactor is by how much the model of Devernay and Faugeras (2001) moves a point at radius r in the tangent plane:
// atan(2 r tan(omega/2)) / (r omega).
func fovFactor(omega, r float64) float64 {
	if omega == 0 {
		return 1
	}
	t := 2 * math.Tan(omega/2)
	if math.Abs(r*t) < 1e-9 {
		return t / omega
	}
	return math.Atan(r*t) / (r * omega)
}

// angleFactor is the distance from the principal point in focal lengths over the angle, for the models whose formulas
// take rays: division (Fitzgibbon 2001) and the enhanced unified model (Khomutenko, Garcia, Martinet 2016). NaN where
// there is no image.
func (o *Optics) angleFactor(theta float64) float64 {
	sin, cos := math.Sincos(theta)
	ratio := 1.0 // sin(theta)/theta
	if theta > 1e-9 {
		ratio = sin / theta
	}
	if o.model == LensEUCM {
		alpha, beta := o.extra[0], o.extra[1]
		return above(ratio, alpha*math.Sqrt(float64(beta*sin*sin)+float64(cos*cos))+float64((1-alpha)*cos))
	}
	root := math.Sqrt(float64(cos*cos) - float64(4*sin*sin*o.extra[0]))
	return above(2*ratio, cos+root)
}

// above gives a/b for positive b, NaN otherwise.
func above(a, b float64) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return a / b
}
