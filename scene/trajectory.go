package scene

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Ways around a capture, as Trajectory makes them.
const (
	TrajectoryInterp  = "interp"  // a spline through the cameras in their order
	TrajectoryEllipse = "ellipse" // around what the cameras look at, as in Mip-NeRF 360 (Barron et al. 2022)
	TrajectorySpiral  = "spiral"  // in front of what the cameras look at, as in LLFF (Mildenhall et al. 2019)
	TrajectoryOrbit   = "orbit"   // a circle around what the cameras look at
)

// Trajectories lists them.
func Trajectories() []string {
	return []string{TrajectoryInterp, TrajectoryEllipse, TrajectorySpiral, TrajectoryOrbit}
}

const (
	ellipseShare    = 0.9  // of the cameras are inside the ellipse, axis by axis
	ellipseSegments = 4096 // over which its length is measured
	spiralShare     = 0.9  // likewise of the spiral
	spiralTurns     = 2
	spiralRate      = 0.5  // forward and back for each turn
	spiralBlend     = 0.75 // how the disparity in focus is mixed from the nearest and the farthest
)

// Trajectory gives n cameras on a way around the capture of cams, which are in one frame, in their order. near and far are depths between which the scene
// lies, for a spiral. All have the size and the intrinsics of the first of cams, but as a pinhole; a closed way ends a step before its beginning.
func Trajectory(kind string, cams []Camera, n int, near, far float64) ([]Camera, error) {
	if len(cams) == 0 || n < 1 {
		return nil, fmt.Errorf("scene: make trajectory: %d cameras, %d frames", len(cams), n)
	}
	cams = slices.Clone(cams)
	for i := range cams {
		cams[i] = cams[i].asPinhole()
	}
	switch kind {
	case TrajectoryInterp:
		return interpTrajectory(cams, n), nil
	case TrajectorySpiral:
		return spiralTrajectory(cams, n, near, far), nil
	case TrajectoryEllipse, TrajectoryOrbit:
		focus, err := FocusPoint(cams)
		if err != nil {
			return nil, &Error{Op: "make trajectory", Err: err, Kind: ErrUsage, Hint: "take the trajectory spiral or interp"}
		}
		if kind == TrajectoryOrbit {
			return orbitTrajectory(cams, n, focus), nil
		}
		return ellipseTrajectory(cams, n, focus), nil
	}
	return nil, fmt.Errorf("scene: make trajectory: %q is none", kind)
}

// interpTrajectory spends as many frames between any two cameras.
func interpTrajectory(cams []Camera, n int) []Camera {
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

// orbitTrajectory goes around the axis through the focus point that points up, at the cameras' mean height and middle distance, from the first camera on.
func orbitTrajectory(cams []Camera, n int, focus [3]float64) []Camera {
	up := meanUp(cams)
	x, y := planeAxes(up, sub(cams[0].Center(), focus))
	var radii []float64
	height := 0.0
	for i := range cams {
		d := sub(cams[i].Center(), focus)
		h := dot(d, up)
		height += h / float64(len(cams))
		radii = append(radii, length(sub(d, scaled(up, h))))
	}
	radius := Median(radii)
	out := make([]Camera, n)
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		at := add(focus, add(scaled(up, height), add(scaled(x, radius*cos), scaled(y, radius*sin))))
		out[i] = cams[0].lookingAt(at, focus, up)
	}
	return out
}

// ellipseTrajectory goes around at the cameras' mean height, looking at the focus point. The ellipse's axes are those along which the cameras spread most and
// least, seen from above; its middle is the focus point, its half axes hold most cameras' distances. The speed is constant.
func ellipseTrajectory(cams []Camera, n int, focus [3]float64) []Camera {
	up := meanUp(cams)
	x, y := planeAxes(up, [3]float64{})
	var mean [3]float64
	for i := range cams {
		mean = add(mean, scaled(cams[i].Center(), 1/float64(len(cams))))
	}
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range cams {
		d := sub(cams[i].Center(), mean)
		u, v := dot(d, x), dot(d, y)
		xx, xy, yy = xx+u*u, xy+u*v, yy+v*v
	}
	sin, cos := math.Sincos(math.Atan2(2*xy, xx-yy) / 2)
	x, y = add(scaled(x, cos), scaled(y, sin)), sub(scaled(y, cos), scaled(x, sin))
	var us, vs []float64
	for i := range cams {
		d := sub(cams[i].Center(), focus)
		us, vs = append(us, math.Abs(dot(d, x))), append(vs, math.Abs(dot(d, y)))
	}
	a, b := quantile(us, ellipseShare), quantile(vs, ellipseShare)
	middle := add(focus, scaled(up, dot(sub(mean, focus), up)))
	angles := evenAngles(a, b, n)
	out := make([]Camera, n)
	for i, angle := range angles {
		sin, cos := math.Sincos(angle)
		out[i] = cams[0].lookingAt(add(middle, add(scaled(x, a*cos), scaled(y, b*sin))), focus, up)
	}
	return out
}

// evenAngles gives the parameters of n points of an ellipse with half axes a and b that are as far from each other along it.
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

