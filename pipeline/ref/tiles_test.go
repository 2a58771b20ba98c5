package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// wildSplats returns needles, discs, huge and tiny splats in and around the view.
func wildSplats[T Real](n int, seed uint64) *Params[T] {
	r := rand.New(rand.NewPCG(seed, 1))
	p := NewParams[T](n, 0)
	for i := range n {
		for k := range 3 {
			p.Means[3*i+k] = T(3 * r.NormFloat64())
			p.LogScales[3*i+k] = T([]float64{-7, -4, -2, 0, 2}[r.IntN(5)] + 0.5*r.NormFloat64())
		}
		for k := range 4 {
			p.Quats[4*i+k] = T(r.NormFloat64())
		}
		p.LogitOpacities[i] = T(-1 + 3*r.NormFloat64())
	}
	return p
}

func tileView[T Real](fisheye bool) *View[T] {
	return &View[T]{
		R: [9]T{1, 0, 0, 0, 1, 0, 0, 0, 1}, T: [3]T{0.1, -0.2, 4}, Fx: 90, Fy: 110, Cx: 61.3, Cy: 40.2,
		Width: 123, Height: 83, Near: 0.01, Fisheye: fisheye,
	}
}

// TestTiles checks by brute force that every pixel where a splat's alpha reaches the threshold lies in a tile that
// count_tiles counts.
func TestTiles(t *testing.T) {
	for _, fisheye := range []bool{false, true} {
		t.Run("float64", func(t *testing.T) { checkTiles[float64](t, fisheye, 0) })
		// The conic of a needle is large against its sigma: rounding moves alpha, by the size of sigma's terms.
		t.Run("float32", func(t *testing.T) { checkTiles[float32](t, fisheye, 1e-6) })
	}
}

func checkTiles[T Real](t *testing.T, fisheye bool, slack float64) {
	v := tileView[T](fisheye)
	p := wildSplats[T](1500, 7)
	proj := Project(p, v)
	g := v.Grid()
	counted, needed := 0, 0
	for i := range p.N {
		if !proj.Visible(i) {
			continue
		}
		in := make([]bool, g.Tiles())
		eachRow(proj, uint32(i), g, func(row, x0, x1 int) {
			for x := x0; x < x1; x++ {
				in[row*g.Cols+x] = true
				counted++
			}
		})
		touched := make([]bool, g.Tiles())
		for at := range g.Tiles() * TileSize * TileSize {
			tile, k := at/(TileSize*TileSize), at%(TileSize*TileSize)
			x, y := tile%g.Cols*TileSize+k%TileSize, tile/g.Cols*TileSize+k/TileSize
			alpha, size := alphaAt(&proj.Splats[i], T(x)+0.5, T(y)+0.5)
			touched[tile] = touched[tile] || alpha >= AlphaThreshold
			if alpha*math.Exp(-slack*size) >= AlphaThreshold && !in[tile] {
				t.Fatalf("splat %d %+v: pixel %d, %d has alpha %g outside its tiles", i, proj.Splats[i], x, y, alpha)
			}
		}
		for _, b := range touched {
			if b {
				needed++
			}
		}
	}
	t.Logf("%d tiles counted, %d touched", counted, needed)
	if float64(counted) > 1.02*float64(needed)+10 {
		t.Errorf("%d tiles counted, only %d touched: the test is not tight", counted, needed)
	}
}

// alphaAt returns the alpha at a point and the sum of the magnitudes of sigma's terms.
func alphaAt[T Real](s *Projected[T], x, y T) (alpha, size float64) {
	dx, dy := s.Mean2D[0]-x, s.Mean2D[1]-y
	a, b, c := float64(s.Conic[0]*dx*dx), float64(s.Conic[1]*dx*dy), float64(s.Conic[2]*dy*dy)
	return float64(s.Opacity) * math.Exp(-(0.5*(a+c) + b)), 0.5*(a+c) + math.Abs(b)
}

// TestTileInterval also feeds numbers that no tile can hold.
func TestTileInterval(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		lo, hi     float64
		first, end int
	}{
		{0, 0.4, 0, 0}, {0, 0.5, 0, 1}, {15.5, 15.5, 0, 1}, {15.6, 16.4, 0, 0}, {15.5, 16.5, 0, 2}, {-inf, inf, 0, 4},
		{nan, nan, 0, 0},
		{-1e30, 1e30, 0, 4}, {63.5, 1e9, 3, 4}, {63.6, 1e9, 0, 0}, {-9, 0.4, 0, 0}, {inf, inf, 0, 0},
		{-inf, -inf, 0, 0},
	} {
		first, end := tileInterval(c.lo, c.hi, 4)
		if end-first != c.end-c.first || end > first && first != c.first {
			t.Errorf("[%g, %g]: tiles [%d, %d), want [%d, %d)", c.lo, c.hi, first, end, c.first, c.end)
		}
	}
}

// TestBands checks that bands change no bit of the picture and of the gradients.
func TestBands(t *testing.T) {
	v := tileView[float32](false)
	p := wildSplats[float32](300, 9)
	up := make([][4]float32, v.Width*v.Height)
	for i := range up {
		up[i] = [4]float32{1, 0.5, float32(i%7) - 3, 0.25}
	}
	proj, want := Render(p, v, 1)
	_, wantG := Backward(p, v, proj, up, 1)
	for _, bands := range []int{2, 3, 6, 11} {
		_, img := Render(p, v, bands)
		_, g := Backward(p, v, proj, up, bands)
		if r := PixelCompare(flat(img.Render), flat(want.Render), 4, 0); r.Worst != 0 {
			t.Errorf("%d bands: image differs: %v", bands, r)
		}
		got := g.Tensors()
		for k, tensor := range wantG.Tensors() {
			if PixelCompare(got[k].Data, tensor.Data, 1, 0).Worst != 0 {
				t.Errorf("%d bands: v_%s differs", bands, tensor.Name)
			}
		}
	}
}

func flat[T Real](x [][4]T) (y []T) {
	for _, c := range x {
		y = append(y, c[:]...)
	}
	return y
}
