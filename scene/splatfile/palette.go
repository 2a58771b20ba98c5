package splatfile

import (
	"math"

	"vksplat/internal/parallel"
)

var inf32 = float32(math.Inf(1))

// paletteIterations is how often all points choose their entry and all entries move to the mean of their points, where
// nothing else is asked for.
const paletteIterations = 10

// palette is a codebook: every row of spherical harmonics of a model is near one of its rows.
type palette struct {
	width int
	axes  [][]float32 // the basis in which distances are taken, see principalAxes
	tree  *paletteTree
	graph *paletteGraph
}

// principalRows is how many rows tell the basis.
const principalRows = 1 << 16

// trainPalette finds a palette of k entries at most for rows [n*width], n > 0, so that the sum of squared distances is
// small: a tree of cells, then Lloyd's iterations in which points look for a nearer entry around that they have (Wang
// et al. 2012, "Fast Approximate k-Means via Cluster Closures", is the like). All sums go in the order of the rows, so
// that the number of cores shows nowhere.
func trainPalette(rows []float32, width, k, iterations int) *palette {
	n := len(rows) / width
	some := rows
	if n > principalRows {
		some = make([]float32, 0, principalRows*width)
		for i := range principalRows {
			at := int(int64(i) * int64(n) / principalRows)
			some = append(some, rows[at*width:(at+1)*width]...)
		}
	}
	p := &palette{width: width, axes: principalAxes(some, width)}
	stride := p.stride()
	points := make([]float32, n*stride)
	inPaletteBlocks(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p.turn(points[i*stride:(i+1)*stride], rows[i*width:(i+1)*width])
		}
	})
	p.tree = growTree(points, stride, k)
	p.graph = &paletteGraph{stride: stride, entries: make([]float32, p.tree.leaves*stride)}
	labels := make([]int32, n)
	inPaletteBlocks(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			labels[i] = p.tree.leaf(0, points[i*stride:(i+1)*stride], nil)
		}
	})
	p.graph.move(points, labels)
	p.graph.connect()
	p.graph.settle()
	for range iterations {
		p.assign(points, labels)
		p.graph.move(points, labels)
		p.graph.round()
	}
	return p
}

// stride is the length of rows in the basis: padded with zeros for squaredDistance.
func (p *palette) stride() int { return (p.width + 7) &^ 7 }

// turn brings a row into the basis.
func (p *palette) turn(to, row []float32) {
	for j, axis := range p.axes {
		sum := float32(0)
		for i, x := range row {
			sum += axis[i] * x
		}
		to[j] = sum
	}
}

// rows gives the entries as they were before they were turned, [k*width].
func (p *palette) rows() []float32 {
	k, stride := p.graph.k(), p.stride()
	out := make([]float32, k*p.width)
	inPaletteBlocks(k, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := out[i*p.width : (i+1)*p.width]
			for j, axis := range p.axes {
				x := p.graph.entries[i*stride+j]
				for c, a := range axis {
					row[c] += a * x
				}
			}
		}
	})
	return out
}

// replace puts other rows in the entries' place, [k*width], which are near those that were there.
func (p *palette) replace(rows []float32) {
	stride := p.stride()
	inPaletteBlocks(p.graph.k(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p.turn(p.graph.entries[i*stride:(i+1)*stride], rows[i*p.width:(i+1)*p.width])
		}
	})
	p.graph.round()
}

// labels finds entries for rows, which lie pitch numbers apart.
func (p *palette) labels(to []uint16, rows []float32, pitch int) {
	inPaletteBlocks(len(to), func(lo, hi int) {
		point := make([]float32, p.stride())
		for i := lo; i < hi; i++ {
			p.turn(point, rows[i*pitch:][:p.width])
			starts := p.tree.cells(point)
			best, _ := p.graph.nearest(point, starts[:]...)
			to[i] = uint16(best)
		}
	})
}

// assign lets every point walk from its entry, and those of the cells around, to the nearest.
func (p *palette) assign(points []float32, labels []int32) {
	stride := p.stride()
	inPaletteBlocks(len(labels), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			point := points[i*stride : (i+1)*stride]
			starts := p.tree.cells(point)
			labels[i], _ = p.graph.nearest(point, labels[i], starts[0], starts[1], starts[2], starts[3])
		}
	})
}

// move puts every entry at the mean of its points; an entry without points stays.
func (g *paletteGraph) move(points []float32, labels []int32) {
	k := g.k()
	ends := make([]int32, k+1)
	for _, label := range labels {
		ends[label+1]++
	}
	for i := range k {
		ends[i+1] += ends[i]
	}
	starts := append([]int32{}, ends[:k]...)
	members := make([]int32, len(labels))
	for i, label := range labels {
		members[starts[label]] = int32(i)
		starts[label]++
	}
	inPaletteBlocks(k, func(lo, hi int) {
		sum := make([]float64, g.stride)
		for i := lo; i < hi; i++ {
			own := members[ends[i]:ends[i+1]]
			if len(own) == 0 {
				continue
			}
			clear(sum)
			for _, m := range own {
				for j, x := range points[g.stride*int(m):][:g.stride] {
					sum[j] += float64(x)
				}
			}
			for j, x := range sum {
				g.entries[i*g.stride+j] = float32(x / float64(len(own)))
			}
		}
	})
}

// inPaletteBlocks calls f for parts of n entries or points on all cores.
func inPaletteBlocks(n int, f func(lo, hi int)) {
	parallel.For((n+paletteBlock-1)/paletteBlock,
		func(block int) { f(block*paletteBlock, min((block+1)*paletteBlock, n)) })
}
