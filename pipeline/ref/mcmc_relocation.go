package ref

// twin: mcmc_relocation

const (
	// MaxRelocations is the largest number of copies of one splat that mcmc_relocation supports, the splat itself
	// included.
	MaxRelocations      = 51
	MinRelocatedOpacity = 0.005
)

// binomial returns n over k, exact below 2^53.
func binomial(n, k int) float64 {
	c := 1.0
	for j := 1; j <= k; j++ {
		c = c * float64(n-k+j) / float64(j)
	}
	return c
}

// Relocate returns the opacity and the scales (both activated) that n copies of a splat must have to look like the
// splat did (3DGS-MCMC, Kheradmand et al. 2024, eq. 9). n is clamped to [1, MaxRelocations]; the new opacity is at
// least MinRelocatedOpacity.
func Relocate[T Real](opacity T, scales [3]T, n int) (T, [3]T) {
	return relocate(opacity, 1-opacity, scales, n, MinRelocatedOpacity)
}

// relocate takes 1 - opacity by itself, which may have more digits.
func relocate[T Real](opacity, rest T, scales [3]T, n int, floor T) (T, [3]T) {
	n = min(max(n, 1), MaxRelocations)
	o := 1 - pow(rest, 1/T(n))
	// Written so that a NaN fails it.
	if !(o >= floor) {
		o = floor
	}
	// sum_{i=1..n} sum_{k<i} C(i-1, k) (-1)^k o^(k+1) / sqrt(k+1), the sum over i being C(n, k+1).
	var denominator T
	power := o
	for k := range n {
		term := T(binomial(n, k+1)) * power / sqrt(T(k+1))
		if k%2 == 1 {
			term = -term
		}
		denominator += term
		power *= o
	}
	f := opacity / denominator
	return o, [3]T{scales[0] * f, scales[1] * f, scales[2] * f}
}
