package geom

import (
	"math"
	"slices"
)

// Finite says whether every value is neither NaN nor infinite.
func Finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// MaxSide bounds a calibrated image's width and height in pixels.
const MaxSide = 1 << 20

func Square(x float64) float64 { return x * x }

// Quantile gives the value that a share of the values, which it sorts, are not above; between two it interpolates.
func Quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	at := share * float64(len(values)-1)
	lo := int(at)
	hi := min(lo+1, len(values)-1)
	return values[lo] + (at-float64(lo))*(values[hi]-values[lo])
}
