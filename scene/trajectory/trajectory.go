package trajectory

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
)

// Ways around a capture, as Trajectory makes them.
const (
	Interp  = "interp"  // a spline through the cameras in their order
	Ellipse = "ellipse" // around what the cameras look at, as in Mip-NeRF 360 (Barron et al. 2022)
	Spiral  = "spiral"  // in front of what the cameras look at, as in LLFF (Mildenhall et al. 2019)
	Orbit   = "orbit"   // a circle around what the cameras look at
)

func Names() []string {
	return []string{Interp, Ellipse, Spiral, Orbit}
}

const (
	ellipseShare    = 0.9  // of the cameras are inside the ellipse, axis by axis
	ellipseSegments = 4096 // over which its length is measured
	spiralShare     = 0.9  // likewise of the spiral
	spiralTurns     = 2
	spiralRate      = 0.5  // forward and back for each turn
	spiralBlend     = 0.75 // how the disparity in focus is mixed from the nearest and the farthest
)

// Make gives n cameras on a way around the capture of cams, which are in one frame, in their order. near and far are
// depths between which the scene lies, for a spiral. All have the size and the intrinsics of the first of cams, but as
// a pinhole; a closed way ends a step before its beginning.
func Make(kind string, cams []scene.Camera, n int, near, far float64) ([]scene.Camera, error) {
	if len(cams) == 0 || n < 1 {
		return nil, fmt.Errorf("make trajectory: %d cameras, %d frames", len(cams), n)
	}
	cams = slices.Clone(cams)
	for i := range cams {
		cams[i] = asPinhole(cams[i])
	}
	switch kind {
	case Interp:
		return interpTrajectory(cams, n), nil
	case Spiral:
		return spiralTrajectory(cams, n, near, far), nil
	case Ellipse, Orbit:
		focus, err := focusPoint(cams)
		if err != nil {
			return nil, &fault.Error{Op: "make trajectory", Err: err, Kind: fault.ErrUsage,
				Hint: "use the trajectory spiral or interp"}
		}
		if kind == Orbit {
			return orbitTrajectory(cams, n, focus), nil
		}
		return ellipseTrajectory(cams, n, focus), nil
	}
	return nil, fmt.Errorf("make trajectory: %q is none", kind)
}

// interpTrajectory spends as many frames between any two cameras.
func interpTrajectory(cams []scene.Camera, n int) []scene.Camera {
	keys := make([]Keyframe, len(cams))
	for i, c := range cams {
		keys[i] = Keyframe{float64(i), c}
	}
	times := make([]float64, n)
	for i := range times {
		times[i] = float64(i) * float64(len(cams)-1) / float64(max(n-1, 1))
	}
	return Fly(keys, times)
}

// orbitTrajectory goes around the axis through the focus point that points up, at the cameras' mean height and middle
// distance, from the first camera on.
func orbitTrajectory(cams []scene.Camera, n int, focus [3]float64) []scene.Camera {
	up := meanUp(cams)
	x, y := planeAxes(up, geom.Sub(cams[0].Center(), focus))
	var radii []float64
	height := 0.0
	for i := range cams {
		d := geom.Sub(cams[i].Center(), focus)
		h := geom.Dot(d, up)
		height += h / float64(len(cams))
		radii = append(radii, geom.Length(geom.Sub(d, geom.Scale(up, h))))
	}
	radius := scene.Median(radii)
	out := make([]scene.Camera, n)
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		at := geom.Add(focus, geom.Add(geom.Scale(up, height),
			geom.Add(geom.Scale(x, radius*cos), geom.Scale(y, radius*sin))))
		out[i] = LookingAt(cams[0], at, focus, up)
	}
	return out
}