// spiralTrajectory turns around the mean camera, within most cameras' distances from it, and looks at a point in front of it: where the mixed disparity of
// near and far is in focus.
func spiralTrajectory(cams []Camera, n int, near, far float64) []Camera {
	var mean, ahead [3]float64
	for i := range cams {
		mean = add(mean, scaled(cams[i].Center(), 1/float64(len(cams))))
		ahead = add(ahead, [3]float64(cams[i].R[6:9]))
	}
	if length(ahead) < 1e-9*float64(len(cams)) {
		ahead = [3]float64(cams[0].R[6:9])
	}
	up := meanUp(cams)
	middle := cams[0].lookingAt(mean, add(mean, scaled(ahead, 1/length(ahead))), up)
	var reach [3]float64
	for axis := range 3 {
		var away []float64
		for i := range cams {
			away = append(away, math.Abs(dot(sub(cams[i].Center(), mean), [3]float64(middle.R[3*axis:3*axis+3]))))
		}
		reach[axis] = quantile(away, spiralShare)
	}
	depth := 1 / ((1-spiralBlend)/near + spiralBlend/far)
	toWorld := transposed(middle.R)
	focus := add(mean, rotate(toWorld, [3]float64{0, 0, depth}))
	out := make([]Camera, n)
	for i := range out {
		angle := 2 * math.Pi * spiralTurns * float64(i) / float64(n)
		sin, cos := math.Sincos(angle)
		at := [3]float64{reach[0] * cos, reach[1] * sin, -reach[2] * math.Sin(angle*spiralRate)}
		out[i] = cams[0].lookingAt(add(mean, rotate(toWorld, at)), focus, up)
	}
	return out
}

// FocusPoint gives the point that is nearest to all axes of the cameras, by least squares. Cameras that look in about one direction have none.
func FocusPoint(cams []Camera) (p [3]float64, err error) {
	var a [9]float64
	var b, mean [3]float64
	for i := range cams {
		axis, at := [3]float64(cams[i].R[6:9]), cams[i].Center()
		mean = add(mean, scaled(at, 1/float64(len(cams))))
		for r := range 3 {
			for c := range 3 {
				v := -axis[r] * axis[c]
				if r == c {
					v++
				}
				a[3*r+c] += v / float64(len(cams))
				b[r] += v * at[c] / float64(len(cams))
			}
		}
	}
	const parallel = 1e-3 // about the mean square of the angle between axes, in radians
	none := errors.New("the cameras look in about one direction, so that there is no point to go around")
	if !(det3(a) > parallel) {
		return p, none
	}
	p = rotate(inverseTransposed(a), b) // a is symmetric
	ahead := 0
	for i := range cams {
		if cams[i].ToCamera(p)[2] > 0 {
			ahead++
		}
	}
	if 2*ahead <= len(cams) {
		return p, errors.New("the cameras look away from each other, so that there is no point to go around")
	}
	return p, nil
}

// meanUp gives the direction that is up in most of the cameras' pictures, of length 1.
func meanUp(cams []Camera) [3]float64 {
	var up [3]float64
	for i := range cams {
		up = sub(up, [3]float64(cams[i].R[3:6]))
	}
	if l := length(up); l > 1e-6*float64(len(cams)) {
		return scaled(up, 1/l)
	}
	return scaled([3]float64(cams[0].R[3:6]), -1)
}

// planeAxes gives two axes at right angles to up and to each other, the first along `along` as far as it can be. Seen from above the second is to the left of
// the first.
func planeAxes(up, along [3]float64) (x, y [3]float64) {
	x = sub(along, scaled(up, dot(along, up)))
	if l := length(x); l > 1e-9*max(1, length(along)) {
		x = scaled(x, 1/l)
		return x, cross(up, x)
	}
	least := 0 // the coordinate axis that is farthest from up
	for k := range 3 {
		if math.Abs(up[k]) < math.Abs(up[least]) {
			least = k
		}
	}
	along = [3]float64{}
	along[least] = 1
	x = sub(along, scaled(up, up[least]))
	x = scaled(x, 1/length(x))
	return x, cross(up, x)
}

// lookingAt gives a camera like c that stands at a place and looks at another.
func (c Camera) lookingAt(from, at, up [3]float64) Camera {
	ahead := sub(at, from)
	l := length(ahead)
	if !(l > 0) {
		ahead, l = [3]float64(c.R[6:9]), 1
	}
	ahead = scaled(ahead, 1/l)
	x, _ := planeAxes(ahead, cross(ahead, up)) // to the right
	y := cross(ahead, x)
	copy(c.R[0:], x[:])
	copy(c.R[3:], y[:])
	copy(c.R[6:], ahead[:])
	c.T = translationOf(c.R, from)
	return c
}

// widestTrajectory bounds the vertical angle of a fisheye's way, which is flown with a pinhole, in radians.
const widestTrajectory = math.Pi / 2

// asPinhole gives a pinhole without a lens: a fisheye's shows the same angle from top to bottom, within reason.
func (c Camera) asPinhole() Camera {
	c.Lens = nil
	if c.Model == Fisheye {
		c.Model = Pinhole
		return c.WithFOV(min(float64(c.Height)/c.Fy, widestTrajectory))
	}
	return c
}

// WithFOV gives the camera with a vertical field of view in radians, square pixels and the principal point in the middle.
func (c Camera) WithFOV(angle float64) Camera {
	f := float64(c.Height) / 2 / math.Tan(angle/2)
	if c.Model == Fisheye {
		f = float64(c.Height) / angle
	}
	c.Fx, c.Fy, c.Cx, c.Cy = f, f, float64(c.Width)/2, float64(c.Height)/2
	return c
}

// Framed gives the camera for a picture of another size that shows the same from top to bottom. Where the aspect differs, more or less is to be seen at the
// sides.
func (c Camera) Framed(width, height int) Camera {
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

// quantile gives the value that a share of the values, which it sorts, are not above; between two it interpolates.
func quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	at := share * float64(len(values)-1)
	lo := int(at)
	hi := min(lo+1, len(values)-1)
	return values[lo] + (at-float64(lo))*(values[hi]-values[lo])
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
