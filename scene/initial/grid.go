package initial

import (
	"math"

	"vksplat/internal/fault"
	"vksplat/scene"
)

type gridCell struct {
	key   [3]int64
	sum   [3]float64 // of positions relative to the cell's corner, in cells
	color [3]uint32  // sums; their counts stay below 2^24 points a cell
	count uint32
}

// maxCellPoints is how many points of a cell count: beyond it their sums of colours would overflow, and their mean is
// known well enough.
const maxCellPoints = 1 << 24

// gridSample gives one point per occupied cell of edge edge: the mean of positions and colours of the cell's points, in
// the order of their first. Memory is bounded by the number of occupied cells.
func gridSample(points []scene.Point, edge float64) ([]scene.Point, error) {
	far := 0.0
	for _, p := range points {
		far = max(far, math.Abs(p.Pos[0]), math.Abs(p.Pos[1]), math.Abs(p.Pos[2]))
	}
	if far/edge > 1<<52 {
		return nil, initError("", "give a larger edge with "+fault.Setting("init-grid"),
			"the grid of %s is too fine: the points reach over %.1g cells of its edge, 4.5e+15 can be counted",
			fault.Setting("init-grid"), far/edge)
	}
	var cells []gridCell // in the order of their first points
	of := map[[3]int64]int32{}
	for i := range points {
		var key [3]int64
		var within [3]float64
		for k, x := range points[i].Pos {
			at := x / edge
			key[k] = int64(math.Floor(at))
			within[k] = at - math.Floor(at)
		}
		n, known := of[key]
		if !known {
			n = int32(len(cells))
			of[key], cells = n, append(cells, gridCell{key: key})
		}
		cell := &cells[n]
		if cell.count == maxCellPoints {
			continue
		}
		cell.count++
		for k := range 3 {
			cell.sum[k] += within[k]
			cell.color[k] += uint32(points[i].Color[k])
		}
	}
	out := make([]scene.Point, len(cells))
	for i := range out {
		out[i] = cells[i].mean(edge)
	}
	return out, nil
}

func (c *gridCell) mean(edge float64) (p scene.Point) {
	for k := range 3 {
		p.Pos[k] = (float64(c.key[k]) + c.sum[k]/float64(c.count)) * edge
		p.Color[k] = uint8((c.color[k] + c.count/2) / c.count)
	}
	return p
}
