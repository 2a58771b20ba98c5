package splatfile

import (
	"math"
	"testing"

	"vksplat/scene"
)

// paletteRows are the spherical harmonics of made-up splats, without degree 0.
func paletteRows(n, degree int) (rows []float32, width int) {
	s := shinySplats(n, degree)
	width = 3 * (s.K() - 1)
	for i := range n {
		rows = append(rows, s.SH[(width+3)*i+3:(width+3)*(i+1)]...)
	}
	return rows, width
}

// The palette against one of Lloyd's algorithm with exact assignment, and its own entries against the exactly nearest.
func TestPaletteAgainstExact(t *testing.T) {
	const n, k = 6000, 512
	for degree := 1; degree <= scene.MaxSHDegree; degree++ {
		rows, width := paletteRows(n, degree)
		p := trainPalette(rows, width, k, paletteIterations)
		labels := make([]uint16, n)
		p.labels(labels, rows, width)
		points := make([]float32, n*p.stride())
		for i := range n {
			p.turn(points[i*p.stride():], rows[i*width:(i+1)*width])
		}
		found, exact := 0.0, 0.0
		for i := range n {
			point := points[i*p.stride() : (i+1)*p.stride()]
			found += float64(squaredDistance(point, p.graph.entry(int32(labels[i])), inf32))
			_, d := exactNearest(p.graph, point)
			exact += float64(d)
		}
		if found > 1.02*exact {
			t.Errorf("degree %d: squared error %v, %v with the exactly nearest entries", degree, found, exact)
		}
		if lloyd := lloydError(points, p.stride(), k); found > 1.02*lloyd {
			t.Errorf("degree %d: squared error %v, Lloyd's algorithm gets %v", degree, found, lloyd)
		}
		t.Logf("degree %d: squared error %.4g, %.4g with the exactly nearest entries", degree, found, exact)
	}
}

func exactNearest(g *paletteGraph, point []float32) (best int32, least float32) {
	least = inf32
	for j := range int32(g.k()) {
		if d := squaredDistance(point, g.entry(j), least); d < least {
			best, least = j, d
		}
	}
	return best, least
}

// lloydError is what ten of Lloyd's iterations get from every so many-th point.
func lloydError(points []float32, stride, k int) (sum float64) {
	n := len(points) / stride
	g := &paletteGraph{stride: stride}
	for j := range k {
		at := j * n / k * stride
		g.entries = append(g.entries, points[at:at+stride]...)
	}
	labels := make([]int32, n)
	for range paletteIterations {
		sum = 0
		for i := range labels {
			var d float32
			labels[i], d = exactNearest(g, points[i*stride:(i+1)*stride])
			sum += float64(d)
		}
		g.move(points, labels)
	}
	return sum
}

// The basis is orthonormal and its first axes have the largest variance.
func TestPrincipalAxes(t *testing.T) {
	rows, width := paletteRows(2000, 2)
	axes := principalAxes(rows, width)
	before := math.Inf(1)
	for i, a := range axes {
		for j, b := range axes[:i+1] {
			dot := 0.0
			for c := range a {
				dot += float64(a[c]) * float64(b[c])
			}
			if want := map[bool]float64{true: 1}[i == j]; math.Abs(dot-want) > 1e-5 {
				t.Fatalf("axes %d and %d: %v, want %v", i, j, dot, want)
			}
		}
		sum, square := 0.0, 0.0
		for at := 0; at < len(rows); at += width {
			x := 0.0
			for c := range a {
				x += float64(a[c]) * float64(rows[at+c])
			}
			sum += x
			square += x * x
		}
		variance := square - sum*sum/2000
		if variance > before*(1+1e-4) {
			t.Errorf("axis %d has variance %v, the one before %v", i, variance, before)
		}
		before = variance
	}
}
