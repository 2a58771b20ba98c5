package splatfile

import (
	"cmp"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
)

func readMeans(model Source) ([]float32, error) {
	means := make([]float32, 0, 3*model.Info().N)
	err := eachPiece(model, func(_ int, piece *scene.Splats) error {
		means = append(means, piece.Means...)
		return nil
	})
	return means, err
}

// mortonOrder sorts the splats of a model along a Z-order curve: splats that are near each other in space mostly are in
// the file.
func mortonOrder(model Source) ([]uint32, error) {
	means, err := readMeans(model)
	if err != nil {
		return nil, err
	}
	return zOrder(len(means)/3, func(i int) []float32 { return means[3*i : 3*i+3] }), nil
}

// zOrder sorts n positions along a Z-order curve over their box, 21 bits an axis. Equal codes keep their order.
func zOrder(n int, at func(i int) []float32) []uint32 {
	b := emptyBox()
	for i := range n {
		b.add(at(i))
	}
	codes := make([]uint64, n)
	order := make([]uint32, n)
	for i := range codes {
		order[i] = uint32(i)
		for axis, x := range at(i) {
			if span := float64(b.high[axis]) - float64(b.low[axis]); span > 0 {
				place := (float64(x) - float64(b.low[axis])) / span
				codes[i] |= spread(uint64(min(max(place, 0), 1)*(1<<21-1))) << axis
			}
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(codes[a], codes[b]), cmp.Compare(a, b)) })
	return order
}

// importanceOrder sorts the splats of a model by opacity times volume, the greatest first. Equal ones keep their order.
func importanceOrder(model Source) ([]uint32, error) {
	keys := make([]uint64, 0, model.Info().N) // the importance, turned round, in the upper half; the splat in the lower
	err := eachPiece(model, func(_ int, piece *scene.Splats) error {
		for i := range piece.N {
			keys = append(keys, uint64(^ascending(importance(piece, i)))<<32|uint64(len(keys)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	order := make([]uint32, len(keys))
	for i, key := range keys {
		order[i] = uint32(key)
	}
	return order, nil
}

// importance is the logarithm of the opacity of splat i times the product of its axes.
func importance(s *scene.Splats, i int) float32 {
	logit := float64(s.LogitOpacities[i])
	// log(1 / (1 + exp(-x))), for which exp must not overflow.
	opacity := min(logit, 0) - math.Log1p(math.Exp(-math.Abs(logit)))
	scale := s.LogScales[3*i : 3*i+3]
	return float32(opacity + float64(scale[0]) + float64(scale[1]) + float64(scale[2]))
}

// ascending gives the bits of a number such that they sort as numbers do.
func ascending(x float32) uint32 {
	bits := math.Float32bits(x)
	if bits>>31 == 1 {
		return ^bits
	}
	return bits | 1<<31
}

// box holds finite positions.
type box struct{ low, high [3]float32 }

func emptyBox() box {
	return box{[3]float32{inf32, inf32, inf32}, [3]float32{-inf32, -inf32, -inf32}}
}

// add widens the box to positions, [N*3].
func (b *box) add(means []float32) {
	for i, x := range means {
		if isFinite(x) {
			b.low[i%3], b.high[i%3] = min(b.low[i%3], x), max(b.high[i%3], x)
		}
	}
}

func (b *box) longest() (axis int, length float32) {
	for k := range 3 {
		if side := b.high[k] - b.low[k]; side > length {
			axis, length = k, side
		}
	}
	return axis, length
}

// spreadOf is the standard deviation of splat i along each axis of the frame. Its rotation has length 1.
func spreadOf(s *scene.Splats, i int) (sigma [3]float64) {
	q := s.Quats[4*i : 4*i+4]
	r, _ := geom.RotationFromQuat([4]float64{float64(q[0]), float64(q[1]), float64(q[2]), float64(q[3])})
	for k := range 3 {
		sum := 0.0
		for axis := range 3 {
			sum += geom.Square(r[3*k+axis] * math.Exp(float64(s.LogScales[3*i+axis])))
		}
		sigma[k] = math.Sqrt(sum)
	}
	return sigma
}

// spread puts bit k of a 21-bit number at bit 3k.
func spread(x uint64) uint64 {
	x &= 1<<21 - 1
	x = (x | x<<32) & 0x1f00000000ffff
	x = (x | x<<16) & 0x1f0000ff0000ff
	x = (x | x<<8) & 0x100f00f00f00f00f
	x = (x | x<<4) & 0x10c30c30c30c30c3
	return (x | x<<2) & 0x1249249249249249
}
