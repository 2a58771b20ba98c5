package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
)

// equal requires the same elements.
func equal[T comparable](binding string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("binding %s: %d elements, want %d", binding, len(got), len(want))
	}
	differ, at := 0, -1
	for i := range want {
		if got[i] != want[i] {
			if differ++; at < 0 {
				at = i
			}
		}
	}
	if differ > 0 {
		return fmt.Errorf("binding %s: %d of %d differ, first [%d]: got %v, want %v", binding, differ, len(want), at,
			got[at], want[at])
	}
	return nil
}

// sameBytes requires equal bits: NaN equals itself, 0 differs from -0.
func sameBytes[T any](binding string, got, want []T) error {
	bits := func(x []T) []uint32 {
		var b []uint32
		for _, f := range floatsOf(x) {
			b = append(b, math.Float32bits(f))
		}
		return b
	}
	g, w := bits(got), bits(want)
	if err := equal(binding+" (bits)", g, w); err != nil {
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				return fmt.Errorf("%w: floats %g and %g", err, math.Float32frombits(g[i]), math.Float32frombits(w[i]))
			}
		}
		return err
	}
	return nil
}

// closeTo requires |got - want| <= abs + rel |want|, element by element. What is not a number must be so in both.
func closeTo[T ref.Real](binding string, got []float32, want []T, abs, rel float64) error {
	return closeScaled(binding, got, want, func(i int) float64 { return abs + rel*math.Abs(float64(want[i])) })
}

// closeScaled requires |got - want| <= limit(i), element by element.
func closeScaled[T ref.Real](binding string, got []float32, want []T, limit func(i int) float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("binding %s: %d elements, want %d", binding, len(got), len(want))
	}
	differ, at, worst := 0, -1, 0.0
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		d := math.Abs(g - w)
		if d <= limit(i) || g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		worst = max(worst, d)
		if differ++; at < 0 {
			at = i
		}
	}
	if differ > 0 {
		return fmt.Errorf("binding %s: %d of %d are off, first [%d]: got %g, want %g within %.3g; the worst is off by %.3g",
			binding, differ, len(want), at, got[at], float64(want[at]), limit(at), worst)
	}
	return nil
}

// normWithin requires ||got - want|| <= limit ||want||, for results that single pixels on a threshold may move.
func normWithin[T ref.Real](binding string, got []float32, want []T, limit float64) error {
	r := ref.RelNorm(got, want)
	if r <= limit {
		return nil
	}
	at := slices.IndexFunc(indices(len(want)), func(i int) bool {
		return i >= len(got) || !(math.Abs(float64(got[i])-float64(want[i])) <= limit*math.Abs(float64(want[i])))
	})
	if at < 0 || at >= len(got) {
		return fmt.Errorf("binding %s: %d elements, want %d; relative norm %g, %g allowed", binding, len(got),
			len(want), r, limit)
	}
	return fmt.Errorf("binding %s: relative norm of the difference %.3g, %.3g allowed; first [%d]: got %g, want %g",
		binding, r, limit, at, got[at], float64(want[at]))
}

// finite requires numbers.
func finite(binding string, x []float32) error {
	for i, v := range x {
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			return fmt.Errorf("binding %s: [%d] is %g", binding, i, v)
		}
	}
	return nil
}

func indices(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}
