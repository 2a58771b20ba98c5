package adjust

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

const (
	// denseVariables is up to how many variables the reduced system is factorised: 250 photos, 18 MB and a tenth of
	// a second.
	denseVariables = 1500
	// Conjugate gradients end when the residual has gradientShare left, or after gradientSteps.
	gradientShare = 1e-3
	gradientSteps = 300
)

// solve solves the reduced system. ok is false if it is not positive definite: more damping is needed.
func (y *system) solve() (step []float64, ok bool) {
	solve, ok := y.solver()
	if !ok {
		return nil, false
	}
	return solve(y.rhs)
}

// solver returns what solves the reduced system for right-hand sides.
func (y *system) solver() (solve func(rhs []float64) (x []float64, ok bool), ok bool) {
	switch n := len(y.rhs); {
	case n == 0: // points alone move
		return func([]float64) ([]float64, bool) { return nil, true }, true
	case n > denseVariables:
		return y.gradients, true
	}
	factor, ok := y.factorise()
	return func(rhs []float64) ([]float64, bool) {
		x := slices.Clone(rhs)
		lapack64.Potrs(factor, blas64.General{Rows: len(x), Cols: 1, Stride: 1, Data: x})
		return x, geom.Finite(x...)
	}, ok
}

// factorise returns the Cholesky factor of the reduced system.
func (y *system) factorise() (blas64.Triangular, bool) {
	n := len(y.rhs)
	m := tiled{n, make([]float64, n*n)}
	for a := range y.columns {
		at, rows := 0, y.dims(a)
		for _, b := range y.columns[a] {
			cols := y.dims(int(b))
			for i := range rows {
				to := (y.offset[a]+i)*n + y.offset[b]
				copy(m.data[to:to+cols], y.blocks[a][at+i*cols:at+(i+1)*cols])
			}
			at += rows * cols
		}
	}
	return m.cholesky()
}

// gradients solves the reduced system by conjugate gradients, preconditioned by the inverse of its diagonal blocks.
func (y *system) gradients(rhs []float64) (x []float64, ok bool) {
	n := len(rhs)
	factors, ok := y.preconditioner()
	if !ok {
		return nil, false
	}
	x = make([]float64, n)
	r, z, product := append([]float64(nil), rhs...), make([]float64, n), make([]float64, n)
	y.precondition(factors, r, z)
	direction := append([]float64(nil), z...)
	rz := dot(r, z)
	goal := gradientShare * gradientShare * rz
	for range gradientSteps {
		if rz <= goal {
			break
		}
		y.times(direction, product)
		curvature := dot(direction, product)
		if !(curvature > 0) {
			return nil, false
		}
		alpha := rz / curvature
		for i := range x {
			x[i] += alpha * direction[i]
			r[i] -= alpha * product[i]
		}
		y.precondition(factors, r, z)
		next := dot(r, z)
		for i := range direction {
			direction[i] = z[i] + next/rz*direction[i]
		}
		rz = next
	}
	return x, !math.IsNaN(rz)
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// preconditioner factorises the diagonal blocks.
func (y *system) preconditioner() ([]*mat.Cholesky, bool) {
	list := make([]*mat.Cholesky, len(y.columns))
	failed := make([]bool, len(list))
	parallel.For(len(list), func(a int) {
		if n := y.dims(a); n > 0 {
			list[a] = &mat.Cholesky{}
			failed[a] = !list[a].Factorize(mat.NewSymDense(n, append([]float64(nil), y.blocks[a][:n*n]...)))
		}
	})
	for _, f := range failed {
		if f {
			return nil, false
		}
	}
	return list, true
}

func (y *system) precondition(factors []*mat.Cholesky, r, z []float64) {
	parallel.For(len(factors), func(a int) {
		if from, to := y.offset[a], y.offset[a+1]; from < to {
			// the factor exists, so the solution does
			_ = factors[a].SolveVecTo(mat.NewVecDense(to-from, z[from:to]), mat.NewVecDense(to-from, r[from:to]))
		}
	})
}

// times multiplies by the reduced system, of which blocks has the upper triangle.
func (y *system) times(x, product []float64) {
	parallel.For(len(y.columns), func(a int) {
		rows := y.dims(a)
		if rows == 0 {
			return
		}
		out := product[y.offset[a]:y.offset[a+1]]
		clear(out)
		for _, e := range y.before[a] {
			b := int(e.row)
			multiply(blas.Trans, y.dims(b), rows, y.blocks[b][e.at:], x[y.offset[b]:y.offset[b+1]], out)
		}
		at := 0
		for _, b := range y.columns[a] {
			cols := y.dims(int(b))
			multiply(blas.NoTrans, rows, cols, y.blocks[a][at:], x[y.offset[b]:y.offset[b+1]], out)
			at += rows * cols
		}
	})
}

// multiply adds the product of a block, or its transpose, and x to out.
func multiply(t blas.Transpose, rows, cols int, block, x, out []float64) {
	blas64.Gemv(t, 1, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: block[:rows*cols]},
		blas64.Vector{N: len(x), Inc: 1, Data: x}, 1, blas64.Vector{N: len(out), Inc: 1, Data: out})
}
