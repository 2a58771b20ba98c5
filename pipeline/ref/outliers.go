package ref

import "math/bits"

// twin: find_outliers track_errors

// As in const.glsl.
const (
	square        = 4
	rowSquares    = TileSize / square
	tileSquares   = rowSquares * rowSquares
	errorOne      = 256
	errorMemory   = 16
	photoBits     = 16
	squareAgrees  = 0x40000000
	squareDiffers = 0x80000000
	leastError    = 0.1
	alike         = 0.5
	suspect       = 0.45
	witnesses     = 2
	voteSide      = 8 // of the squares that vote
)

// NoSquare is the error of a square of which too little is known.
const NoSquare = 0xFFFFFFFF

// History is what is known of the errors of earlier steps: their sum in whole numbers, how many, and for each place a
// word of bits: photos that agree with the model there below, and photos that differ above.
type History []uint32

type Outliers[T Real] struct {
	Factor  T // errors above this factor times their mean are large
	History History
	Places  []uint32 // of the squares, tile by tile
	Mask    []uint32 // as in LossConfig
	Photo   uint32
}

func (c *Outliers[T]) Large() T {
	if c.History[1] == 0 {
		return 1e30
	}
	return max(leastError, c.Factor*T(c.History[0])/(T(c.History[1])*errorOne))
}

// bitsOf returns the two bits of a photo in a place's word.
func bitsOf(photo uint32) uint32 { return (1 | 1<<photoBits) << (photo % photoBits) }

// alone reports whether the photo would be alone with another opinion of a place.
func (c *Outliers[T]) alone(place uint32) bool {
	others := c.History[place] &^ bitsOf(c.Photo)
	agree, differ := bits.OnesCount32(others&(1<<photoBits-1)), bits.OnesCount32(others>>photoBits)
	return agree >= witnesses && 2*differ <= agree
}

// squareOf returns the number of the square that pixel p lies in.
func squareOf(p, width int) int {
	x, y, tiles := p%width, p/width, (width+TileSize-1)/TileSize
	return (y/TileSize*tiles+x/TileSize)*tileSquares + y%TileSize/square*rowSquares + x%TileSize/square
}

// FindOutliers returns which pixels count, as bits like those of a mask, and what each square is: its mean error, with
// flags.
func FindOutliers[T Real](render [][4]T, target []T, width, height int, c *Outliers[T]) (counts, squares []uint32) {
	n, large := width*height, c.Large()
	counts = make([]uint32, (n+31)/32)
	g := knownPixels{width: width, height: height, mask: c.Mask}
	low, near, wrong := make([]bool, n), make([]bool, n), make([]bool, n)
	errors := OutlierErrors(render, target, width, height, c.Mask)
	for p, e := range errors {
		low[p] = g.has(p) && !(e >= suspect*large)
		wrong[p] = g.has(p) && e >= large && c.alone(c.Places[squareOf(p, width)])
	}
	for p := range n {
		all, some := g.count(low, p%width-1, p/width-1, 3)
		near[p] = g.has(p) && 2*some > all
	}
	for p := range n {
		x, y := p%width&^(voteSide-1)-voteSide/2, p/width&^(voteSide-1)-voteSide/2
		all, some := g.count(near, x, y, 2*voteSide)
		_, off := g.count(wrong, x, y, 2*voteSide)
		if g.has(p) && (low[p] || near[p] || 5*some > 3*all || 12*off < all) {
			counts[p/32] |= 1 << (p % 32)
		}
	}
	return counts, squareErrors(errors, &g, large, len(c.Places))
}

func squareErrors[T Real](errors []T, g *knownPixels, large T, n int) []uint32 {
	squares, sums, known := make([]uint32, n), make([]T, n), make([]int, n)
	for p, e := range errors {
		if g.has(p) {
			s := squareOf(p, g.width)
			sums[s] += e
			known[s]++
		}
	}
	for s := range squares {
		e := sums[s] / T(max(known[s], 1))
		if known[s] < square*square/2 || !(e < 1e30) {
			squares[s] = NoSquare
			continue
		}
		squares[s] = uint32(min(e, 1)*errorOne + 0.5)
		if e <= alike*large {
			squares[s] |= squareAgrees
		}
		if e >= large {
			squares[s] |= squareDiffers
		}
	}
	return squares
}

// OutlierErrors returns how far the rendering x [P] is from the photo y [P*3] around each pixel that the mask leaves, 0
// at others: for each channel the absolute value of the mean of x - y over those of 3x3 pixels that it leaves; and of
// these the mean.
func OutlierErrors[T Real](render [][4]T, target []T, width, height int, mask []uint32) []T {
	g, errors := knownPixels{width: width, height: height, mask: mask}, make([]T, width*height)
	for p := range errors {
		if !g.has(p) {
			continue
		}
		var sum [3]T
		n := T(0)
		g.each(p%width-1, p/width-1, 3, func(q int) {
			n++
			for ch := range sum {
				sum[ch] += render[q][ch] - target[3*q+ch]
			}
		})
		errors[p] = (abs(sum[0]) + abs(sum[1]) + abs(sum[2])) / (3 * n)
	}
	return errors
}

// knownPixels are the pixels of a picture that a mask leaves.
type knownPixels struct {
	width, height int
	mask          []uint32 // nil: all
}

func (g *knownPixels) has(p int) bool { return g.mask == nil || g.mask[p/32]>>(p%32)&1 == 1 }

// each calls f for those of a square.
func (g *knownPixels) each(x, y, side int, f func(p int)) {
	for j := max(0, y); j < min(g.height, y+side); j++ {
		for i := max(0, x); i < min(g.width, x+side); i++ {
			if p := j*g.width + i; g.has(p) {
				f(p)
			}
		}
	}
}

// count returns how many pixels of a square are known, and of how many of these a flag is set.
func (g *knownPixels) count(flags []bool, x, y, side int) (known, set int) {
	g.each(x, y, side, func(p int) {
		known++
		if flags[p] {
			set++
		}
	})
	return known, set
}

// TrackErrors takes what a step found of its squares into the history: the photo's new opinion of the places that it
// sees replaces its earlier one.
func TrackErrors(h History, places, squares []uint32, photo uint32) {
	own := bitsOf(photo)
	for i, s := range squares {
		if s != NoSquare {
			h[places[i]] &^= own
			h[0] += s &^ (squareAgrees | squareDiffers)
			h[1]++
		}
	}
	for i, s := range squares {
		if s == NoSquare {
			continue
		}
		if s&squareAgrees != 0 {
			h[places[i]] |= own & (1<<photoBits - 1)
		}
		if s&squareDiffers != 0 {
			h[places[i]] |= own &^ (1<<photoBits - 1)
		}
	}
	h[0] -= h[0] / errorMemory
	h[1] -= h[1] / errorMemory
}
