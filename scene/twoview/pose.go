package twoview

import (
	"vksplat/internal/geom"
	"vksplat/scene/adjust"
)

// pose is x_cam = R x + T.
type pose struct {
	r matrix
	t vec
}

func (p *pose) apply(x vec) vec { return geom.Add(geom.Rotate(p.r, x), p.t) }

func (p *pose) centre() vec { return geom.Scale(transposedTimes(&p.r, p.t), -1) }

func (p *pose) moved(step [maxFreedoms]float64) pose {
	turn := geom.RotationFromVector(vec(step[:3]))
	return pose{geom.Product(turn, p.r), geom.Add(geom.Rotate(turn, p.t), vec(step[3:6]))}
}

// slopes returns by how many pixels a point misses its sight, the derivatives by the steps of moved, and false behind
// the camera.
func (p *pose) slopes(s *Sight, x vec) (r [2]float64, j [2][maxFreedoms]float64, ok bool) {
	y := p.apply(x)
	dx, dy, depth := s.off(y)
	gx, gy := s.slopes(dx, dy, depth)
	for i, g := range [2]vec{gx, gy} {
		c := geom.Cross(y, g)
		j[i] = [maxFreedoms]float64{c[0], c[1], c[2], g[0], g[1], g[2]}
	}
	return [2]float64{dx, dy}, j, depth > 0
}

// refinedPose minimises the sum of losses of the distances in pixels of some points from their sights: by the rotation
// (3 freedoms) or all of the pose (6).
func refinedPose(p pose, sights []Sight, points []vec, some []int32, freedoms, steps int, loss adjust.Loss) pose {
	return minimise(p, freedoms, steps, func(p *pose, n *normal) {
		for _, i := range some {
			if r, j, ok := p.slopes(&sights[i], points[i]); ok {
				n.add(loss, r[:], j[:])
			} else {
				n.cost = infinite
			}
		}
	}, func(p *pose, step [maxFreedoms]float64) pose { return p.moved(step) })
}

// frame has as columns right-handed axes of which the first is a's and the second is orthogonal to b.
func frame(a, b vec) matrix {
	a = unit(a)
	c := unit(geom.Cross(a, b))
	return columns(a, c, geom.Cross(a, c))
}
