package synth

import (
	"math"

	"vksplat/internal/geom"
)

// hitEpsilon is the distance below which a hit is the start of the ray itself.
const hitEpsilon = 1e-6

type sphere struct{ r float64 }

func (s sphere) radius() float64 { return s.r }

func (s sphere) hit(r ray) (float64, geom.Vec) {
	b := r.origin.Dot(r.direction)
	disc := b*b - r.origin.Dot(r.origin) + s.r*s.r
	if disc < 0 {
		return math.Inf(1), geom.Vec{}
	}
	t := -b - math.Sqrt(disc)
	if t < hitEpsilon {
		return math.Inf(1), geom.Vec{}
	}
	return t, r.at(t).Mul(1 / s.r)
}

// box with half sides x, y, z.
type box [3]float64

func (b box) radius() float64 { return geom.Vec(b).Length() }

// hit intersects the three slabs; seen from outside.
func (b box) hit(r ray) (float64, geom.Vec) {
	enter, leave := math.Inf(-1), math.Inf(1)
	var normal geom.Vec
	for i, half := range b {
		inverse := 1 / r.direction[i]
		lo, hi := (-half-r.origin[i])*inverse, (half-r.origin[i])*inverse
		side := -1.0
		if lo > hi {
			lo, hi, side = hi, lo, 1
		}
		if lo > enter {
			enter = lo
			normal = geom.Vec{}
			normal[i] = side
		}
		leave = min(leave, hi)
	}
	if enter > leave || enter < hitEpsilon {
		return math.Inf(1), geom.Vec{}
	}
	return enter, normal
}

// cylinder about the z axis with radius r and half height h, with its caps.
type cylinder struct{ r, h float64 }

func (c cylinder) radius() float64 { return math.Hypot(c.r, c.h) }

func (c cylinder) hit(r ray) (float64, geom.Vec) {
	o, d := r.origin, r.direction
	best, normal := math.Inf(1), geom.Vec{}
	a := d[0]*d[0] + d[1]*d[1]
	b := o[0]*d[0] + o[1]*d[1]
	disc := b*b - a*(o[0]*o[0]+o[1]*o[1]-c.r*c.r)
	if a > 0 && disc >= 0 {
		t := (-b - math.Sqrt(disc)) / a
		if p := r.at(t); t > hitEpsilon && math.Abs(p[2]) <= c.h {
			best, normal = t, geom.Vec{p[0] / c.r, p[1] / c.r, 0}
		}
	}
	// Only the cap that faces the ray can be seen.
	side := -math.Copysign(1, d[2])
	if t := (side*c.h - o[2]) / d[2]; t > hitEpsilon && t < best {
		if p := r.at(t); p[0]*p[0]+p[1]*p[1] <= c.r*c.r {
			best, normal = t, geom.Vec{0, 0, side}
		}
	}
	return best, normal
}

// torus in the xy plane: a tube of the given radius along a circle.
type torus struct{ circle, tube float64 }

func (s torus) radius() float64 { return s.circle + s.tube }

func (s torus) distance(p geom.Vec) float64 {
	ring := math.Sqrt(p[0]*p[0]+p[1]*p[1]) - s.circle
	return math.Sqrt(ring*ring+p[2]*p[2]) - s.tube
}

// hit walks along the ray by the distance to the surface, from where the ray
// enters the bounding sphere to where it leaves.
func (s torus) hit(r ray) (float64, geom.Vec) {
	const steps, close = 96, 1e-5
	b := r.origin.Dot(r.direction)
	disc := b*b - r.origin.Dot(r.origin) + s.radius()*s.radius()
	if disc < 0 {
		return math.Inf(1), geom.Vec{}
	}
	half := math.Sqrt(disc)
	t, end := max(-b-half, hitEpsilon), -b+half
	for range steps {
		p := r.at(t)
		d := s.distance(p)
		if d < close {
			ring := geom.Vec{p[0], p[1], 0}
			return t, p.Sub(ring.Unit().Mul(s.circle)).Unit()
		}
		if t += d; t > end {
			break
		}
	}
	return math.Inf(1), geom.Vec{}
}
