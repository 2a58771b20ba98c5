package initial

import (
	"math"
	"math/bits"

	"vksplat/internal/fault"
	"vksplat/scene"
)

type gridCell struct {
	key   [3]int64
	sum   [3]float64 // of positions relative to the cell's corner, in cells
	color [3]uint32  // sums; their counts stay below 2^24 points a cell
	count uint32
}

// pointGrid is a hash table of cells with open addressing. Cells are in the order of their first points, so that
// nothing depends on the table.
type pointGrid struct {
	edge   float64
	n      int          // cells
	blocks [][]gridCell // the cells, gridBlock to a block: growth copies none
	slots  []int32      // index of a cell plus 1; 0: free
}

const gridBlock = 1 << 8

func (g *pointGrid) at(i int) *gridCell { return &g.blocks[i/gridBlock][i%gridBlock] }

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
	g := pointGrid{edge: edge, slots: make([]int32, 1<<10)}
	for i := range points {
		g.add(&points[i])
	}
	out := make([]scene.Point, g.n)
	for i := range out {
		out[i] = g.at(i).mean(edge)
	}
	return out, nil
}

func (g *pointGrid) add(p *scene.Point) {
	var key [3]int64
	var within [3]float64
	for k, x := range p.Pos {
		at := x / g.edge
		key[k] = int64(math.Floor(at))
		within[k] = at - math.Floor(at)
	}
	cell := g.cell(key)
	if cell.count == maxCellPoints {
		return
	}
	cell.count++
	for k := range 3 {
		cell.sum[k] += within[k]
		cell.color[k] += uint32(p.Color[k])
	}
}

func (g *pointGrid) cell(key [3]int64) *gridCell {
	at := g.slot(key)
	if g.slots[at] == 0 {
		if 2*g.n >= len(g.slots) {
			g.slots = make([]int32, 2*len(g.slots))
			for i := range g.n {
				g.slots[g.slot(g.at(i).key)] = int32(i + 1)
			}
			at = g.slot(key)
		}
		if g.n%gridBlock == 0 {
			g.blocks = append(g.blocks, make([]gridCell, gridBlock))
		}
		g.n++
		g.slots[at] = int32(g.n)
		g.at(g.n - 1).key = key
	}
	return g.at(int(g.slots[at]) - 1)
}

// slot gives the place of a key's cell, or the free one where it belongs.
func (g *pointGrid) slot(key [3]int64) uint64 {
	mask := uint64(len(g.slots) - 1)
	h := uint64(0)
	for _, k := range key {
		hi, lo := bits.Mul64(h^uint64(k), 0x9E3779B97F4A7C15)
		h = hi ^ lo ^ bits.RotateLeft64(h, 23)
	}
	h ^= h >> 29
	for at := h & mask; ; at = (at + 1) & mask {
		if i := g.slots[at]; i == 0 || g.at(int(i)-1).key == key {
			return at
		}
	}
}

func (c *gridCell) mean(edge float64) (p scene.Point) {
	for k := range 3 {
		p.Pos[k] = (float64(c.key[k]) + c.sum[k]/float64(c.count)) * edge
		p.Color[k] = uint8((c.color[k] + c.count/2) / c.count)
	}
	return p
}
