package twoview

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene/adjust"
)

// decompose fills R, T and Angle: of the four poses that an essential matrix allows, that with most points in front of
// both cameras. It returns the inliers that agree.
func (p *pairing) decompose(e *epipolar, inliers []int32, r *Relation) (kept []int32) {
	turns, t := e.poses()
	most := -1
	for _, turn := range turns {
		for _, sign := range [2]float64{1, -1} {
			front := 0
			for _, i := range inliers {
				if inFront(geom.Rotate(turn, p.list[i].a.ray), geom.Scale(t, sign), p.list[i].b.ray) {
					front++
				}
			}
			if front > most {
				most, r.R, r.T = front, turn, geom.Scale(t, sign)
			}
		}
	}
	return p.keep(inliers, r)
}

// keep returns the inliers whose points are in front of both cameras, or so far that a rotation explains them, and
// fills Angle.
func (p *pairing) keep(inliers []int32, r *Relation) (kept []int32) {
	limit := p.o.Pixels * p.o.Pixels
	for _, i := range inliers {
		c := &p.list[i]
		if x := geom.Rotate(r.R, c.a.ray); inFront(x, r.T, c.b.ray) || c.b.missed(x) < limit {
			kept = append(kept, i)
		}
	}
	if len(kept) > 0 {
		r.Angle = p.median(kept, func(c *couple) float64 { return between(geom.Rotate(r.R, c.a.ray), c.b.ray) })
	}
	return kept
}

// inFront says whether x s + t and y u are nearest for positive s and u.
func inFront(x, t, y vec) bool {
	n := geom.Cross(x, y)
	return geom.Dot(geom.Cross(y, t), n) > 0 && geom.Dot(geom.Cross(x, t), n) > 0
}

// between is the angle between two vectors.
func between(x, y vec) float64 { return math.Atan2(geom.Length(geom.Cross(x, y)), geom.Dot(x, y)) }

// Refine improves R, T, E and F of a relation whose R and T hold by steps of Gauss and Newton, damped: it minimises
// Cauchy's loss of the Sampson distances of its inliers. The inliers stay; Angle follows. It reports whether it could:
// not without T, or for calibrations that are none.
func Refine(a, b View, matches [][2]int32, r *Relation, steps int) bool {
	a.FocalKnown, b.FocalKnown = true, true
	inliers := make([][2]int32, len(r.Inliers))
	for k, i := range r.Inliers {
		inliers[k] = matches[i]
	}
	p := newPairing(a, b, inliers, Options{})
	if len(p.list) == 0 || r.T == (vec{}) {
		return false
	}
	all := make([]int32, len(p.list))
	for i := range all {
		all[i] = int32(i)
	}
	e := essentialFactors(r.R, r.T)
	scale := 3 * max(leastNoise, p.medianSampson(&e.e, all))
	e = e.refined(p.list, all, true, steps, adjust.Cauchy(scale))
	turns, t := e.poses()
	r.R, r.T = turns[0], t
	p.keep(all, r)
	p.setMatrices(&e, r)
	return true
}
