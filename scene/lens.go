package scene

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// lensPlane is the plane in which a lens model describes its distortion.
type lensPlane int

const (
	tangentPlane lensPlane = iota // (X/Z, Y/Z): what a pinhole of focal length 1 sees
	anglePlane                    // (X, Y) as long as the angle from the axis in radians: what an equidistant fisheye of focal length 1 sees
	noPlane                       // the whole sphere
)

// lensInfo describes a lens model.
type lensInfo struct {
	name   string
	params int // numbers in Calibration.Params
	focals int // how many of them are focal lengths: f or fx, fy; they come first, the principal point next, the distortion last
	plane  lensPlane
	fish   bool // a fisheye: its photos are trained on in the equidistant projection
}

// colmapModels are COLMAP's camera models by id, as in its sensor/models.h.
var colmapModels = [...]lensInfo{
	LensSimplePinhole:       {"SIMPLE_PINHOLE", 3, 1, tangentPlane, false},
	LensPinhole:             {"PINHOLE", 4, 2, tangentPlane, false},
	lensSimpleRadial:        {"SIMPLE_RADIAL", 4, 1, tangentPlane, false},
	lensRadial:              {"RADIAL", 5, 1, tangentPlane, false},
	lensOpenCV:              {"OPENCV", 8, 2, tangentPlane, false},
	lensOpenCVFisheye:       {"OPENCV_FISHEYE", 8, 2, anglePlane, true},
	lensFullOpenCV:          {"FULL_OPENCV", 12, 2, tangentPlane, false},
	lensFOV:                 {"FOV", 5, 2, tangentPlane, false},
	lensSimpleRadialFisheye: {"SIMPLE_RADIAL_FISHEYE", 4, 1, anglePlane, true},
	lensRadialFisheye:       {"RADIAL_FISHEYE", 5, 1, anglePlane, true},
	lensThinPrism:           {"THIN_PRISM_FISHEYE", 12, 2, anglePlane, true},
	lensRadTanThinPrism:     {"RAD_TAN_THIN_PRISM_FISHEYE", 16, 2, anglePlane, true},
	lensSimpleDivision:      {"SIMPLE_DIVISION", 4, 1, anglePlane, false},
	lensDivision:            {"DIVISION", 5, 2, anglePlane, false},
	lensSimpleFisheye:       {"SIMPLE_FISHEYE", 3, 1, anglePlane, true},
	lensFisheye:             {"FISHEYE", 4, 2, anglePlane, true},
	lensEUCM:                {"EUCM", 6, 2, anglePlane, false},
	LensEquirectangular:     {"EQUIRECTANGULAR", 2, 0, noPlane, false},
}

var polynomialModel = lensInfo{"POLYNOMIAL", 10, 2, tangentPlane, false}

// info describes a model; ok is false for one that does not exist.
func (m LensModel) info() (info lensInfo, ok bool) {
	switch {
	case m >= 0 && int(m) < len(colmapModels):
		return colmapModels[m], true
	case m == LensPolynomial:
		return polynomialModel, true
	}
	return lensInfo{}, false
}

// String gives COLMAP's name of the model, or a name like it.
func (m LensModel) String() string {
	if info, ok := m.info(); ok {
		return info.name
	}
	return "lens model " + strconv.Itoa(int(m))
}

// NumParams gives the length of Calibration.Params, 0 for a model that does not exist.
func (m LensModel) NumParams() int {
	info, _ := m.info()
	return info.params
}

// LensModelByName finds COLMAP's name of a model, in any case.
func LensModelByName(name string) (m LensModel, ok bool) {
	for m, info := range colmapModels {
		if strings.EqualFold(info.name, name) {
			return LensModel(m), true
		}
	}
	return LensPolynomial, strings.EqualFold(polynomialModel.name, name)
}

// polynomial holds the coefficients of all models that distort by polynomials in their plane: radial terms, then Brown's tangential terms in OpenCV's
// notation, then those of thin prisms.
type polynomial struct {
	num    [6]float64 // of r², r⁴, ... r¹²
	den    [3]float64 // of r², r⁴, r⁶ in the denominator
	p1, p2 float64    // dx = 2 p1 x y + p2 (r² + 2 x²), dy = p1 (r² + 2 y²) + 2 p2 x y
	sx, sy [2]float64 // of r², r⁴
	after  bool       // tangential and prism terms are functions of the radially distorted point, not of the undistorted one
}

// optics is a calibration made ready to project into a photo of a certain size.
type optics struct {
	model          LensModel
	plane          lensPlane
	fx, fy, cx, cy float64 // pixels of that photo
	poly           polynomial
	extra          [2]float64 // FOV: omega; division: k; EUCM: alpha, beta
	plain          bool       // no distortion in the plane
	width, height  float64    // of the photo
	limit          float64    // largest radius in the plane up to which different rays fall on different places
}

