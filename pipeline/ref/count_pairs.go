package ref

import "slices"

type TilePairs struct {
	Seen    uint32 // (pixel, splat) pairs that are looked at, until the pixels are opaque
	Blended uint32 // those of them that change the pixel
	Isects  uint32 // isects that any pixel looks at
	All     uint32 // isects
	// (patch, splat) pairs that touch: in front of the last splat that any pixel of the patch looks at; and of the last
	// that changes any
	Visits, PatchesBwd uint32
	VisitsBwd          uint32 // (list, splat) pairs of the latter, with what lists of one subgroup wait for each other

	seen, last [Patches]uint32 // splats up to the last that a pixel of the patch looks at, and that changes one
}

// Patches of a tile, see raster.glsl.
const (
	Patches     = 8
	patchWidth  = 8 // px
	patchHeight = 4 // px
)

// Sharing says how patches share lists and lists subgroups in rasterize_bwd.
type Sharing struct {
	Column int // patches of a list: one, or half of a tile's, below each other
	Side   int // lists of a subgroup, side by side
	Round  int // splats of its lists that a subgroup goes through at a time
}

// CountPairs counts the pairs of the band's tiles.
func CountPairs[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid, s Sharing) []TilePairs {
	tiles := make([]TilePairs, g.Tiles())
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		x, y := at%v.Width, at/v.Width
		patch := y%TileSize/patchHeight*(TileSize/patchWidth) + x%TileSize/patchWidth
		look(&tiles[y/TileSize*g.Cols+x/TileSize], patch, splats, l, tile, c)
	})
	for id := g.RowFirst * g.Cols; id < g.RowEnd*g.Cols; id++ {
		var touched []uint32
		for _, slot := range l.tile(id)[:tiles[id].Isects] {
			touched = append(touched, splats[l.SplatFromSlot[slot]].touchedPatches(id%g.Cols*TileSize,
				id/g.Cols*TileSize))
		}
		tiles[id].visit(touched, s)
	}
	return tiles
}

// look goes through the splats of a pixel of a patch.
func look[T Real](t *TilePairs, patch int, splats []Projected[T], l *Lists, tile []uint32, c [2]T) {
	light, seen, last := T(1), uint32(0), uint32(0)
	for _, slot := range tile {
		seen++
		_, _, raw, reaches := splats[l.SplatFromSlot[slot]].at(c)
		if !reaches {
			continue
		}
		if light *= 1 - min(MaxAlpha, raw); light <= TransmittanceThreshold {
			break
		}
		t.Blended++
		last = seen
	}
	t.Seen += seen
	t.Isects, t.All = max(t.Isects, seen), uint32(len(tile))
	t.seen[patch], t.last[patch] = max(t.seen[patch], seen), max(t.last[patch], last)
}

// visit counts the visits to splats that touch patches, a bit each.
func (t *TilePairs) visit(touched []uint32, s Sharing) {
	lists := Patches / s.Column
	for first := 0; first < len(touched); first += s.Round {
		n := make([]uint32, lists)
		for k := first; k < min(first+s.Round, len(touched)); k++ {
			var in [Patches]uint32 // of a list: 1 if the splat is on it
			for p := range Patches {
				bit := touched[k] >> p & 1
				if uint32(k) < t.seen[p] {
					t.Visits += bit
				}
				if uint32(k) < t.last[p] {
					t.PatchesBwd += bit
					in[p%lists] |= bit // two patches lie in a row
				}
			}
			for i := range n {
				n[i] += in[i]
			}
		}
		for i := 0; i < lists; i += s.Side {
			t.VisitsBwd += uint32(s.Side) * slices.Max(n[i:i+s.Side])
		}
	}
}

// touchedPatches returns the patches of the tile with this corner that the ellipse on which alpha falls to the
// threshold touches, a bit each.
func (s *Projected[T]) touchedPatches(x0, y0 int) (bits uint32) {
	a, b, c := s.Conic[0], s.Conic[1], s.Conic[2]
	if !(a > 0 && c > 0 && a*c > b*b) {
		return 1<<Patches - 1
	}
	reach := log(s.Opacity / AlphaThreshold)
	for p := range Patches {
		x := T(x0+p%2*patchWidth) + 0.5 - s.Mean2D[0]
		y := T(y0+p/2*patchHeight) + 0.5 - s.Mean2D[1]
		if leastSigma(a, b, c, x, y, x+patchWidth-1, y+patchHeight-1) <= reach+0.001 {
			bits |= 1 << p
		}
	}
	return bits
}

// leastSigma returns the least value of a convex form in a rectangle; the mean lies at 0.
func leastSigma[T Real](a, b, c, x0, y0, x1, y1 T) T {
	clamp := func(v, low, high T) T { return min(max(v, low), high) }
	at := func(x, y T) T { return 0.5*(a*x*x+c*y*y) + b*x*y }
	x, y := clamp(0, x0, x1), clamp(0, y0, y1)
	return min(at(x, clamp(-b/c*x, y0, y1)), at(clamp(-b/a*y, x0, x1), y))
}
