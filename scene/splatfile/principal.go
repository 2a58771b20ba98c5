package splatfile

import "math"

// principalAxes gives an orthonormal basis of the rows' space, [width][width], in which the first coordinates have most
// of the variance: the eigenvectors of the covariance of the rows, largest eigenvalue first. Distances are the same in
// it, and most of them is known after a few coordinates.
func principalAxes(rows []float32, width int) [][]float32 {
	n := len(rows) / width
	mean := make([]float64, width)
	for i, x := range rows {
		mean[i%width] += float64(x)
	}
	for j := range mean {
		mean[j] /= float64(max(n, 1))
	}
	covariance := make([][]float64, width)
	for j := range covariance {
		covariance[j] = make([]float64, width)
	}
	centred := make([]float64, width)
	for i := range n {
		for j := range centred {
			centred[j] = float64(rows[i*width+j]) - mean[j]
		}
		for j, x := range centred {
			for k, y := range centred[:j+1] {
				covariance[j][k] += x * y
			}
		}
	}
	for j := range covariance {
		for k := range j {
			covariance[k][j] = covariance[j][k]
		}
	}
	return eigenvectors(covariance)
}

// jacobiSweeps is how often each pair of axes is turned; a symmetric matrix of this size is diagonal to the last digits
// after less.
const jacobiSweeps = 12

// eigenvectors of a symmetric matrix, which is overwritten, by Jacobi's method: rows, largest eigenvalue first.
func eigenvectors(a [][]float64) [][]float32 {
	n := len(a)
	v := make([][]float64, n)
	for i := range v {
		v[i] = make([]float64, n)
		v[i][i] = 1
	}
	for range jacobiSweeps {
		for p := range n {
			for q := p + 1; q < n; q++ {
				jacobiTurn(a, v, p, q)
			}
		}
	}
	out := make([][]float32, n)
	done := make([]bool, n)
	for i := range out {
		best := -1
		for j := range n {
			if !done[j] && (best < 0 || a[j][j] > a[best][best]) {
				best = j
			}
		}
		done[best] = true
		out[i] = make([]float32, n)
		for j, x := range v[best] {
			out[i][j] = float32(x)
		}
	}
	return out
}

// jacobiTurn turns axes p and q so that a[p][q] is 0, and the rows of v with them.
func jacobiTurn(a, v [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := math.Copysign(1/(math.Abs(theta)+math.Sqrt(theta*theta+1)), theta)
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		x, y := a[k][p], a[k][q]
		a[k][p], a[k][q] = c*x-s*y, s*x+c*y
	}
	turn := func(x, y []float64) {
		for k := range x {
			x[k], y[k] = c*x[k]-s*y[k], s*x[k]+c*y[k]
		}
	}
	turn(a[p], a[q])
	turn(v[p], v[q])
}
