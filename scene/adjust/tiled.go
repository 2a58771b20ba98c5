package adjust

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"vksplat/internal/parallel"
)

// tileSize is how many variables a tile has: the most for which gonum multiplies on one core.
const tileSize = 64

// tiled is a symmetric matrix of n rows, of which data has the upper triangle, worked on in tiles.
type tiled struct {
	n    int
	data []float64 // [n*n]
}

// tile returns the tile in a row and a column of tiles.
func (m tiled) tile(row, col int) blas64.General {
	row, col = row*tileSize, col*tileSize
	return blas64.General{Rows: min(tileSize, m.n-row), Cols: min(tileSize, m.n-col), Stride: m.n,
		Data: m.data[row*m.n+col:]}
}

// factorise is cholesky of a tile on the diagonal.
func (m tiled) factorise(k int) (u blas64.Triangular, ok bool) {
	t := m.tile(k, k)
	return lapack64.Potrf(blas64.Symmetric{N: t.Rows, Stride: t.Stride, Uplo: blas.Upper, Data: t.Data})
}

// cholesky replaces the matrix by the upper triangular U for which U'U is the matrix. What is below the diagonal loses
// its values. ok is false if the matrix is not positive definite. Each tile is summed in one order, whatever the number
// of cores. (lapack64.Potrf uses one core but for a part of its products.)
func (m tiled) cholesky() (u blas64.Triangular, ok bool) {
	next, ok := m.factorise(0)
	tiles := (m.n + tileSize - 1) / tileSize
	for k := 0; ok && k+1 < tiles; k++ {
		factor, rest := next, tiles-k-1
		parallel.For(rest, func(i int) {
			blas64.Trsm(blas.Left, blas.Trans, 1, factor, m.tile(k, k+1+i))
		})
		parallel.For(rest*rest, func(i int) {
			row, col := k+1+i/rest, k+1+i%rest
			if row <= col {
				blas64.Gemm(blas.Trans, blas.NoTrans, -1, m.tile(k, row), m.tile(k, col), 1, m.tile(row, col))
			}
			if i == 0 { // while others multiply
				next, ok = m.factorise(k + 1)
			}
		})
	}
	return blas64.Triangular{N: m.n, Stride: m.n, Uplo: blas.Upper, Diag: blas.NonUnit, Data: m.data}, ok
}
