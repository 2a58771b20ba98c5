package scene

import (
	"math"
	"testing"
)

// TestMeanUp takes the mean of what is up in the cameras' pictures, and refuses one that means nothing.
func TestMeanUp(t *testing.T) {
	level := Camera{R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	tilted := Camera{R: [9]float64{1, 0, 0, 0, 0, 1, 0, -1, 0}} // its y axis is the world's z
	head := Camera{R: [9]float64{-1, 0, 0, 0, -1, 0, 0, 0, 1}}  // upside down
	up, err := MeanUp([]Camera{level, tilted})
	if err != nil || up[0] != 0 || math.Abs(up[1]+math.Sqrt2/2) > 1e-15 || up[1] != up[2] {
		t.Errorf("%v, %v", up, err)
	}
	for _, cams := range [][]Camera{nil, {level, head}, {level, level, level, level, level, head, head, head, head}} {
		if up, err := MeanUp(cams); err == nil {
			t.Errorf("%v of %d cameras", up, len(cams))
		}
	}
}
