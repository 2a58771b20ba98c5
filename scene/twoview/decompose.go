package twoview

import (
	"math"

	"vksplat/internal/geom"
)

// decompose fills R, T and Angle: of the four poses that an essential matrix allows, that with most points in front of
// both cameras. It returns the inliers whose points are there, or so far that a rotation explains them.
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
	for _, i := range inliers {
		c := &p.list[i]
		if x := geom.Rotate(r.R, c.a.ray); inFront(x, r.T, c.b.ray) || c.b.missed(x) < p.o.limit() {
			kept = append(kept, i)
		}
	}
	if len(kept) > 0 {
		r.Angle = p.median(kept, func(c *couple) float64 { return between(geom.Rotate(r.R, c.a.ray), c.b.ray) })
	}
	return kept
}

// planar returns the essential matrix that explains most inliers with points in front of both cameras, and these: of a
// plane, two that differ much have about the same distances.
func (p *pairing) planar(s *search[matrix], best epipolar, inliers []int32, r *Relation) (epipolar, []int32) {
	lowest := infinite
	var solutions []matrix
	try := func(e epipolar) {
		var own Relation
		kept := p.decompose(&e, inliers, &own)
		cost := p.o.limit() * float64(len(p.list)-len(kept))
		for _, i := range kept {
			cost += min(sampson(&e.e, &p.list[i].a, &p.list[i].b), p.o.limit())
		}
		if cost < lowest {
			lowest, best, r.R, r.T, r.Angle = cost, e, own.R, own.T, own.Angle
		}
	}
	try(best)
	for it := range planarSamples {
		var sample [5]int32
		draw(sample[:], len(inliers), p.o.Key, forPlane, it)
		for k, i := range sample {
			sample[k] = inliers[i]
		}
		solutions = s.solve(sample[:], solutions[:0])
		for i := range solutions {
			if e, ok := factorised(&solutions[i], true); ok {
				try(p.refine(e, inliers[:min(len(inliers), locally)], 5))
			}
		}
	}
	best, inliers = p.finish(s, best, inliers)
	return best, p.decompose(&best, inliers, r)
}

// essential returns [t]x R.
func essential(r matrix, t vec) matrix {
	return geom.Product(matrix{0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0}, r)
}

// inFront says whether x s + t and y u are nearest for positive s and u.
func inFront(x, t, y vec) bool {
	n := geom.Cross(x, y)
	return geom.Dot(geom.Cross(y, t), n) > 0 && geom.Dot(geom.Cross(x, t), n) > 0
}

// between is the angle between two vectors.
func between(x, y vec) float64 { return math.Atan2(geom.Length(geom.Cross(x, y)), geom.Dot(x, y)) }
