package splatfile

import (
	"math"
	"strings"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// spzLetters are where x, y and z point for the values of Adobe's record from 1 on.
const spzLetters = "LDB RDB LUB RUB LDF RDF LUF RUF LFD RFD LFU RFU LBD RBD LBU RBU"

// ours is where the axes of a file point in our frame, right, down, forward: the columns of a matrix.
func ours(letters string) (m [9]float64) {
	for axis, letter := range letters {
		place := strings.IndexRune("RDFLUB", letter)
		m[3*(place%3)+axis] = float64(1 - place/3*2)
	}
	return m
}

// All 16 kinds of axes, of either hand, move positions, ellipsoids and colours as their letters say.
func TestSPZAxes(t *testing.T) {
	directions := [][3]float64{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}, {0.6, 0.8, 0}, {0.48, -0.6, 0.64},
		{-2.0 / 3, 1.0 / 3, -2.0 / 3}}
	for i, letters := range strings.Fields(spzLetters) {
		m := ours(letters)
		switch letters {
		case "LFD", "RFD", "LBU", "RBU": // half a turn about x from their letters in files of Niantic's library
			for k := 3; k < 9; k++ {
				m[k] *= -1
			}
		}
		axes, known := spzAxesOf(uint32(i + 1))
		if !known {
			t.Errorf("%s is not known", letters)
		}
		before, after := madeModel(9, 3, "edges"), madeModel(9, 3, "edges")
		axes.toOurs(after)
		for n := range before.N {
			at := before.Means[3*n:]
			want := geom.Rotate(m, [3]float64{float64(at[0]), float64(at[1]), float64(at[2])})
			for k, x := range after.Means[3*n : 3*n+3] {
				if float64(x) != want[k] {
					t.Fatalf("%s: position %v, want %v", letters, after.Means[3*n:3*n+3], want)
				}
			}
			for _, d := range directions {
				there := geom.Rotate(m, d)
				if a, b := variance(before, n, d), variance(after, n, there); math.Abs(a-b) > 1e-5*(a+1e-12) {
					t.Fatalf("%s: the variance along %v was %g and is %g", letters, d, a, b)
				}
				for c := range 3 {
					if a, b := shColour(before, n, c, d), shColour(after, n, c, there); math.Abs(a-b) > 1e-5 {
						t.Fatalf("%s: the colour along %v was %g and is %g", letters, d, a, b)
					}
				}
			}
		}
	}
	if _, known := spzAxesOf(17); known {
		t.Error("17 is known")
	}
	if absent, _ := spzAxesOf(0); absent != (spzAxes{sign: spzFrame}) {
		t.Errorf("0 gives %v", absent)
	}
}

// variance is that of splat n along a direction.
func variance(s *scene.Splats, n int, d [3]float64) (sum float64) {
	q := direction(s.Quats[4*n : 4*n+4])
	for axis := range 3 {
		var unit [3]float64
		unit[axis] = math.Exp(float64(s.LogScales[3*n+axis]))
		along := geom.Dot(rotate(q, unit), d)
		sum += along * along
	}
	return sum
}

// shColour is what channel c of splat n shows along a direction.
func shColour(s *scene.Splats, n, c int, d [3]float64) (sum float64) {
	for j, y := range shBasis(d[0], d[1], d[2]) {
		sum += y * float64(s.SH[(n*s.K()+j)*3+c])
	}
	return sum
}
