package splatfile

import "math"

// codebookSize is how many values a codebook has, for numbers that are stored in a byte.
const codebookSize = 256

// Numbers are counted by the leading histogramBits bits of their place among all float32 numbers: bins are as wide as
// 2^-11 of what is in them, however far numbers reach. maxCells is how many bins, at most, the search for a codebook
// looks at.
const (
	histogramBits = 20
	maxCells      = 1 << 14
)

// histogram counts numbers. Memory: 16 MiB, whatever their number.
type histogram struct {
	count []float64 // [1<<histogramBits]
	sum   []float64
}

func newHistogram() *histogram {
	return &histogram{make([]float64, 1<<histogramBits), make([]float64, 1<<histogramBits)}
}

// add counts finite numbers.
func (h *histogram) add(values ...float32) {
	for _, x := range values {
		bin := ascending(x) >> (32 - histogramBits)
		h.count[bin]++
		h.sum[bin] += float64(x)
	}
}

// codebook gives codebookSize ascending values such that the squared distance of all numbers to their nearest is least,
// up to the width of bins. Unused values at the end repeat the last.
func (h *histogram) codebook() []float32 {
	cells := h.cells()
	out := make([]float32, codebookSize)
	if len(cells.weight) == 0 {
		return out
	}
	ends := cells.partition(min(codebookSize, len(cells.weight)))
	at := 0
	for i := range out {
		if i >= len(ends) {
			out[i] = out[i-1]
			continue
		}
		weight, sum := 0.0, 0.0
		for ; at < ends[i]; at++ {
			weight += cells.weight[at]
			sum += cells.weight[at] * cells.value[at]
		}
		out[i] = float32(sum / weight)
	}
	return out
}

// cells are weighted values in ascending order, with sums up to each for the cost of an interval.
type cells struct {
	value, weight       []float64
	before, sum, square []float64 // [cells+1] of weight, weight*value, weight*value^2, with values less the median
}

// cells gives the bins that hold numbers, neighbours together where they are too many.
func (h *histogram) cells() *cells {
	used := 0
	for _, n := range h.count {
		if n > 0 {
			used++
		}
	}
	together := max(1, (used+maxCells-1)/maxCells)
	c := &cells{}
	seen := 0
	for bin, n := range h.count {
		if n == 0 {
			continue
		}
		if seen%together == 0 {
			c.value, c.weight = append(c.value, 0), append(c.weight, 0)
		}
		last := len(c.value) - 1
		c.value[last] += h.sum[bin]
		c.weight[last] += n
		seen++
	}
	for i := range c.value {
		c.value[i] /= c.weight[i]
	}
	c.sums()
	return c
}

// sums adds up from the median outwards, so that a few numbers far away do not take the digits of those in the middle.
func (c *cells) sums() {
	n := len(c.value)
	c.before, c.sum, c.square = make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	total, half := 0.0, 0.0
	for _, w := range c.weight {
		total += w
	}
	median := 0
	for ; median < n && half+c.weight[median] <= total/2; median++ {
		half += c.weight[median]
	}
	extend := func(i int, sign float64, from, to int) {
		x, w := c.value[i]-c.value[median], sign*c.weight[i]
		c.before[to], c.sum[to], c.square[to] = c.before[from]+w, c.sum[from]+w*x, c.square[from]+w*x*x
	}
	for i := median; i < n; i++ {
		extend(i, 1, i, i+1)
	}
	for i := median - 1; i >= 0; i-- {
		extend(i, -1, i+1, i)
	}
}

// cost is the squared distance of cells lo to hi-1 to their mean.
func (c *cells) cost(lo, hi int) float64 {
	w, s := c.before[hi]-c.before[lo], c.sum[hi]-c.sum[lo]
	return max(c.square[hi]-c.square[lo]-s*s/w, 0)
}

// partition cuts cells into k intervals of least total cost and gives their ends: dynamic programming over the number
// of intervals, where the best last cut moves one way only, so that halves of a row bound each other (Grønlund et al.
// 2017, "Fast Exact k-Means, k-Medians and Bregman Divergence Clustering in 1D").
func (c *cells) partition(k int) []int {
	n := len(c.value)
	best, next := make([]float64, n+1), make([]float64, n+1)
	for hi := 1; hi <= n; hi++ {
		best[hi] = c.cost(0, hi)
	}
	cuts := make([][]int32, k)
	for row := 1; row < k; row++ {
		cuts[row] = make([]int32, n+1)
		c.row(best, next, cuts[row], row, row+1, n, row, n-1)
		best, next = next, best
	}
	ends := make([]int, k)
	for row, hi := k-1, n; row >= 0; row-- {
		ends[row] = hi
		if row > 0 {
			hi = int(cuts[row][hi])
		}
	}
	return ends
}

// row finds the least cost of row+1 intervals over the first lo to hi cells, whose last interval begins at a cell from
// first to last.
func (c *cells) row(before, now []float64, cut []int32, row, lo, hi, first, last int) {
	if lo > hi {
		return
	}
	middle := (lo + hi) / 2
	now[middle] = math.Inf(1)
	for at := first; at <= min(last, middle-1); at++ {
		if cost := before[at] + c.cost(at, middle); cost < now[middle] {
			now[middle], cut[middle] = cost, int32(at)
		}
	}
	at := int(cut[middle])
	c.row(before, now, cut, row, lo, middle-1, first, at)
	c.row(before, now, cut, row, middle+1, hi, at, last)
}

// coder finds the nearest value of a codebook.
type coder [codebookSize - 1]float32 // the middles between neighbours

func newCoder(codebook []float32) *coder {
	c := new(coder)
	for i := range c {
		c[i] = float32((float64(codebook[i]) + float64(codebook[i+1])) / 2)
	}
	return c
}

// code gives the first of the nearest values' numbers.
func (c *coder) code(x float32) uint8 {
	lo := 0
	for step := codebookSize / 2; step > 0; step /= 2 {
		if x > c[lo+step-1] {
			lo += step
		}
	}
	return uint8(lo)
}