// ellipseTrajectory goes around at the cameras' mean height, looking at the focus point. The ellipse's axes are those
// along which the cameras spread most and least, seen from above; its middle is the focus point, its half axes hold
// most cameras' distances. The speed is constant.
func ellipseTrajectory(cams []scene.Camera, n int, focus [3]float64) []scene.Camera {
	up := meanUp(cams)
	x, y := planeAxes(up, [3]float64{})
	var mean [3]float64
	for i := range cams {
		mean = geom.Add(mean, geom.Scale(cams[i].Center(), 1/float64(len(cams))))
	}
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range cams {
		d := geom.Sub(cams[i].Center(), mean)
		u, v := geom.Dot(d, x), geom.Dot(d, y)
		xx, xy, yy = xx+u*u, xy+u*v, yy+v*v
	}
	sin, cos := math.Sincos(math.Atan2(2*xy, xx-yy) / 2)
	x, y = geom.Add(geom.Scale(x, cos), geom.Scale(y, sin)), geom.Sub(geom.Scale(y, cos), geom.Scale(x, sin))
	var us, vs []float64
	for i := range cams {
		d := geom.Sub(cams[i].Center(), focus)
		us, vs = append(us, math.Abs(geom.Dot(d, x))), append(vs, math.Abs(geom.Dot(d, y)))
	}
	a, b := geom.Quantile(us, ellipseShare), geom.Quantile(vs, ellipseShare)
	middle := geom.Add(focus, geom.Scale(up, geom.Dot(geom.Sub(mean, focus), up)))
	angles := evenAngles(a, b, n)
	out := make([]scene.Camera, n)
	for i, angle := range angles {
		sin, cos := math.Sincos(angle)
		out[i] = LookingAt(cams[0], geom.Add(middle, geom.Add(geom.Scale(x, a*cos), geom.Scale(y, b*sin))), focus, up)
	}
	return out
}

// evenAngles gives the parameters of n points of an ellipse with half axes a and b that are as far from each other
// along it.
func evenAngles(a, b float64, n int) []float64 {
	sums := make([]float64, ellipseSegments+1)
	for i := range ellipseSegments {
		s0, c0 := math.Sincos(2 * math.Pi * float64(i) / ellipseSegments)
		s1, c1 := math.Sincos(2 * math.Pi * float64(i+1) / ellipseSegments)
		sums[i+1] = sums[i] + math.Hypot(a*(c1-c0), b*(s1-s0))
	}
	angles := make([]float64, n)
	for i, j := 0, 0; i < n; i++ {
		want := sums[ellipseSegments] * float64(i) / float64(n)
		for j+1 < ellipseSegments && sums[j+1] <= want {
			j++
		}
		part := 0.0
		if step := sums[j+1] - sums[j]; step > 0 {
			part = (want - sums[j]) / step
		}
		angles[i] = 2 * math.Pi * (float64(j) + part) / ellipseSegments
	}
	return angles
}

// spiralTrajectory turns around the mean camera, within most cameras' distances from it, and looks at a point in front
// of it: where the mixed disparity of near and far is in focus.
func spiralTrajectory(cams []scene.Camera, n int, near, far float64) []scene.Camera {
	var mean, ahead [3]float64
	for i := range cams {
		mean = geom.Add(mean, geom.Scale(cams[i].Center(), 1/float64(len(cams))))
		ahead = geom.Add(ahead, [3]float64(cams[i].R[6:9]))
	}
	if geom.Length(ahead) < 1e-9*float64(len(cams)) {
		ahead = [3]float64(cams[0].R[6:9])
	}
	up := meanUp(cams)
	middle := LookingAt(cams[0], mean, geom.Add(mean, geom.Scale(ahead, 1/geom.Length(ahead))), up)
	var reach [3]float64
	for axis := range 3 {
		var away []float64
		for i := range cams {
			away = append(away,
				math.Abs(geom.Dot(geom.Sub(cams[i].Center(), mean), [3]float64(middle.R[3*axis:3*axis+3]))))
		}
		reach[axis] = geom.Quantile(away, spiralShare)
	}
	depth := 1 / ((1-spiralBlend)/near + spiralBlend/far)
	toWorld := geom.Transposed(middle.R)
	focus := geom.Add(mean, geom.Rotate(toWorld, [3]float64{0, 0, depth}))
	out := make([]scene.Camera, n)
	for i := range out {
		angle := 2 * math.Pi * spiralTurns * float64(i) / float64(n)
		sin, cos := math.Sincos(angle)
		at := [3]float64{reach[0] * cos, reach[1] * sin, -reach[2] * math.Sin(angle*spiralRate)}
		out[i] = LookingAt(cams[0], geom.Add(mean, geom.Rotate(toWorld, at)), focus, up)
	}
	return out
}

