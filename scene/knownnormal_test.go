package scene

import (
	"math"
	"math/rand/v2"
	"testing"

	"vksplat/internal/geom"
)

// TestPackNormal wants directions back to a hundredth of a degree, those on the edges of the mapping among them.
func TestPackNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	list := [][3]float64{{0, 0, -1}, {0, 0, 1}, {1, 0, 0}, {0, -1, 0}, {0.6, 0, 0.8}, {0, -0.6, 0.8}, {0.6, -0.8, 0}}
	for range 10000 {
		list = append(list, geom.Vec{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}.Unit())
	}
	for _, n := range list {
		word := PackNormal(n)
		got := geom.Vec(UnpackNormal(word))
		if off := math.Atan2(got.Cross(n).Length(), got.Dot(n)) * 180 / math.Pi; word == 0 || !(off < 0.01) {
			t.Fatalf("%v: word %#x, which is %v, off by %.3f degrees", n, word, got, off)
		}
	}
}

// TestNormalMap has cells for all pixels, those of a rest of a cell too.
func TestNormalMap(t *testing.T) {
	m := NewNormalMap(17, 9, 2)
	if m.Columns != 5 || len(m.Cells) != 15 || !m.Covers(17, 9) || !m.Covers(20, 12) || m.Covers(21, 9) ||
		m.Covers(17, 13) {
		t.Errorf("%d cells in rows of %d", len(m.Cells), m.Columns)
	}
}
