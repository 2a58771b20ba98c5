package splatfile

import (
	"encoding/binary"
	"fmt"
	"math"

	"vksplat/internal/parallel"
)

// losslessImage is an image of bytes that is to be a lossless WebP (RFC 9649, section 3). Its pixels come one row after
// the other; what a pixel does not have of red, green and blue is 0, its alpha 255, and pixels at the end of the image
// that are not there are 0.
type losslessImage struct {
	pixels   []uint8
	channels int // 1 to 4
	width    int
	height   int
}

// losslessFilter transforms pixels before their bytes are coded.
type losslessFilter struct {
	subtractGreen bool
	predict       int // 0 or one of the numbers of the format's predictors
}

const (
	predictLeft = 1
	predictTop  = 2
)

// losslessFilters are tried for each image. Neighbours to the left are near each other in space, those above in the
// palette.
var losslessFilters = []losslessFilter{{false, 0}, {true, 0}, {false, predictLeft}, {true, predictLeft},
	{false, predictTop}, {true, predictTop}}

// The alphabets of the five prefix codes of an image: green with the lengths of matches, red, blue, alpha, distances of
// matches. No matches are written: the images are all but noise.
var losslessAlphabets = [5]int{256 + 24, 256, 256, 256, 40}

// channelOf gives the place in a pixel of what the first four codes are for.
var channelOf = [4]int{1, 0, 2, 3}

// maxPrefix is the longest prefix of a prefix code.
const maxPrefix = 15

func (m *losslessImage) encode() ([]byte, error) {
	if m.width < 1 || m.height < 1 || m.width > maxWebPSide || m.height > maxWebPSide {
		return nil, fmt.Errorf("splatfile: encode webp: %d x %d pixels", m.width, m.height)
	}
	filter, counts := m.chooseFilter()
	w := &bitWriter{out: make([]byte, 20, 1<<12+len(m.pixels))}
	w.bits(0x2f, 8)
	w.bits(uint64(m.width-1), 14)
	w.bits(uint64(m.height-1), 14)
	hasAlpha := uint64(0)
	if m.channels == 4 {
		hasAlpha = 1
	}
	w.bits(hasAlpha, 1)
	w.bits(0, 3) // version
	m.writeTransforms(w, filter)
	w.bits(0, 1) // no colour cache
	w.bits(0, 1) // the same codes everywhere
	var codes [4]prefixCode
	for i, alphabet := range losslessAlphabets {
		symbols := make([]uint64, alphabet)
		if i < len(codes) {
			copy(symbols, counts[i][:])
		}
		code := newPrefixCode(symbols, maxPrefix)
		code.write(w)
		if i < len(codes) {
			codes[i] = code
		}
	}
	m.rows(filter, func(residual []uint8) {
		for x := 0; x < len(residual); x += 4 {
			for i, c := range channelOf {
				symbol := residual[x+c]
				w.bits(uint64(codes[i].prefix[symbol]), uint(codes[i].length[symbol]))
			}
		}
	})
	w.flush()
	return riff(w.out), nil
}

// riff fills in the headers before the pixels' chunk, whose bytes begin at byte 20.
func riff(out []byte) []byte {
	size := len(out) - 20
	if size%2 == 1 {
		out = append(out, 0)
	}
	copy(out, "RIFF")
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	copy(out[8:], "WEBPVP8L")
	binary.LittleEndian.PutUint32(out[16:], uint32(size))
	return out
}

// losslessCounts says how often each byte occurs, in the order of the codes.
type losslessCounts [4][256]uint64

// bitsNeeded estimates the size of the image.
func (c *losslessCounts) bitsNeeded() float64 {
	sum := 0.0
	for i := range c {
		total := uint64(0)
		for _, n := range c[i] {
			total += n
		}
		for _, n := range c[i] {
			if n > 0 {
				sum += float64(n) * math.Log2(float64(total)/float64(n))
			}
		}
	}
	return sum
}

// chooseFilter finds the filter after which bytes are most predictable.
func (m *losslessImage) chooseFilter() (losslessFilter, *losslessCounts) {
	counts := make([]losslessCounts, len(losslessFilters))
	parallel.For(len(losslessFilters), func(i int) {
		m.rows(losslessFilters[i], func(residual []uint8) {
			for x := 0; x < len(residual); x += 4 {
				for code, c := range channelOf {
					counts[i][code][residual[x+c]]++
				}
			}
		})
	})
	best, least := 0, math.Inf(1)
	for i := range counts {
		if bits := counts[i].bitsNeeded(); bits < least {
			best, least = i, bits
		}
	}
	return losslessFilters[best], &counts[best]
}

// rows hands every row to put after the filter, four bytes a pixel.
func (m *losslessImage) rows(filter losslessFilter, put func(residual []uint8)) {
	row, above, residual := make([]uint8, 4*m.width), make([]uint8, 4*m.width), make([]uint8, 4*m.width)
	for y := range m.height {
		row, above = above, row
		m.fill(row, y, filter.subtractGreen)
		switch {
		case filter.predict == 0:
			copy(residual, row)
		case y == 0: // the first pixel is predicted to be black, the others as the one before
			for x := range row {
				before := uint8(0)
				if x >= 4 {
					before = row[x-4]
				} else if x == 3 {
					before = 255
				}
				residual[x] = row[x] - before
			}
		default:
			for x := range row {
				before := above[x]
				if filter.predict == predictLeft && x >= 4 { // the first of a row is predicted from above
					before = row[x-4]
				}
				residual[x] = row[x] - before
			}
		}
		put(residual)
	}
}

// fill makes row y of four bytes a pixel.
func (m *losslessImage) fill(row []uint8, y int, subtractGreen bool) {
	for x := range m.width {
		p := row[4*x : 4*x+4 : 4*x+4]
		p[0], p[1], p[2], p[3] = 0, 0, 0, 255
		if at := m.channels * (y*m.width + x); at < len(m.pixels) {
			copy(p, m.pixels[at:at+m.channels])
		}
		if subtractGreen {
			p[0] -= p[1]
			p[2] -= p[1]
		}
	}
}

// writeTransforms announces the filter. The predictor's number lies in an image of its own, a pixel for each square of
// 512 x 512; as they are all the same they take no bits.
func (m *losslessImage) writeTransforms(w *bitWriter, filter losslessFilter) {
	const (
		kindPredict  = 0
		kindSubtract = 2
		squareBits   = 9
	)
	if filter.subtractGreen {
		w.bits(1, 1)
		w.bits(kindSubtract, 2)
	}
	if filter.predict != 0 {
		w.bits(1, 1)
		w.bits(kindPredict, 2)
		w.bits(squareBits-2, 3)
		w.bits(0, 1) // no colour cache
		for i, alphabet := range losslessAlphabets {
			symbols := make([]uint64, alphabet)
			symbols[0] = 1
			if i == 0 {
				symbols[0], symbols[filter.predict] = 0, 1
			}
			code := newPrefixCode(symbols, maxPrefix)
			code.write(w)
		}
	}
	w.bits(0, 1) // no more
}

// bitWriter packs numbers, lowest bits first.
type bitWriter struct {
	out  []byte
	hold uint64
	n    uint
}

// bits writes the lowest count bits of v, which has no others; count is at most 32.
func (w *bitWriter) bits(v uint64, count uint) {
	w.hold |= v << w.n
	w.n += count
	if w.n >= 32 {
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(w.hold))
		w.hold >>= 32
		w.n -= 32
	}
}

// flush writes what is held, with zeros up to a whole byte.
func (w *bitWriter) flush() {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.out = append(w.out, uint8(w.hold))
		w.hold >>= 8
	}
}
