package splatfile

import (
	"math"
	"testing"
)

// shBasis are the real spherical harmonics of degrees 0 to 3, from their definition with associated Legendre
// polynomials: m below 0 takes the sine.
func shBasis(x, y, z float64) (b [16]float64) {
	// p[l][m] without the factor sin^m and with the Condon-Shortley sign, which the coefficients of splats contain.
	p := [4][4]float64{
		{1},
		{z, -1},
		{(3*z*z - 1) / 2, -3 * z, 3},
		{(5*z*z*z - 3*z) / 2, -1.5 * (5*z*z - 1), 15 * z, -15},
	}
	factorial := func(n int) float64 { return math.Gamma(float64(n + 1)) }
	for l := range 4 {
		re, im := 1.0, 0.0 // (x + iy)^m: sin^m times cosine and sine of m times the angle
		for m := 0; m <= l; m++ {
			n := math.Sqrt(float64(2*l+1) / (4 * math.Pi) * factorial(l-m) / factorial(l+m))
			if m == 0 {
				b[l*l+l] = n * p[l][0]
			} else {
				b[l*l+l+m] = math.Sqrt2 * n * p[l][m] * re
				b[l*l+l-m] = math.Sqrt2 * n * p[l][m] * im
			}
			re, im = re*x-im*y, re*y+im*x
		}
	}
	return b
}

// rotate turns a vector by the rotation w x y z.
func rotate(q [4]float64, v [3]float64) (out [3]float64) {
	w, x, y, z := q[0], q[1], q[2], q[3]
	r := [3][3]float64{
		{1 - 2*(y*y+z*z), 2 * (x*y - w*z), 2 * (x*z + w*y)},
		{2 * (x*y + w*z), 1 - 2*(x*x+z*z), 2 * (y*z - w*x)},
		{2 * (x*z - w*y), 2 * (y*z + w*x), 1 - 2*(x*x+y*y)},
	}
	for i := range 3 {
		for j := range 3 {
			out[i] += r[i][j] * v[j]
		}
	}
	return out
}

// A model that is turned over must look the same from a direction that is turned over with it, and its axes must have
// turned too.
func TestFlip(t *testing.T) {
	directions := [][3]float64{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}, {0.6, 0.8, 0}, {0.48, -0.6, 0.64},
		{-2.0 / 3, 1.0 / 3, -2.0 / 3}}
	for _, sign := range [][3]float32{{1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}, {1, 1, 1},
		{-1, 1, 1}, {1, -1, 1}, {1, 1, -1}, {-1, -1, -1}} {
		for degree := range 4 {
			before, after := madeModel(9, degree, "edges"), madeModel(9, degree, "edges")
			flip(after, sign[0], sign[1], sign[2])
			turn := func(v [3]float64) [3]float64 {
				return [3]float64{v[0] * float64(sign[0]), v[1] * float64(sign[1]), v[2] * float64(sign[2])}
			}
			k := before.K()
			for i := range before.N {
				for _, d := range directions {
					for c := range 3 {
						var was, is float64
						here, there := shBasis(d[0], d[1], d[2]), shBasis(turn(d)[0], turn(d)[1], turn(d)[2])
						for j := range k {
							was += here[j] * float64(before.SH[(i*k+j)*3+c])
							is += there[j] * float64(after.SH[(i*k+j)*3+c])
						}
						if math.Abs(was-is) > 1e-6 {
							t.Fatalf("sign %v, degree %d, direction %v: colour %v became %v", sign, degree, d, was, is)
						}
					}
					// An axis of the splat, turned, is that axis of the turned splat up to its sign.
					a, b := turn(rotate(direction(before.Quats[4*i:4*i+4]), turn(d))),
						rotate(direction(after.Quats[4*i:4*i+4]), d)
					for j := range 3 {
						if math.Abs(a[j]-b[j]) > 1e-6 {
							t.Fatalf("sign %v: axis %v became %v, want %v", sign, d, b, a)
						}
					}
				}
				for axis := range 3 {
					if after.Means[3*i+axis] != sign[axis]*before.Means[3*i+axis] {
						t.Fatalf("sign %v: mean %v", sign, after.Means[3*i:3*i+3])
					}
				}
			}
		}
	}
}
