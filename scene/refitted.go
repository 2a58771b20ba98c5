package scene

import "slices"

// Raised returns a calibration with the same projection, in the model whose distortion can be calibrated and refined:
// OPENCV, or OPENCV_FISHEYE. ok is false for models that are neither and no simpler ones.
func (k Calibration) Raised() (r Calibration, ok bool) {
	info, _ := k.Model.Info()
	r = k
	switch k.Model {
	case LensSimplePinhole, LensPinhole, LensSimpleRadial, LensRadial, LensOpenCV:
		r.Model = LensOpenCV
	case LensSimpleFisheye, LensFisheye, LensSimpleRadialFisheye, LensRadialFisheye, LensOpenCVFisheye:
		r.Model = LensOpenCVFisheye
	default:
		return k, false
	}
	r.Params = make([]float64, 8)
	r.Params[0], r.Params[1] = k.Params[0], k.Params[info.Focals-1]
	copy(r.Params[2:], k.Params[info.Focals:])
	return r, true
}

// Refitted returns the calibration of a camera that was refined from given: the focal lengths and the principal point
// have changed as that camera's have, and the distortion is the one that it has, if it has any.
func (k Calibration) Refitted(given, refined *Camera) Calibration {
	k, _ = k.Raised()
	info, known := k.Model.Info()
	if !known || info.plane == NoPlane {
		return k
	}
	p, n := slices.Clone(k.Params), info.Focals
	k.Params = p
	p[n] += (refined.Cx - given.Cx) * p[0] / given.Fx
	p[n+1] += (refined.Cy - given.Cy) * p[n-1] / given.Fy
	grown := refined.Fx / given.Fx
	p[0] *= grown
	if n == 2 {
		p[1] *= refined.Fy / given.Fy
	}
	d, own := refined.Distortion, p[n+2:]
	if d == nil || d.After {
		return k
	}
	switch k.Model {
	case LensOpenCV, LensFullOpenCV:
		own[0], own[1], own[2], own[3] = d.Num[0], d.Num[1], d.P1, d.P2
	case LensOpenCVFisheye:
		copy(own, d.Num[:4])
	case LensThinPrism: // a fisheye: its k3 and k4 stand behind p1 and p2
		own[0], own[1], own[4], own[5] = d.Num[0], d.Num[1], d.Num[2], d.Num[3]
	case LensPolynomial, LensSkewed:
		own[0], own[1], own[4], own[5] = d.Num[0], d.Num[1], d.P1, d.P2
	case LensSkewedFisheye:
		copy(own, d.Num[:4])
	}
	if k.Model == LensSkewed || k.Model == LensSkewedFisheye { // pixels, as the focal length
		own[6] *= grown
	}
	return k
}
