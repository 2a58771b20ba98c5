package scene

import "math"

// Project gives the place of a ray (any length; OpenCV axes) in the photo, in pixels whose centres are at +0.5. ok is
// false where the model gives no place or would give the same place to two rays.
func (o *Optics) Project(ray [3]float64) (x, y float64, ok bool) {
	across := math.Sqrt(float64(ray[0]*ray[0]) + float64(ray[1]*ray[1]))
	switch o.Plane {
	case NoPlane:
		return o.panorama(ray)
	case TangentPlane:
		if !(ray[2] > 0) {
			return 0, 0, false
		}
		return o.FromPlane(ray[0]/ray[2], ray[1]/ray[2])
	}
	theta := math.Atan2(across, ray[2])
	if across == 0 {
		return o.FromPlane(theta, 0)
	}
	return o.FromPlane(ray[0]/across*theta, ray[1]/across*theta)
}

// panorama projects onto the sphere: azimuth 0 is +z and in the middle, +x to the right of it; elevation 0 is in the
// middle, -y above.
func (o *Optics) panorama(ray [3]float64) (x, y float64, ok bool) {
	across := math.Sqrt(float64(ray[0]*ray[0]) + float64(ray[2]*ray[2]))
	if across == 0 && ray[1] == 0 {
		return 0, 0, false
	}
	azimuth, elevation := math.Atan2(ray[0], ray[2]), math.Atan2(-ray[1], across)
	return (azimuth/(2*math.Pi) + 0.5) * o.Width, (0.5 - elevation/math.Pi) * o.Height, true
}

// onSphere returns the direction of a place of a panorama, and what is to the right of it and below.
func (o *Optics) onSphere(x, y float64) (ahead, right, below [3]float64) {
	sinA, cosA := math.Sincos((x/o.Width - 0.5) * 2 * math.Pi)
	sinE, cosE := math.Sincos((0.5 - y/o.Height) * math.Pi)
	return [3]float64{sinA * cosE, -sinE, cosA * cosE}, [3]float64{cosA, 0, -sinA},
		[3]float64{sinA * sinE, cosE, cosA * sinE}
}

// FromPlane projects a point of the model's plane.
func (o *Optics) FromPlane(u, v float64) (x, y float64, ok bool) {
	if r := o.Limit; !(float64(u*u)+float64(v*v) <= float64(r*r)) {
		return 0, 0, false
	}
	x, y = o.distort(u, v)
	return float64(o.fx*x) + o.cx, float64(o.fy*y) + o.cy, true
}

// Angle gives the angle from the axis in radians of a radius in the plane.
func (o *Optics) Angle(r float64) float64 {
	if o.Plane == TangentPlane {
		return math.Atan(r)
	}
	return r
}

// Bounds on the angle from the axis: tangents beyond the first mean nothing, and a full turn is the end of the plane of
// angles.
const (
	maxTangentAngle = 89.9 * math.Pi / 180
	maxPlaneAngle   = math.Pi * (1 - 1e-9)
)

// validRadius walks outwards from the principal point, in steps of a third of a degree or less, to where the distortion
// stops being one to one: where the determinant of its Jacobian is no longer positive in some direction. Then it
// bisects.
func (o *Optics) validRadius() float64 {
	const steps = 512
	most, radius := maxTangentAngle, math.Tan
	if o.Plane == AnglePlane {
		most, radius = maxPlaneAngle, func(angle float64) float64 { return angle }
	}
	if o.plain {
		return radius(most)
	}
	directions := 16
	if symmetric(o) {
		directions = 1
	}
	good := 0.0
	for i := range steps {
		bad := most * float64(i+1) / steps
		if o.oneToOne(radius(bad), directions) {
			good = bad
			continue
		}
		for range 50 {
			if mid := (good + bad) / 2; o.oneToOne(radius(mid), directions) {
				good = mid
			} else {
				bad = mid
			}
		}
		break
	}
	return radius(good)
}

