package ref

// Grid is the tiles of an image, of which a band of whole rows is processed at a time.
type Grid struct {
	Cols, Rows       int // tiles of the whole image; tile id = row*Cols + column
	RowFirst, RowEnd int // rows of the band
}

// Grid returns the tiles of the view, all rows in one band.
func (v *View[T]) Grid() Grid {
	g := Grid{Cols: (v.Width + TileSize - 1) / TileSize, Rows: (v.Height + TileSize - 1) / TileSize}
	g.RowEnd = g.Rows
	return g
}

// Band returns the grid restricted to band k of n: rows [Rows*k/n, Rows*(k+1)/n).
func (g Grid) Band(k, n int) Grid {
	g.RowFirst, g.RowEnd = g.Rows*k/n, g.Rows*(k+1)/n
	return g
}

// Tiles returns the number of tiles of the whole image.
func (g Grid) Tiles() int { return g.Cols * g.Rows }

// tileInterval returns the tiles [first, end) of n along one axis that hold a pixel centre range reaching into [lo,
// hi]. The pixel centres of tile k span [16k + 0.5, 16k + 15.5]. A NaN gives an empty interval.
func tileInterval[T Real](lo, hi T, n int) (first, end int) {
	a := ceil((lo - 15.5) * 0.0625)
	b := floor((hi - 0.5) * 0.0625)
	if !(b >= a && b >= 0 && a < T(n)) {
		return 0, 0
	}
	return int(max(a, 0)), int(min(b, T(n)-1)) + 1
}

// tileRows returns the rows [first, end) of tiles that the ellipse reaches.
func tileRows[T Real](mean [2]T, extents [3]T, rows int) (first, end int) {
	return tileInterval(mean[1]-extents[1], mean[1]+extents[1], rows)
}

// tileColumns returns the columns [first, end) of tiles that the ellipse reaches in one row of tiles.
//
// The ellipse a dx^2 + 2b dx dy + c dy^2 <= t is convex. Over the strip of the row's pixel centres its right edge is
// the rightmost point of the whole ellipse, at dy* = -(b/c) ex, where the strip holds that; otherwise the edge at the
// strip's end nearest to dy*: dx(dy) = -(b/a) dy + sqrt(t/a) sqrt(1 - (dy/ey)^2), sqrt(t/a) being the third extent. The
// left edge mirrors it through the centre.
func tileColumns[T Real](mean [2]T, conic, extents [3]T, row, cols int) (first, end int) {
	y0 := T(row)*16 + 0.5 - mean[1]
	y1 := y0 + 15
	slope := -conic[1] / conic[0]
	yRight := -(conic[1] / conic[2]) * extents[0]
	edge := func(yExtreme, side T) T {
		y := min(max(yExtreme, y0), y1)
		if y == yExtreme {
			return side * extents[0]
		}
		q := y / extents[1]
		return slope*y + side*(extents[2]*sqrt(max(0, 1-q*q)))
	}
	return tileInterval(mean[0]+edge(-yRight, -1), mean[0]+edge(yRight, 1), cols)
}

// eachRow calls f for each row of tiles of the band that splat i reaches, top to bottom, with its columns [x0, x1).
func eachRow[T Real](p *Projection[T], i uint32, g Grid, f func(row, x0, x1 int)) {
	s, e := &p.Splats[i], p.Extents[i]
	y0, y1 := tileRows(s.Mean2D, e, g.Rows)
	for row := max(y0, g.RowFirst); row < min(y1, g.RowEnd); row++ {
		x0, x1 := tileColumns(s.Mean2D, s.Conic, e, row, g.Cols)
		f(row, x0, x1)
	}
}
