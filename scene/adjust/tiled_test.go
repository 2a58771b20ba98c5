package adjust

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// positive returns a positive definite matrix of n rows, both triangles.
func positive(n int) []float64 {
	random := rand.New(rand.NewPCG(uint64(n), 1))
	a, data := make([]float64, n*n), make([]float64, n*n)
	for i := range a {
		a[i] = random.NormFloat64()
	}
	for i := range n {
		data[i*n+i] = 1
	}
	g := func(data []float64) blas64.General { return blas64.General{Rows: n, Cols: n, Stride: n, Data: data} }
	blas64.Gemm(blas.Trans, blas.NoTrans, 1/float64(n), g(a), g(a), 1, g(data))
	return data
}

// TestCholesky compares factors with LAPACK's, and those of one core with those of several.
func TestCholesky(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, tileSize - 1, tileSize, tileSize + 1, 3*tileSize + 7} {
		a := positive(n)
		want, _ := lapack64.Potrf(blas64.Symmetric{N: n, Stride: n, Uplo: blas.Upper, Data: slices.Clone(a)})
		var former []float64
		for _, cores := range []int{1, 5} {
			runtime.GOMAXPROCS(cores)
			got, ok := tiled{n, slices.Clone(a)}.cholesky()
			if !ok {
				t.Fatalf("%d rows: not positive definite", n)
			}
			for i := range n {
				for k := i; k < n; k++ {
					if d := math.Abs(got.Data[i*n+k] - want.Data[i*n+k]); !(d < 1e-12) {
						t.Fatalf("%d rows, %d cores: %g at %d, %d is off by %g", n, cores, got.Data[i*n+k], i, k, d)
					}
				}
			}
			if former != nil && !slices.Equal(former, got.Data) {
				t.Errorf("%d rows: one core and several disagree", n)
			}
			former = got.Data
		}
		a[(n-1)*n+n-1] = -1
		if _, ok := (tiled{n, a}).cholesky(); ok {
			t.Errorf("%d rows: a negative diagonal passes", n)
		}
	}
}

func BenchmarkCholesky(b *testing.B) {
	for _, n := range []int{150, 300, 880, denseVariables} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			a, m := positive(n), tiled{n, make([]float64, n*n)}
			for b.Loop() {
				copy(m.data, a)
				if _, ok := m.cholesky(); !ok {
					b.Fatal("not positive definite")
				}
			}
		})
		b.Run(strconv.Itoa(n)+"-lapack", func(b *testing.B) {
			a, m := positive(n), make([]float64, n*n)
			for b.Loop() {
				copy(m, a)
				lapack64.Potrf(blas64.Symmetric{N: n, Stride: n, Uplo: blas.Upper, Data: m})
			}
		})
	}
}
