package philox

import "math/bits"

// Purposes of random numbers drawn on the host: the third word of the Philox
// counter. The device's own draws are small numbers, so these stay clear of
// them.
const (
	StreamQuats   uint32 = 0x10001
	streamViews   uint32 = 0x10002
	StreamCloud   uint32 = 0x10003
	StreamSamples uint32 = 0x10004
)

// Block is Philox4x32-10 of Salmon et al. 2011, "Parallel Random Numbers: As
// Easy as 1, 2, 3": 128 random bits that are a function of counter and key.
// Everywhere in vksplat the counter is (id, step or epoch, purpose, 0) and the
// key is the seed, low word first.
func Block(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		multiplier0 = 0xD2511F53
		multiplier1 = 0xCD9E8D57
		weyl0       = 0x9E3779B9
		weyl1       = 0xBB67AE85
		rounds      = 10
	)
	c := counter
	for range rounds {
		hi0, lo0 := bits.Mul32(multiplier0, c[0])
		hi1, lo1 := bits.Mul32(multiplier1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ key[0], lo1, hi0 ^ c[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return c
}

func Key(seed uint64) [2]uint32 {
	return [2]uint32{uint32(seed), uint32(seed >> 32)}
}

// Uniform maps 32 random bits to [0, 1): the upper 24 of them, which float32
// holds exactly.
func Uniform(bits uint32) float64 {
	return float64(bits>>8) / (1 << 24)
}

// ViewOrder gives the order in which n views are visited in an epoch: a
// permutation of 0..n-1 that depends on seed, epoch and n alone.
func ViewOrder(seed uint64, epoch int, n int) []int {
	if n <= 0 {
		return nil
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	key := Key(seed)
	// Fisher-Yates. The high half of a 64x64 product maps 64 random bits to
	// 0..i with a bias below n / 2^64.
	for i := n - 1; i > 0; i-- {
		random := Block([4]uint32{uint32(i), uint32(epoch), streamViews, 0}, key)
		j, _ := bits.Mul64(uint64(random[0])<<32|uint64(random[1]), uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}
