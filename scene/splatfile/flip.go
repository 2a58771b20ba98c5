package splatfile

import "vksplat/scene"

// flipSign lists, per SH coefficient of degrees 1 to 3 in the order of scene.Splats, the parity of the basis function
// in x, y and z (1: odd): how its sign changes when that axis is turned round. Degree 1 is -y, z, -x; degree 2 xy, yz,
// 2zz-xx-yy, xz, xx-yy; degree 3 y(3xx-yy), xyz, y(4zz-xx-yy), z(2zz-3xx-3yy), x(4zz-xx-yy), z(xx-yy), x(xx-3yy).
var flipSign = [15][3]int{
	{0, 1, 0}, {0, 0, 1}, {1, 0, 0},
	{1, 1, 0}, {0, 1, 1}, {0, 0, 0}, {1, 0, 1}, {0, 0, 0},
	{0, 1, 0}, {1, 1, 1}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}, {0, 0, 1}, {1, 0, 0},
}

// flip turns axes of a model's frame round, in place: diag(x, y, z) with entries +-1, as between COLMAP's frame (right,
// down, forward) and SPZ's (right, up, back): Flip(s, 1, -1, -1), or glTF's (left, up, forward): Flip(s, -1, -1, 1). It
// is its own inverse and exact. One axis or three mirror the model.
func flip(s *scene.Splats, x, y, z float32) {
	sign := [3]float32{x, y, z}
	var sh [15]float32
	for k, parity := range flipSign {
		sh[k] = 1
		for axis, odd := range parity {
			if odd == 1 {
				sh[k] *= sign[axis]
			}
		}
	}
	coefficients := s.K()
	for i := range s.N {
		for axis := range 3 {
			s.Means[3*i+axis] *= sign[axis]
			// A rotation R becomes D R D, whose axis is that of R as a pseudovector: det(D) D of it. An ellipsoid is
			// the same mirrored along its own axes.
			s.Quats[4*i+1+axis] *= x * y * z * sign[axis]
		}
		for k := 1; k < coefficients; k++ {
			for c := range 3 {
				s.SH[(i*coefficients+k)*3+c] *= sh[k-1]
			}
		}
	}
}
