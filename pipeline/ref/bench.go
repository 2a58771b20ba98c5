package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: bench_copy bench_fma bench_shared

// BenchFMA returns what invocation i of bench_fma writes: eight chains x = x scale + shift, summed.
func BenchFMA(i, rounds int, scale, shift float32) (sum float32) {
	for chain := range 8 {
		x := float32(i&255) + float32(chain)
		for range rounds * layout.FMARound / 8 {
			x = float32(math.FMA(float64(x), float64(scale), float64(shift)))
		}
		sum += x
	}
	return sum
}

// BenchShared returns what invocation i of bench_shared writes, when lanes hand words round or read shared memory.
func BenchShared(i, rounds, stride int, shuffle bool) (sum uint32) {
	const words = 256
	for chain := range 4 {
		at := (i + 64*chain) % words
		// Each word goes to the neighbour and back as often.
		if at += rounds * layout.SharedRound / 4 * stride; !shuffle {
			at %= words
		}
		sum += uint32(at)
	}
	return sum
}
