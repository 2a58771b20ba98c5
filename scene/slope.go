package scene

import (
	"math"

	"vksplat/internal/geom"
)

// MaxCalibrated is the largest number of parameters of a lens that can be calibrated.
const MaxCalibrated = 8

// Calibrated returns how many of a model's leading parameters can be calibrated: focal lengths and principal point,
// and the distortion of COLMAP's models up to OPENCV and OPENCV_FISHEYE. Further terms of richer models stay fixed.
func (m LensModel) Calibrated() int {
	switch m {
	case LensOpenCV, LensOpenCVFisheye, LensFullOpenCV, LensThinPrism, LensPolynomial:
		return 8
	case LensRadial, LensRadialFisheye:
		return 5
	case LensSimpleRadial, LensSimpleRadialFisheye, LensPinhole, LensFisheye, LensFOV, LensDivision, LensEUCM,
		LensRadTanThinPrism:
		return 4
	case LensSimplePinhole, LensSimpleFisheye, LensSimpleDivision:
		return 3
	}
	return 0
}

// Slope is the linearisation of a projection: the derivatives of column and row in pixels.
type Slope struct {
	Ray    [2][3]float64             // by the ray
	Params [2][MaxCalibrated]float64 // by the calibration's leading parameters, see LensModel.Calibrated
}

// Linearise projects a ray as Project does and differentiates the projection. The derivatives of the distortion by
// places are central differences, with relative errors of about 1e-10; all others are exact. ok is false where Project
// gives no place, and for panoramas, which have nothing to calibrate.
func (o *Optics) Linearise(ray [3]float64, s *Slope) (x, y float64, ok bool) {
	if o.Plane == NoPlane {
		return 0, 0, false
	}
	u, v, du, dv, ok := o.Plane.slope(ray)
	if !ok {
		return 0, 0, false
	}
	if x, y, ok = o.FromPlane(u, v); !ok {
		return 0, 0, false
	}
	j := o.jacobian(u, v)
	for i := range 3 {
		s.Ray[0][i] = o.fx * (j[0]*du[i] + j[1]*dv[i])
		s.Ray[1][i] = o.fy * (j[2]*du[i] + j[3]*dv[i])
	}
	o.byParams(u, v, (x-o.cx)/o.fx, (y-o.cy)/o.fy, s)
	return x, y, true
}

// Miss returns by how many pixels a ray falls to the right of a place of the photo and below it, with the derivatives
// unless s is nil. In panoramas these are distances in the plane that touches the sphere at the place, in pixels of the
// horizon: neither the seam nor the poles matter. ok is false where Project gives no place, and in the half of a
// panorama that is behind the place.
func (o *Optics) Miss(ray [3]float64, x, y float64, s *Slope) (dx, dy float64, ok bool) {
	if o.Plane != NoPlane {
		if s == nil {
			dx, dy, ok = o.Project(ray)
		} else {
			dx, dy, ok = o.Linearise(ray, s)
		}
		return dx - x, dy - y, ok
	}
	ahead, right, below := o.onSphere(x, y)
	depth, f := geom.Dot(ray, ahead), o.Width/(2*math.Pi)
	if !(depth > 0) {
		return 0, 0, false
	}
	dx, dy = f*geom.Dot(ray, right)/depth, f*geom.Dot(ray, below)/depth
	if s != nil {
		*s = Slope{}
		for i := range 3 {
			s.Ray[0][i] = (f*right[i] - dx*ahead[i]) / depth
			s.Ray[1][i] = (f*below[i] - dy*ahead[i]) / depth
		}
	}
	return dx, dy, true
}

// slope maps a ray to the plane and gives the gradients of both coordinates there.
func (p lensPlane) slope(ray [3]float64) (u, v float64, du, dv [3]float64, ok bool) {
	if p == TangentPlane {
		if !(ray[2] > 0) {
			return 0, 0, du, dv, false
		}
		w := 1 / ray[2]
		u, v = ray[0]/ray[2], ray[1]/ray[2]
		return u, v, [3]float64{w, 0, -u * w}, [3]float64{0, w, -v * w}, true
	}
	a2 := ray[0]*ray[0] + ray[1]*ray[1]
	across, n2 := math.Sqrt(a2), a2+ray[2]*ray[2]
	if !(n2 > 0) || across == 0 && ray[2] < 0 {
		return 0, 0, du, dv, false
	}
	if across < 1e-9*ray[2] {
		w := 1 / ray[2]
		return ray[0] / ray[2], ray[1] / ray[2], [3]float64{w, 0, 0}, [3]float64{0, w, 0}, true
	}
	theta := math.Atan2(across, ray[2])
	f := theta / across
	// d theta = (z da - a dz) / n2, with da = (x dx + y dy) / a
	g := (ray[2]/n2 - f) / a2
	u, v = ray[0]/across*theta, ray[1]/across*theta
	du = [3]float64{f + ray[0]*ray[0]*g, ray[0] * ray[1] * g, -ray[0] / n2}
	dv = [3]float64{ray[0] * ray[1] * g, f + ray[1]*ray[1]*g, -ray[1] / n2}
	return u, v, du, dv, true
}

// byParams differentiates by the parameters at a place u, v of the plane that falls on x, y, in focal lengths.
func (o *Optics) byParams(u, v, x, y float64, s *Slope) {
	s.Params = [2][MaxCalibrated]float64{}
	info, _ := o.model.Info()
	n := o.model.Calibrated()
	if n == 0 {
		return
	}
	s.Params[0][0], s.Params[1][info.Focals-1] = x, y
	s.Params[0][info.Focals], s.Params[1][info.Focals+1] = 1, 1
	r2 := u*u + v*v
	power := r2
	if o.poly.den != [3]float64{} {
		power /= 1 + evenSum(o.poly.den[:], r2)
	}
	for i := info.Focals + 2; i < n; i++ {
		if i >= info.Focals+4 && !o.model.radialOnly() { // OpenCV's p1, p2
			s.Params[0][i], s.Params[1][i] = o.fx*2*u*v, o.fy*(r2+2*v*v)
			s.Params[0][i+1], s.Params[1][i+1] = o.fx*(r2+2*u*u), o.fy*2*u*v
			return
		}
		s.Params[0][i], s.Params[1][i] = o.fx*u*power, o.fy*v*power
		power *= r2
	}
}

// radialOnly says whether all calibrated distortion parameters are radial.
func (m LensModel) radialOnly() bool {
	return m != LensOpenCV && m != LensFullOpenCV && m != LensThinPrism
}
