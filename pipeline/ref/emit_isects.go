package ref

// twin: emit_isects

// EmitIsects lists the (tile, splat) pairs of the band: splats in depth order, each splat's tiles row by row. A pair's
// place in the list is its slot.
func EmitIsects[T Real](p *Projection[T], splatFromRank []uint32, g Grid) (tileIDs, splatFromSlot []uint32) {
	for _, i := range splatFromRank {
		eachRow(p, i, g, func(row, x0, x1 int) {
			for x := x0; x < x1; x++ {
				tileIDs = append(tileIDs, uint32(row*g.Cols+x))
				splatFromSlot = append(splatFromSlot, i)
			}
		})
	}
	return tileIDs, splatFromSlot
}
