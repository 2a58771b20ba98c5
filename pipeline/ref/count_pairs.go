package ref

// TilePairs says what blending a tile takes.
type TilePairs struct {
	Seen    uint32 // (pixel, splat) pairs that are looked at, until the pixels are opaque
	Blended uint32 // those of them that change the pixel
	Isects  uint32 // isects that any pixel looks at
	All     uint32 // isects
}

// CountPairs counts the pairs of the band's tiles.
func CountPairs[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid) []TilePairs {
	tiles := make([]TilePairs, g.Tiles())
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		pairs := &tiles[at/v.Width/TileSize*g.Cols+at%v.Width/TileSize]
		t, seen := T(1), uint32(0)
		for _, slot := range tile {
			seen++
			_, _, raw, reaches := splats[l.SplatFromSlot[slot]].at(c)
			if !reaches {
				continue
			}
			if t *= 1 - min(MaxAlpha, raw); t <= TransmittanceThreshold {
				break
			}
			pairs.Blended++
		}
		pairs.Seen += seen
		pairs.Isects, pairs.All = max(pairs.Isects, seen), uint32(len(tile))
	})
	return tiles
}
