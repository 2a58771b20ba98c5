package geom

import (
	"errors"
	"fmt"
	"math"
)

// SymmetricEigen returns the eigenvalues of a symmetric matrix and its eigenvectors as columns, by Jacobi rotations.
func SymmetricEigen(m [3][3]float64) (values [3]float64, vectors [3][3]float64) {
	for i := range 3 {
		vectors[i][i] = 1
	}
	for range 12 { // far more sweeps than 3x3 takes to float64's last bit
		for p := range 2 {
			for q := p + 1; q < 3; q++ {
				if m[p][q] == 0 {
					continue
				}
				theta := (m[q][q] - m[p][p]) / (2 * m[p][q])
				t := math.Copysign(1/(math.Abs(theta)+math.Hypot(theta, 1)), theta)
				c := 1 / math.Hypot(t, 1)
				s := t * c
				for k := range 3 {
					m[k][p], m[k][q] = c*m[k][p]-s*m[k][q], s*m[k][p]+c*m[k][q]
				}
				for k := range 3 {
					m[p][k], m[q][k] = c*m[p][k]-s*m[q][k], s*m[p][k]+c*m[q][k]
					vectors[k][p], vectors[k][q] = c*vectors[k][p]-s*vectors[k][q], s*vectors[k][p]+c*vectors[k][q]
				}
			}
		}
	}
	return [3]float64{m[0][0], m[1][1], m[2][2]}, vectors
}

const skewedRotation = 0.05

// NearestRotation splits a matrix, row-major, into a scale and the rotation nearest
// to the rest. skew is the largest element of what keeps the rest from being one.
func NearestRotation(m [9]float64) (r [9]float64, scale, skew float64, err error) {
	d := Det3(m)
	scale = math.Cbrt(d)
	switch {
	case !Finite(d) || math.Abs(scale) < 1e-12:
		return r, 0, 0, errors.New("its first three columns are not a rotation")
	case d < 0:
		return r, 0, 0, errors.New("it mirrors: the determinant is negative")
	}
	for i := range m {
		r[i] = m[i] / scale
	}
	for i := range 3 {
		for j := range 3 {
			dot := r[i]*r[j] + r[3+i]*r[3+j] + r[6+i]*r[6+j]
			if i == j {
				dot--
			}
			skew = max(skew, math.Abs(dot))
		}
	}
	if !(skew <= skewedRotation) {
		return r, 0, 0, fmt.Errorf("its first three columns are off a rotation by %.2g", skew)
	}
	// Newton's iteration for the orthogonal factor (Higham 1986, "Computing the Polar Decomposition"): it squares the
	// error each time.
	for range 6 {
		inverse := InverseTransposed(r)
		for i := range r {
			r[i] = (r[i] + inverse[i]) / 2
		}
	}
	return r, scale, skew, nil
}

func Det3(m [9]float64) float64 {
	return m[0]*(m[4]*m[8]-m[5]*m[7]) - m[1]*(m[3]*m[8]-m[5]*m[6]) + m[2]*(m[3]*m[7]-m[4]*m[6])
}

// InverseTransposed gives the cofactors over the determinant.
func InverseTransposed(m [9]float64) [9]float64 {
	d := Det3(m)
	return [9]float64{
		(m[4]*m[8] - m[5]*m[7]) / d, (m[5]*m[6] - m[3]*m[8]) / d, (m[3]*m[7] - m[4]*m[6]) / d,
		(m[2]*m[7] - m[1]*m[8]) / d, (m[0]*m[8] - m[2]*m[6]) / d, (m[1]*m[6] - m[0]*m[7]) / d,
		(m[1]*m[5] - m[2]*m[4]) / d, (m[2]*m[3] - m[0]*m[5]) / d, (m[0]*m[4] - m[1]*m[3]) / d,
	}
}

// Product gives the row-major product of two 3x3 matrices: b first, then a.
func Product(a, b [9]float64) (m [9]float64) {
	for i := range 3 {
		for j := range 3 {
			m[3*i+j] = a[3*i]*b[j] + a[3*i+1]*b[3+j] + a[3*i+2]*b[6+j]
		}
	}
	return m
}

// RotationFromVector gives the row-major matrix of a rotation about an axis, by an angle that is the vector's length.
func RotationFromVector(v [3]float64) [9]float64 {
	angle := Length(v)
	sin, half := math.Sincos(angle / 2)
	share := 0.5 // sin(angle/2)/angle
	if angle > 0 {
		share = sin / angle
	}
	r, _ := RotationFromQuat([4]float64{half, share * v[0], share * v[1], share * v[2]})
	return r
}

// VectorFromRotation is the inverse of RotationFromVector, of length pi at most.
func VectorFromRotation(r [9]float64) [3]float64 {
	q := QuatFromRotation(r)
	v := [3]float64{q[1], q[2], q[3]}
	sin := Length(v)
	if sin == 0 {
		return [3]float64{}
	}
	angle := 2 * math.Atan2(sin, q[0])
	if angle > math.Pi {
		angle -= 2 * math.Pi
	}
	return Scale(v, angle/sin)
}

// QuatFromRotation returns the quaternion w, x, y, z of a rotation: the largest of four expressions, so that nothing is
// divided by little.
func QuatFromRotation(r [9]float64) [4]float64 {
	trace := r[0] + r[4] + r[8]
	best, at := trace, 0
	for i := range 3 {
		if r[4*i] > best {
			best, at = r[4*i], i+1
		}
	}
	var q [4]float64
	if at == 0 {
		q = [4]float64{1 + trace, r[7] - r[5], r[2] - r[6], r[3] - r[1]}
	} else {
		i := at - 1
		j, k := (i+1)%3, (i+2)%3
		q[0] = r[3*k+j] - r[3*j+k]
		q[1+i] = 1 + r[4*i] - r[4*j] - r[4*k]
		q[1+j] = r[3*i+j] + r[3*j+i]
		q[1+k] = r[3*i+k] + r[3*k+i]
	}
	length := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	for i := range q {
		q[i] /= length
	}
	return q
}
