package goldentest

import (
	"math"

	"vksplat/pipeline/ref"
)

// RelNormWhere is ref.RelNorm over the rows (width elements each) that keep accepts.
func RelNormWhere[A, B ref.Real](out []A, want []B, width int, keep func(row int) bool) float64 {
	if len(out) != len(want) {
		return math.Inf(1)
	}
	var a []A
	var b []B
	for row := range len(want) / width {
		if keep(row) {
			a = append(a, out[row*width:(row+1)*width]...)
			b = append(b, want[row*width:(row+1)*width]...)
		}
	}
	return ref.RelNorm(a, b)
}