// oneToOne says whether the Jacobian's determinant is positive on a circle, at so many places.
func (o *Optics) oneToOne(r float64, directions int) bool {
	for d := range directions {
		sin, cos := math.Sincos(2 * math.Pi * float64(d) / float64(directions))
		j := o.jacobian(r*cos, r*sin)
		// A picture turned over in both directions has a positive determinant too, and a negative trace.
		if det := j[0]*j[3] - j[1]*j[2]; !(det > 0 && j[0]+j[3] > 0) || math.IsInf(det, 0) {
			return false
		}
	}
	return true
}

// jacobian is that of distort, by central differences: d x / d u, d x / d v, d y / d u, d y / d v.
func (o *Optics) jacobian(u, v float64) [4]float64 {
	h := 1e-6 * max(1, math.Abs(u), math.Abs(v))
	x0, y0 := o.distort(u-h, v)
	x1, y1 := o.distort(u+h, v)
	x2, y2 := o.distort(u, v-h)
	x3, y3 := o.distort(u, v+h)
	s := 1 / (2 * h)
	return [4]float64{(x1 - x0) * s, (x3 - x2) * s, (y1 - y0) * s, (y3 - y2) * s}
}

// ToPlane finds the point of the model's plane that falls on a pixel position. start is a guess, as the answer for a
// neighbour. ok is false if there is none within the valid radius.
func (o *Optics) ToPlane(px, py float64, start [2]float64) (p [2]float64, ok bool) {
	x, y := (px-o.cx)/o.fx, (py-o.cy)/o.fy
	if p, ok = o.newton(x, y, start); ok {
		return p, true
	}
	return o.newton(x, y, o.radialGuess(x, y))
}

// newton solves distort(p) = (x, y) from a guess.
func (o *Optics) newton(x, y float64, p [2]float64) (at [2]float64, ok bool) {
	scale := max(1, math.Abs(x), math.Abs(y))
	for range 30 {
		dx, dy := o.distort(p[0], p[1])
		dx, dy = x-dx, y-dy
		if max(math.Abs(dx), math.Abs(dy)) <= 1e-13*scale {
			break
		}
		j := o.jacobian(p[0], p[1])
		det := j[0]*j[3] - j[1]*j[2]
		p[0] += (j[3]*dx - j[1]*dy) / det
		p[1] += (j[0]*dy - j[2]*dx) / det
		if r := math.Hypot(p[0], p[1]); r > o.Limit { // stay where the map is one to one
			p[0], p[1] = p[0]*o.Limit/r, p[1]*o.Limit/r
		}
	}
	dx, dy := o.distort(p[0], p[1])
	return p, max(math.Abs(x-dx), math.Abs(y-dy)) <= 1e-10*scale
}

// Ray gives the direction that falls on a pixel position, of any length; ok is false where there is none.
func (o *Optics) Ray(px, py float64) (ray [3]float64, ok bool) {
	if o.Plane == NoPlane {
		ray, _, _ = o.onSphere(px, py)
		return ray, true
	}
	p, ok := o.ToPlane(px, py, [2]float64{})
	if o.Plane == TangentPlane {
		return [3]float64{p[0], p[1], 1}, ok
	}
	theta := math.Hypot(p[0], p[1])
	if theta == 0 {
		return [3]float64{0, 0, 1}, ok
	}
	sin, cos := math.Sincos(theta)
	return [3]float64{p[0] / theta * sin, p[1] / theta * sin, cos}, ok
}

// radialGuess inverts the distortion on the line from the centre through (x, y) by bisection, as if there were radial
// terms alone.
func (o *Optics) radialGuess(x, y float64) [2]float64 {
	want := math.Hypot(x, y)
	if want == 0 {
		return [2]float64{}
	}
	lo, hi := 0.0, o.Limit
	for range 60 {
		mid := (lo + hi) / 2
		if dx, dy := o.distort(mid*x/want, mid*y/want); math.Hypot(dx, dy) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return [2]float64{lo * x / want, lo * y / want}
}
