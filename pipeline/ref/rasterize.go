package ref

// twin: rasterize

type Image[T Real] struct {
	Width, Height int
	Render        [][4]T   // [P] r, g, b with background, final transmittance
	LastIDs       []uint32 // [P] 1 + index within the tile's list of the last blended splat; 0: none
	Stops         []uint32 // [P] index of the splat at which the pixel stops, or the list's length
}

func NewImage[T Real](width, height int) *Image[T] {
	return &Image[T]{Width: width, Height: height, Render: make([][4]T, width*height),
		LastIDs: make([]uint32, width*height), Stops: make([]uint32, width*height)}
}

// blended is one splat's contribution to one pixel.
type blended[T Real] struct {
	index         int // within the tile's list
	d             [2]T
	falloff       T // exp(-sigma)
	raw           T // opacity * falloff, before the ceiling
	alpha         T
	transmittance T // before this splat
}

// at returns how a splat covers the pixel centre c: the way from there, exp(-sigma), alpha before its ceiling, and
// whether that is enough to be seen.
func (s *Projected[T]) at(c [2]T) (d [2]T, falloff, raw T, reaches bool) {
	d = [2]T{s.Mean2D[0] - c[0], s.Mean2D[1] - c[1]}
	sigma := 0.5*(s.Conic[0]*d[0]*d[0]+s.Conic[2]*d[1]*d[1]) + s.Conic[1]*d[0]*d[1]
	falloff = exp(-sigma)
	raw = s.Opacity * falloff
	return d, falloff, raw, sigma >= 0 && raw >= AlphaThreshold
}

// blendPixel appends the splats that reach the pixel centre c, front to back, and returns the transmittance behind them
// and where in the tile's list the pixel stops.
func blendPixel[T Real](list []blended[T], splats []Projected[T], l *Lists, tile []uint32, c [2]T) (_ []blended[T], t T,
	stop int) {
	t = 1
	for j, slot := range tile {
		d, falloff, raw, reaches := splats[l.SplatFromSlot[slot]].at(c)
		if !reaches {
			continue
		}
		alpha := min(MaxAlpha, raw)
		next := t * (1 - alpha)
		if next <= TransmittanceThreshold {
			return list, t, j
		}
		list = append(list, blended[T]{j, d, falloff, raw, alpha, t})
		t = next
	}
	return list, t, len(tile)
}

// eachPixel calls f for the pixels of the band, tile by tile, row-major within a tile, with the tile's slots and the
// pixel's index and centre.
func eachPixel[T Real](v *View[T], l *Lists, g Grid, f func(tile []uint32, at int, c [2]T)) {
	for id := g.RowFirst * g.Cols; id < g.RowEnd*g.Cols; id++ {
		x0, y0 := id%g.Cols*TileSize, id/g.Cols*TileSize
		for y := y0; y < min(y0+TileSize, v.Height); y++ {
			for x := x0; x < min(x0+TileSize, v.Width); x++ {
				f(l.tile(id), y*v.Width+x, [2]T{T(x) + 0.5, T(y) + 0.5})
			}
		}
	}
}

// Rasterize blends the tiles of the band into the image.
func Rasterize[T Real](img *Image[T], splats []Projected[T], l *Lists, v *View[T], g Grid) {
	var list []blended[T]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		var t T
		var stop int
		list, t, stop = blendPixel(list[:0], splats, l, tile, c)
		out := [4]T{0, 0, 0, t}
		last := uint32(0)
		for _, b := range list {
			color := splats[l.SplatFromSlot[tile[b.index]]].Color
			for ch := range color {
				out[ch] += color[ch] * (b.alpha * b.transmittance)
			}
			last = uint32(b.index) + 1
		}
		for ch := range v.Background {
			out[ch] += t * v.Background[ch]
		}
		img.Render[at], img.LastIDs[at], img.Stops[at] = out, last, uint32(stop)
	})
}
