package ref

import "math"

// twin: bench_copy bench_fma

// FMARound is how many multiplications and additions an invocation of bench_fma does in a round.
const FMARound = 8 * 16

// BenchFMA returns what invocation i of bench_fma writes: eight chains x = x scale + shift, summed.
func BenchFMA(i, rounds int, scale, shift float32) (sum float32) {
	for chain := range 8 {
		x := float32(i&255) + float32(chain)
		for range rounds * FMARound / 8 {
			x = float32(math.FMA(float64(x), float64(scale), float64(shift)))
		}
		sum += x
	}
	return sum
}
