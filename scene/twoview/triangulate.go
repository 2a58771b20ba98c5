package twoview

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene/adjust"
)

// Point is where several photos show the same.
type Point struct {
	X       [3]float64
	Inliers []int32 // ascending places of the views that agree, two at least
	Error   float64 // pixels, mean over the inliers
	Angle   float64 // the largest between two rays of inliers, radians
}

// Triangulate finds the point that photos of known poses show, by a linear solution that is refined (Hartley, Sturm:
// Triangulation, 1997). If not all views agree within Options.Pixels, 4, it searches for the point that most agree
// with. ok is false if these are fewer than Options.MinInliers, 2, or if rays are parallel. The angle says how well the
// distance is known.
func Triangulate(poses []adjust.Pose, sights []Sight, o Options) (p Point, ok bool) {
	o.MinInliers = max(o.MinInliers, 2)
	o = o.filled(4, 100)
	t := track{poses: make([]pose, len(poses)), sights: sights}
	all := make([]int32, len(poses))
	for i, p := range poses {
		t.poses[i], all[i] = pose{p.R, p.T}, int32(i)
	}
	s := search[vec]{n: len(poses), size: 2, purpose: forPoint, miss: t.missed, improve: t.refined}
	s.solve = func(sample []int32, out []vec) []vec {
		if x, ok := t.linear(sample); ok {
			out = append(out, x)
		}
		return out
	}
	limit := o.Pixels * o.Pixels
	if len(all) < o.MinInliers {
		return p, false
	}
	if p.X, ok = t.linear(all); ok {
		p.X = t.refined(p.X, all)
		p.Inliers = s.inliers(&p.X, limit, nil)
	}
	if len(p.Inliers) < len(all) && len(all) > 2 {
		if p.X, p.Inliers, ok = s.run(o); !ok {
			return p, false
		}
		p.X = t.refined(p.X, p.Inliers)
		p.Inliers = s.inliers(&p.X, limit, nil)
	}
	t.measure(&p)
	return p, len(p.Inliers) >= o.MinInliers
}

// track is the views of a point.
type track struct {
	poses  []pose
	sights []Sight
}

func (t *track) missed(x *vec, i int32) float64 { return t.sights[i].missed(t.poses[i].apply(*x)) }

// linear solves for the point by some views as if all were equally far; ok is false if rays are parallel.
func (t *track) linear(some []int32) (x vec, ok bool) {
	x = t.poses[some[0]].centre()
	n := normal{freedoms: 3}
	for _, i := range some {
		s, p := &t.sights[i], &t.poses[i]
		var r [2]float64
		var j [2][maxFreedoms]float64
		for k, g := range [2]vec{s.px, s.py} {
			r[k] = geom.Dot(g, p.apply(x))
			g = transposedTimes(&p.r, g)
			copy(j[k][:], g[:])
		}
		n.add(squares, r[:], j[:])
	}
	step, ok := n.solve(0)
	x = geom.Add(x, vec(step[:3]))
	return x, ok && geom.Finite(x[:]...)
}

// refined minimises the sum of squared distances in pixels of some views.
func (t *track) refined(x vec, some []int32) vec {
	return minimise(x, 3, 5, func(x *vec, n *normal) {
		for _, i := range some {
			r, j, ok := t.poses[i].slopes(&t.sights[i], *x)
			if !ok {
				n.cost = infinite
				return
			}
			for k := range j {
				g := transposedTimes(&t.poses[i].r, vec(j[k][3:6]))
				copy(j[k][:], g[:])
			}
			n.add(squares, r[:], j[:])
		}
	}, func(x *vec, step [maxFreedoms]float64) vec { return geom.Add(*x, vec(step[:3])) })
}

// measure fills Error and Angle.
func (t *track) measure(p *Point) {
	rays := make([]vec, len(p.Inliers))
	for k, i := range p.Inliers {
		p.Error += math.Sqrt(t.missed(&p.X, i)) / float64(len(rays))
		rays[k] = geom.Sub(p.X, t.poses[i].centre())
		for _, other := range rays[:k] {
			p.Angle = max(p.Angle, between(rays[k], other))
		}
	}
}