// focusPoint gives the point that is nearest to all axes of the cameras, by least squares. Cameras that look in about
// one direction have none.
func focusPoint(cams []scene.Camera) (p [3]float64, err error) {
	const parallel = 1e-3 // about the mean square of the angle between axes, in radians
	p, spread := scene.Focus(cams)
	if !(spread > parallel) {
		return p, errors.New("the cameras look in about one direction, so there is no point to go around")
	}
	ahead := 0
	for i := range cams {
		if cams[i].ToCamera(p)[2] > 0 {
			ahead++
		}
	}
	if 2*ahead <= len(cams) {
		return p, errors.New("the cameras look away from each other, so there is no point to go around")
	}
	return p, nil
}

// meanUp gives the direction that is up in most of the cameras' pictures, of length 1.
func meanUp(cams []scene.Camera) [3]float64 {
	var up [3]float64
	for i := range cams {
		up = geom.Sub(up, [3]float64(cams[i].R[3:6]))
	}
	if l := geom.Length(up); l > 1e-6*float64(len(cams)) {
		return geom.Scale(up, 1/l)
	}
	return geom.Scale([3]float64(cams[0].R[3:6]), -1)
}

// planeAxes gives two axes at right angles to up and to each other, the first along `along` as far as it can be. Seen
// from above the second is to the left of the first.
func planeAxes(up, along [3]float64) (x, y [3]float64) {
	x = geom.Sub(along, geom.Scale(up, geom.Dot(along, up)))
	if l := geom.Length(x); l > 1e-9*max(1, geom.Length(along)) {
		x = geom.Scale(x, 1/l)
		return x, geom.Cross(up, x)
	}
	least := 0 // the coordinate axis that is farthest from up
	for k := range 3 {
		if math.Abs(up[k]) < math.Abs(up[least]) {
			least = k
		}
	}
	along = [3]float64{}
	along[least] = 1
	x = geom.Sub(along, geom.Scale(up, up[least]))
	x = geom.Scale(x, 1/geom.Length(x))
	return x, geom.Cross(up, x)
}

// LookingAt gives a camera like c that stands at a place and looks at another.
func LookingAt(c scene.Camera, from, at, up [3]float64) scene.Camera {
	ahead := geom.Sub(at, from)
	l := geom.Length(ahead)
	if !(l > 0) {
		ahead, l = [3]float64(c.R[6:9]), 1
	}
	ahead = geom.Scale(ahead, 1/l)
	x, _ := planeAxes(ahead, geom.Cross(ahead, up)) // to the right
	y := geom.Cross(ahead, x)
	copy(c.R[0:], x[:])
	copy(c.R[3:], y[:])
	copy(c.R[6:], ahead[:])
	c.T = geom.TranslationOf(c.R, from)
	return c
}

// widestTrajectory bounds the vertical angle of a fisheye's way, which is flown with a pinhole, in radians.
const widestTrajectory = math.Pi / 2

// asPinhole gives a pinhole without a lens: a fisheye's shows the same angle from top to bottom, within reason.
func asPinhole(c scene.Camera) scene.Camera {
	c.Lens = nil
	if c.Model == scene.Fisheye {
		c.Model = scene.Pinhole
		return WithFOV(c, min(float64(c.Height)/c.Fy, widestTrajectory))
	}
	return c
}

// WithFOV gives the camera with a vertical field of view in radians, square pixels and the principal point in the
// middle.
func WithFOV(c scene.Camera, angle float64) scene.Camera {
	f := float64(c.Height) / 2 / math.Tan(angle/2)
	if c.Model == scene.Fisheye {
		f = float64(c.Height) / angle
	}
	c.Fx, c.Fy, c.Cx, c.Cy = f, f, float64(c.Width)/2, float64(c.Height)/2
	return c
}

// Framed gives the camera for a picture of another size that shows the same from top to bottom. Where the aspect
// differs, more or less is to be seen at the sides.
func Framed(c scene.Camera, width, height int) scene.Camera {
	s := float64(height) / float64(c.Height)
	if math.Abs(float64(c.Width)*s-float64(width)) <= 1 {
		return c.Rescaled(width, height)
	}
	c.Fx, c.Fy = c.Fx*s, c.Fy*s
	c.Cx = float64(width)/2 + (c.Cx-float64(c.Width)/2)*s
	c.Cy *= s
	c.Width, c.Height = width, height
	return c
}
