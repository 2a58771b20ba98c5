package blocks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/scene"
)

// MostBlocks bounds the blocks of a plan.
const MostBlocks = 4096

// weighed is something on the ground that counts when cuts are balanced.
type weighed struct {
	at     [2]float64
	weight float64
}

// maxWeighed is about how many points are looked at.
const maxWeighed = 1 << 20

// weigh lists cameras and points: all cameras together weigh as much as all points.
func weigh(c *scene.Capture, train []int, g *Ground) (list []weighed) {
	for _, i := range train {
		list = append(list, weighed{g.At(c.Cameras[i].Center()), 1 / float64(len(train))})
	}
	stride := 1 + len(c.Points)/maxWeighed
	n := (len(c.Points) + stride - 1) / stride
	for i := 0; i < len(c.Points); i += stride {
		list = append(list, weighed{g.At(c.Points[i].Pos), 1 / float64(n)})
	}
	return list
}

// split cuts the ground into columns of equal weight along X, and each of these into rows along Y. The outer sides of
// the outer blocks lie at infinity. Blocks are numbered row by row within their columns.
func split(list []weighed, columns, rows int) ([]Rect, error) {
	everything := Rect{[2]float64{math.Inf(-1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(1)}}
	across, err := cut(everything, list, 0, columns)
	var out []Rect
	for _, column := range across {
		inside := slices.DeleteFunc(slices.Clone(list), func(w weighed) bool { return !column.Holds(w.at) })
		along, failed := cut(column, inside, 1, rows)
		if failed != nil {
			err = failed
		}
		out = append(out, along...)
	}
	return out, err
}

// errNoRoom is the error of places that this many cuts cannot separate.
var errNoRoom = errors.New("cameras and points are too close together for this many blocks")

// cut divides an area along an axis into parts of equal weight, half-way between what lies on both sides of each cut.
func cut(area Rect, list []weighed, axis, parts int) ([]Rect, error) {
	slices.SortFunc(list, func(a, b weighed) int { return cmp.Compare(a.at[axis], b.at[axis]) })
	total := 0.0
	for _, w := range list {
		total += w.weight
	}
	var out []Rect
	rest, sum, i := area, 0.0, 0
	for k := 1; k < parts; k++ {
		for i < len(list) && sum+list[i].weight/2 < total*float64(k)/float64(parts) {
			sum += list[i].weight
			i++
		}
		if i == 0 || i == len(list) {
			return nil, errNoRoom
		}
		at := (list[i-1].at[axis] + list[i].at[axis]) / 2
		if !(at > rest.Min[axis]) || !(list[i-1].at[axis] < at) {
			return nil, errNoRoom
		}
		part := rest
		part.Max[axis], rest.Min[axis] = at, at
		out = append(out, part)
	}
	return append(out, rest), nil
}

// margin is a core with as much around it as overlap times its length, on the sides where there are neighbours. The
// length of a core that reaches to infinity is that within the bounds of the cameras, or a tenth of these where little
// of it is.
func margin(core, bounds Rect, overlap float64) Rect {
	size, least := core.within(bounds).size(), bounds.size()
	for k := range 2 {
		size[k] = max(size[k], least[k]/10)
		core.Min[k] -= overlap * size[k] // which leaves infinity where it is
		core.Max[k] += overlap * size[k]
	}
	return core
}

// Shape returns columns and rows for at least n blocks, as square as possible.
func (s *Sight) Shape(n int) (columns, rows int) {
	size := s.bounds.size()
	long := math.Max(size[0], 1e-9)
	rows = max(1, int(math.Round(math.Sqrt(float64(n)*min(1, size[1]/long)))))
	return (n + rows - 1) / rows, rows
}

// CheckShape refuses numbers of columns and rows that no plan has.
func CheckShape(columns, rows int) error {
	if columns < 1 || rows < 1 || columns > MostBlocks || rows > MostBlocks || columns*rows > MostBlocks {
		return fmt.Errorf("%d by %d blocks: 1 to %d are allowed", columns, rows, MostBlocks)
	}
	return nil
}
