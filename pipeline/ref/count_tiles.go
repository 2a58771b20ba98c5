package ref

// twin: count_tiles

// CountTiles returns for each visible splat, in depth order, how many tiles of the band it can touch. [V]
func CountTiles[T Real](p *Projection[T], splatFromRank []uint32, g Grid) []uint32 {
	counts := make([]uint32, len(splatFromRank))
	for rank, i := range splatFromRank {
		eachRow(p, i, g, func(_, x0, x1 int) { counts[rank] += uint32(x1 - x0) })
	}
	return counts
}
