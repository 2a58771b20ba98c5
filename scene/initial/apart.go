package initial

import (
	"math"
	"slices"

	"vksplat/scene"
)

// Apart returns those of more, in their order, that are apart from all points and from each other by a third of the
// median spacing of points. A splat's first size is its distance to its neighbours: points in the places of others
// would make all of them small.
func Apart(points, more []scene.Point) []scene.Point {
	if len(points) < 4 {
		return more
	}
	means := make([]float32, 0, 3*len(points))
	for _, p := range points {
		means = append(means, float32(p.Pos[0]), float32(p.Pos[1]), float32(p.Pos[2]))
	}
	spacing := Spacing(means)
	slices.Sort(spacing)
	least := float64(spacing[len(spacing)/2]) / 3
	if !(least > 0) || math.IsInf(least, 0) {
		return more
	}
	g := &occupied{least, map[[3]int32][][3]float64{}}
	for _, p := range points {
		g.add(p.Pos)
	}
	var kept []scene.Point
	for _, p := range more {
		if g.free(p.Pos) {
			g.add(p.Pos)
			kept = append(kept, p)
		}
	}
	return kept
}

// occupied is a grid of points in cubes of an edge.
type occupied struct {
	edge   float64
	points map[[3]int32][][3]float64
}

// cell is clamped so that what lies absurdly far away shares the outermost cubes.
func (g *occupied) cell(p [3]float64) (c [3]int32) {
	for k, x := range p {
		c[k] = int32(max(-1<<30, min(1<<30, math.Floor(x/g.edge))))
	}
	return c
}

func (g *occupied) add(p [3]float64) {
	c := g.cell(p)
	g.points[c] = append(g.points[c], p)
}

// free reports whether no point lies within an edge of p.
func (g *occupied) free(p [3]float64) bool {
	c := g.cell(p)
	for k := range int32(27) {
		at := [3]int32{c[0] + k%3 - 1, c[1] + k/3%3 - 1, c[2] + k/9 - 1}
		for _, q := range g.points[at] {
			if x, y, z := q[0]-p[0], q[1]-p[1], q[2]-p[2]; float64(x*x)+float64(y*y)+float64(z*z) < g.edge*g.edge {
				return false
			}
		}
	}
	return true
}
