package depth

import (
	"math"

	"vksplat/internal/parallel"
	"vksplat/scene"
)

// A point is hidden where a nearer one lies in the cells around it, by more than this share of its depth: surfaces are
// seen at an angle.
const hiddenShare = 0.05

// Cells are so large that one has this many points in the mean, and at least leastCell pixels wide: gaps between the
// points of a surface must not show what lies behind it.
const (
	cellPoints = 4
	leastCell  = 2
)

// Visible returns the depths of those points in each camera that no other hides. A pixel has that of its nearest point.
func Visible(cams []scene.Camera, points []scene.Point) Known {
	known := make(Known, len(cams))
	parallel.For(len(cams), func(i int) { known[i] = thin(visible(&cams[i], points)) })
	return known
}

func visible(c *scene.Camera, points []scene.Point) []scene.KnownDepth {
	list := nearestOf(c, points)
	area := cellPoints * float64(c.Width) * float64(c.Height) / float64(len(list)+1)
	cell := max(leastCell, int(math.Ceil(math.Sqrt(area))))
	// With a border, so that each cell has eight neighbours.
	columns, rows := c.Width/cell+3, c.Height/cell+3
	front := make([]float32, columns*rows)
	for i := range front {
		front[i] = math.MaxFloat32
	}
	at := func(p *scene.KnownDepth) int { return (int(p.Y)/cell+1)*columns + int(p.X)/cell + 1 }
	for i := range list {
		k := at(&list[i])
		front[k] = min(front[k], list[i].Depth)
	}
	kept := list[:0]
	for i := range list {
		k, least := at(&list[i]), float32(math.MaxFloat32)
		for _, row := range [...]int{k - columns, k, k + columns} {
			least = min(least, front[row-1], front[row], front[row+1])
		}
		if list[i].Depth*(1-hiddenShare) <= least {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// nearestOf returns the nearest point of each pixel that has one, row by row.
func nearestOf(c *scene.Camera, points []scene.Point) (list []scene.KnownDepth) {
	first := make([]float32, c.Width*c.Height)
	for i := range points {
		x, y, depth, in := c.Project(points[i].Pos, nearest, farthest)
		if !in {
			continue
		}
		at := &first[int(y)*c.Width+int(x)]
		if d := float32(depth); d > 0 && (*at == 0 || d < *at) {
			*at = d
		}
	}
	for i, d := range first {
		if d > 0 {
			list = append(list, scene.KnownDepth{X: uint16(i % c.Width), Y: uint16(i / c.Width), Depth: d})
		}
	}
	return list
}
