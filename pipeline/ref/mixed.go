package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// A model in mixed precision stores spherical harmonics as IEEE halves and moments as bfloat16, and computes in
// float32. Here its numbers are those that are stored, in the arithmetic of the twins: project_mixed is Project,
// project_bwd_adam_mixed is AdamModel and then Rounding.Store.

// HalfValue returns the value of an IEEE half.
func HalfValue(h uint16) float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3FF)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31:
		return math.Float32frombits(sign | 0x7F800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// RoundHalf returns x as an IEEE half: up, away from 0, where the fraction of the last place that x has beyond a half
// is at least 1 - random / 2^16, so that random bits make it x on average. What is finite stays finite.
func RoundHalf(x float32, random uint16) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	a := math.Float32frombits(bits & 0x7FFFFFFF)
	switch {
	case a != a:
		return sign | 0x7FFF
	case math.IsInf(float64(a), 0):
		return sign | 0x7C00
	case a >= 65504:
		return sign | 0x7BFF
	case a >= 1.0/(1<<14):
		return sign | uint16((math.Float32bits(a)-112<<23+uint32(random>>3))>>13)
	}
	// Multiples of 2^-24, with 16 bits behind the point; float64 holds all of it.
	return sign | uint16((uint32(math.Floor(float64(a)*(1<<40)))+uint32(random))>>16)
}

// NearestHalf returns the half that is nearest to x, the larger of two that are.
func NearestHalf(x float32) uint16 { return RoundHalf(x, 1<<15) }

// BFloatValue returns the value of a bfloat16.
func BFloatValue(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// RoundBFloat returns x as a bfloat16, rounded as RoundHalf does.
func RoundBFloat(x float32, random uint16) uint16 {
	bits := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(bits>>16) | 0x40
	case math.IsInf(float64(x), 0):
		return uint16(bits >> 16)
	}
	up := uint16((uint64(bits) + uint64(random)) >> 16)
	if up&0x7F80 == 0x7F80 {
		return up - 1
	}
	return up
}

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

// rowBits mixes a row's number into a random word: Weyl's sequence and the hash lowbias32 (Wellons 2018,
// hash-prospector), a bijection.
func rowBits(word uint32, r int) uint32 {
	x := word + uint32(r)*0x9E3779B9
	x = (x ^ x>>16) * 0x7FEB352D
	x = (x ^ x>>15) * 0x846CA68B
	return x ^ x>>16
}

// Store rounds what a step has computed to what a model in mixed precision can hold.
func (c Rounding) Store(m *Model[float32]) {
	row := 0
	first, second := m.M.Tensors(), m.V.Tensors()
	for k, t := range m.Params.Tensors() {
		for i := range t.Data {
			splat, r := i/t.Width, row+i%t.Width
			a, b, value := c.Bits(splat, r)
			first[k].Data[i] = BFloatValue(RoundBFloat(first[k].Data[i], a))
			second[k].Data[i] = BFloatValue(RoundBFloat(second[k].Data[i], b))
			if r >= layout.RowSh {
				t.Data[i] = HalfValue(RoundHalf(t.Data[i], value))
			}
		}
		row += t.Width
	}
}

// MixedRows returns where the rows of a chunk in mixed precision begin: of moments, each a first and a second one, and
// of statistics. Those of spherical harmonics begin at layout.RowSh, two coefficients a word.
func MixedRows(degree int) (moments, stats int) {
	sh := 3 * (degree + 1) * (degree + 1)
	moments = layout.RowSh + (sh+1)/2
	return moments, moments + layout.RowSh + sh
}
