package layout

import "math"

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
// is at least 1 - random / 2^16, so that random bits make it x on average. Three of them are not used: float32 has 13
// bits more than a half. What is below 2^-14 is first rounded to a multiple of 2^-37. What is finite stays finite, what
// is not stays so.
func RoundHalf(x float32, random uint16) uint16 {
	bits := math.Float32bits(x)
	a := bits & 0x7FFFFFFF
	magnitude := math.Float32frombits(a)
	// A half's exponent + 224 and fraction; the larger is the second below 2^-14, where halves have no leading 1.
	up := max(magnitude*(1<<112), magnitude*(1<<111)+1<<97)
	rounded := min(math.Float32bits(up)+uint32(random>>3), max(a, math.Float32bits(math.MaxFloat32)))
	return uint16(bits>>16)&0x8000 | uint16(rounded>>13)&0x7FFF
}

// NearestHalf returns the half that is nearest to x, the larger of two that are.
func NearestHalf(x float32) uint16 { return RoundHalf(x, 1<<15) }
