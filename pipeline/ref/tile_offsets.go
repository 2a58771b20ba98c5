package ref

import (
	"cmp"
	"slices"

	"vksplat/shaders/layout"
)

// twin: tile_offsets

// TileOffsets returns where each tile's pairs begin in the sorted order; the last entry is their number. tileIDs is by
// slot. [nTiles+1]
func TileOffsets(tileIDs []uint32, nTiles int) []uint32 {
	offsets := make([]uint32, nTiles+1)
	for _, tile := range tileIDs {
		offsets[tile+1]++
	}
	for t := range nTiles {
		offsets[t+1] += offsets[t]
	}
	return offsets
}

// TileOrder returns the order in which to begin tiles, given where their pairs begin: runs of layout.OrderTiles tiles,
// each by falling numbers of pairs, take turns. [nTiles]
func TileOrder(offsets []uint32) []uint32 {
	var runs [][]uint32
	for t := range len(offsets) - 1 {
		if t%layout.OrderTiles == 0 {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], uint32(t))
	}
	order := make([]uint32, 0, len(offsets))
	for _, run := range runs {
		slices.SortFunc(run, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(offsets[b+1]-offsets[b], offsets[a+1]-offsets[a]), cmp.Compare(b, a))
		})
	}
	for rank := range layout.OrderTiles {
		for _, run := range runs {
			if rank < len(run) {
				order = append(order, run[rank])
			}
		}
	}
	return order
}

// Lists says which splats each tile of a band holds, from near to far.
type Lists struct {
	SplatFromRank []uint32 // [V] depth order
	FirstIsect    []uint32 // [V] first slot of each
	TileIDs       []uint32 // [n_isects] by slot
	SplatFromSlot []uint32 // [n_isects]
	SlotFromIsect []uint32 // [n_isects] by tile, then depth
	TileOffsets   []uint32 // [n_tiles+1]
}

// NewLists runs sort_depth, count_tiles, scan, emit_isects, sort_tiles and tile_offsets for one band.
func NewLists[T Real](p *Projection[T], g Grid) *Lists {
	l := &Lists{SplatFromRank: SortDepth(p.DepthKeys)}
	l.FirstIsect, _ = Scan(CountTiles(p, l.SplatFromRank, g))
	l.TileIDs, l.SplatFromSlot = EmitIsects(p, l.SplatFromRank, g)
	l.SlotFromIsect = SortTiles(l.TileIDs)
	l.TileOffsets = TileOffsets(l.TileIDs, g.Tiles())
	return l
}

// tile returns the slots of one tile.
func (l *Lists) tile(id int) []uint32 {
	return l.SlotFromIsect[l.TileOffsets[id]:l.TileOffsets[id+1]]
}
