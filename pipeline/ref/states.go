package ref

import "math"

// In mixed precision rasterize keeps a pixel's state, the colour so far and the transmittance, in 64 bits.

// A packed number is the upper bits of a float32 that grows from its zero, less those of the zero.
const (
	stateFraction = 12 // bits that are no exponent
	stateDropped  = 23 - stateFraction
	stateLargest  = 1<<16 - 1
	stateUnit     = 1.0 / (1 << stateFraction) // of the power of two below x + zero
)

// stateZero is that of a state's numbers: of colours 2^-10, so that they go up to 64, of the transmittance 2^-14.
var stateZero = [4]float32{1.0 / (1 << 10), 1.0 / (1 << 10), 1.0 / (1 << 10), 1.0 / (1 << 14)}

// LargestPacked is the largest colour of a packed state.
const LargestPacked = 64 - 1.0/128 - 1.0/1024

func unpackNumber(n uint32, zero float32) float32 {
	return math.Float32frombits(n<<stateDropped+math.Float32bits(zero)) - zero
}

// UnpackState returns what PackState has rounded.
func UnpackState(w [2]uint32) (s [4]float32) {
	for k := range s {
		s[k] = unpackNumber(w[k/2]>>(16*(k%2))&stateLargest, stateZero[k])
	}
	return s
}

// StateErrors returns by how much packing may move each number of a state, at most: by half a unit of the sum that is
// packed, and by what float32 makes of adding the zero and taking it away.
func StateErrors(s [4]float64) (most [4]float64) {
	for k, x := range s {
		most[k] = (stateUnit/2 + 1.0/(1<<23)) * (x + float64(stateZero[k]))
	}
	return most
}

// PackedError is by how much the gradients of a pair can be off because the states that a backward pass starts from
// are packed: those of ProjectedGrad, then those beside them (RasterizeBwdDepth).
type PackedError struct {
	Most   [12]float64 // if all pixels' errors were as large as they can be, and of one sign
	Square [12]float64 // sum of the squares of such errors: pixels are rounded independently of each other
}

// PackedErrors bounds the errors of RasterizeBwdDepth where each bucket of isects but a tile's first starts from packed
// states. [n_isects]
//
// Let a bucket start at transmittance T (1 + d) in place of T, and at a colour that is off by e, so that what lies
// behind, B = (picture - colour so far) v, is off by -e v. Then all transmittances of the bucket are off by the same
// share d, and B behind a splat is off by -e v - d S, where S is the sum of T alpha c v over the bucket's splats up to
// that one. So a splat's gradient by its alpha, T c v - B / (1 - alpha), is off by
//
//	d (T c v + S / (1 - alpha)) + e v / (1 - alpha)
//
// and that by its colour by d T alpha v. Opaque splats of the bucket divide by a small 1 - alpha.
func PackedErrors(splats []Projected[float64], inverse []float64, l *Lists, v *View[float64], g Grid,
	vRender [][4]float64, vSums []float64, bucket int) []PackedError {
	out := make([]PackedError, len(l.SplatFromSlot))
	var list []blended[float64]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]float64) {
		list, _, _ = blendPixel(list[:0], splats, l, tile, c)
		up := [4]float64{vRender[at][0], vRender[at][1], vRender[at][2], vSums[at]}
		var state [4]float64
		var d, e, sum float64
		now := 0
		for k := range list {
			b := &list[k]
			id := l.SplatFromSlot[tile[b.index]]
			s := &splats[id]
			if n := b.index / bucket; n != now {
				now, sum, state[3], e = n, 0, b.transmittance, 0
				errs := StateErrors(state)
				d = errs[3] / b.transmittance
				for ch := range 3 {
					e += errs[ch] * math.Abs(up[ch])
				}
			}
			weight := b.alpha * b.transmittance
			cv := up[3] * inverse[id]
			for ch, x := range s.Color {
				cv += x * up[ch]
				state[ch] += weight * x
			}
			sum += weight * cv
			out[tile[b.index]].add(s, b, d*math.Abs(b.transmittance*cv+sum/(1-b.alpha))+e/(1-b.alpha), d*weight, up)
		}
	})
	return out
}

// add adds a pixel's errors: of the gradient by alpha, and of the splat's weight.
func (p *PackedError) add(s *Projected[float64], b *blended[float64], alpha, weight float64, up [4]float64) {
	var of [12]float64
	if b.raw <= MaxAlpha {
		var grad ProjectedGrad[float64]
		of[9], of[10] = addAlphaGrad(&grad, s, b, alpha)
		copy(of[:], grad[:6])
	}
	for ch, x := range up[:3] {
		of[6+ch] = weight * x
	}
	of[11] = weight * up[3]
	for k, x := range of {
		p.Most[k] += math.Abs(x)
		p.Square[k] += x * x
	}
}