// optics checks a calibration and prepares it for a photo of width x height pixels.
func (k Calibration) optics(width, height int) (*optics, error) {
	info, ok := k.Model.info()
	switch {
	case !ok:
		return nil, fmt.Errorf("lens model %d is not known", int(k.Model))
	case len(k.Params) != info.params:
		return nil, fmt.Errorf("the lens model %s has %d parameters, want %d", info.name, len(k.Params), info.params)
	case !finite(k.Params...):
		return nil, fmt.Errorf("the lens model %s has a parameter that is not finite", info.name)
	case k.Width <= 0 || k.Height <= 0 || k.Width > maxSide || k.Height > maxSide || width <= 0 || height <= 0 || width > maxPixels/height:
		return nil, fmt.Errorf("a photo of %d x %d pixels with a calibration for %d x %d", width, height, k.Width, k.Height)
	}
	o := &optics{model: k.Model, plane: info.plane, width: float64(width), height: float64(height), plain: true}
	if info.plane == noPlane {
		return o, nil
	}
	p := k.Params
	o.fx, o.fy = p[0], p[info.focals-1]
	o.cx, o.cy = p[info.focals], p[info.focals+1]
	if !(o.fx > 0 && o.fy > 0 && o.fx < maxCoordinate && o.fy < maxCoordinate) || math.Abs(o.cx) > maxCoordinate || math.Abs(o.cy) > maxCoordinate {
		return nil, fmt.Errorf("the focal lengths are %g, %g and the principal point is %g, %g", o.fx, o.fy, o.cx, o.cy)
	}
	if err := o.setDistortion(p[info.focals+2:]); err != nil {
		return nil, err
	}
	x, y := o.width/float64(k.Width), o.height/float64(k.Height)
	o.fx, o.cx = o.fx*x, o.cx*x
	o.fy, o.cy = o.fy*y, o.cy*y
	o.limit = o.validRadius()
	if !(o.limit > 1e-3) {
		return nil, fmt.Errorf("the distortion of the lens model %s folds the picture at its centre", info.name)
	}
	return o, nil
}

// setDistortion takes the parameters after the principal point.
func (o *optics) setDistortion(d []float64) error {
	poly := &o.poly
	switch o.model {
	case LensSimplePinhole, LensPinhole, lensSimpleFisheye, lensFisheye:
	case lensSimpleRadial, lensRadial, lensSimpleRadialFisheye, lensRadialFisheye, lensOpenCVFisheye:
		copy(poly.num[:], d)
	case lensOpenCV, lensFullOpenCV, lensThinPrism: // k1, k2, p1, p2 and more
		poly.num[0], poly.num[1], poly.p1, poly.p2 = d[0], d[1], d[2], d[3]
		switch o.model {
		case lensFullOpenCV:
			poly.num[2] = d[4]
			copy(poly.den[:], d[5:])
		case lensThinPrism:
			poly.num[2], poly.num[3], poly.sx[0], poly.sy[0] = d[4], d[5], d[6], d[7]
		}
	case LensPolynomial:
		copy(poly.num[:], d[:4])
		poly.p1, poly.p2 = d[4], d[5]
	case lensRadTanThinPrism: // k0..k5, p0, p1, s0..s3; p0 stands where OpenCV has p2
		copy(poly.num[:], d[:6])
		poly.p2, poly.p1, poly.sx, poly.sy, poly.after = d[6], d[7], [2]float64(d[8:]), [2]float64(d[10:]), true
	case lensFOV:
		o.extra[0] = d[0]
		if !(math.Abs(d[0]) < math.Pi) {
			return fmt.Errorf("the field of view omega of the lens model FOV is %g, want less than pi", d[0])
		}
	case lensSimpleDivision, lensDivision:
		o.extra[0] = d[0]
	case lensEUCM:
		copy(o.extra[:], d)
		if !(d[0] >= 0 && d[0] <= 1 && d[1] > 0) {
			return fmt.Errorf("alpha and beta of the lens model EUCM are %g and %g, want alpha in 0..1 and beta above 0", d[0], d[1])
		}
	}
	o.plain = *poly == polynomial{after: poly.after} && o.extra[0] == 0
	switch {
	case !o.plain || o.plane == tangentPlane:
	case o.model == lensSimpleDivision || o.model == lensDivision || o.model == lensEUCM:
		o.plane = tangentPlane // they are pinholes now
	}
	return nil
}

// symmetric says whether the distortion depends on the radius alone.
func (o *optics) symmetric() bool {
	p := &o.poly
	return p.p1 == 0 && p.p2 == 0 && p.sx == [2]float64{} && p.sy == [2]float64{}
}

// distort maps a point of the plane to where it falls in the photo, in focal lengths from the principal point. Every product is rounded by itself, so
// that processors with and without fused multiply-add agree.
func (o *optics) distort(u, v float64) (x, y float64) {
	r2 := float64(u*u) + float64(v*v)
	switch o.model {
	case lensFOV:
		f := fovFactor(o.extra[0], math.Sqrt(r2))
		return u * f, v * f
	case lensSimpleDivision, lensDivision, lensEUCM:
		if o.plain {
			return u, v
		}
		f := o.angleFactor(math.Sqrt(r2))
		return u * f, v * f
	}
	p := &o.poly
	f := 1.0
	if o.plain {
		return u, v
	}
	f += evenSum(p.num[:], r2)
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

// fovFactor is by how much the model of Devernay and Faugeras (2001) moves a point at radius r in the tangent plane: atan(2 r tan(omega/2)) / (r omega).
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

// angleFactor is the distance from the principal point in focal lengths over the angle, for the models whose formulas take rays: division (Fitzgibbon
// 2001) and the enhanced unified model (Khomutenko, Garcia, Martinet 2016). NaN where there is no image.
func (o *optics) angleFactor(theta float64) float64 {
	sin, cos := math.Sincos(theta)
	ratio := 1.0 // sin(theta)/theta
	if theta > 1e-9 {
		ratio = sin / theta
	}
	if o.model == lensEUCM {
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
