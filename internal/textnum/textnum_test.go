package textnum_test

import (
	"math"
	"testing"

	"vksplat/internal/textnum"
)

func TestFloat(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for text, want := range map[string]float64{
		"-1.5e-002": -0.015, "+3": 3, "1.": 1, ".5": 0.5, "1e-999": 0,
		"1e999": inf, "-1e999": -inf, "inf": inf, "-Infinity": -inf, "+INF": inf,
		"1.#INF": inf, "1.#INF00": inf, "1.#inf00e+000": inf, "-1.#INF": -inf,
		"nan": nan, "NaN": nan, "-nan": nan, "+nan": nan, "nan()": nan, "nan(0x7ffff)": nan, "-nan(ind)": nan,
		"nan(snan)": nan, "1.#QNAN": nan, "-1.#IND": nan, "-1.#IND00": nan, "1.#SNAN0": nan, "1.#J": nan, "1.$": nan,
		"NaNQ": nan, "qnan": nan,
	} {
		x, ok := textnum.Float(text)
		if same := x == want || math.IsNaN(x) && math.IsNaN(want); !ok || !same {
			t.Errorf("%q is %v, %v; %v is expected", text, x, ok, want)
		}
	}
	for _, text := range []string{"", "-", "banana", "nano", "nan(", "nan(ind", "1.5#", "infinite", "--nan", "1,5", "#"} {
		if x, ok := textnum.Float(text); ok {
			t.Errorf("%q is read as %v", text, x)
		}
	}
}
