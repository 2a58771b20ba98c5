package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// A model in mixed precision stores spherical harmonics as IEEE halves and moments as bfloat16, and computes in
// float32. Here its numbers are those that are stored, in the arithmetic of the twins: project_mixed is Project,
// project_bwd_adam_mixed is AdamModel and then Rounding.Store.

// BFloatValue returns the value of a bfloat16.
func BFloatValue(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// RoundBFloat returns x as a bfloat16, rounded as layout.RoundHalf does: towards 0 from the largest bfloat16 on, where
// up would be infinity.
func RoundBFloat(x float32, random uint16) uint16 {
	bits := math.Float32bits(x)
	if !belowLargest(x) {
		random = 0
	}
	return uint16((bits + uint32(random)) >> 16)
}

// belowLargest compares x with the largest bfloat16.
func belowLargest(x float32) bool { return math.Abs(float64(x)) < float64(BFloatValue(0x7F7F)) }

// Rounding says which random numbers round what a step stores.
type Rounding struct {
	Seed uint64
	Step uint32
}

// Bits returns the random bits of parameter row r of a splat: for its moments and, if it is a coefficient of spherical
// harmonics, for its value.
func (c Rounding) Bits(splat, r int) (first, second, value uint16) {
	w := Philox([4]uint32{uint32(splat), c.Step, layout.DrawRounding, 0},
		[2]uint32{uint32(c.Seed), uint32(c.Seed >> 32)})
	moments, sh := rowBits(w[0], r), rowBits(w[1], r)
	return uint16(moments), uint16(moments >> 16), uint16(sh >> 16)
}

// rowBits returns the random bits of a row: Weyl's sequence from a random word, a bijection for every row. Each half
// goes round by the golden ratio.
func rowBits(word uint32, r int) uint32 { return word + uint32(r)*0x9E379E37 }
