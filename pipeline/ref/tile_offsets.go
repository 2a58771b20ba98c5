package ref

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
