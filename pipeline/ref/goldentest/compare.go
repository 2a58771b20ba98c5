package goldentest

import (
	"math"
	"testing"

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

// Within fails the test unless got <= limit; a NaN fails too.
func Within(t testing.TB, name string, got, limit float64) {
	t.Helper()
	t.Logf("%-16s %.3g", name, got)
	if !(got <= limit) {
		t.Errorf("%s: %.3g exceeds %g", name, got, limit)
	}
}
