package ref

import (
	"math"
	"math/bits"
)

// Philox is Philox4x32-10 (Salmon et al. 2011): a random number is a function of counter and key and of nothing else.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, counter[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}

// normalPair turns two random words into two normal samples (Box and Muller 1958). The uniform inside the logarithm is
// in (0, 1].
func normalPair[T Real](a, b uint32) (T, T) {
	const unit = 1.0 / (1 << 32)
	u := min((T(a)+0.5)*unit, 1)
	phi := 2 * math.Pi * (T(b) * unit)
	r := sqrt(-2 * log(u))
	return r * T(math.Cos(float64(phi))), r * T(math.Sin(float64(phi)))
}
