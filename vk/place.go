package vk

import (
	"cmp"
	"math"
	"slices"
)

// lifetime describes one scratch buffer of a recorded list: its size and alignment in bytes, and the indices of the
// first and the last op that use it, both included. A buffer whose last is below its first is never used. A size or an
// alignment below 1 counts as 1.
type lifetime struct {
	size, align int64
	first, last int
}

// placement is where a buffer lies: byte off of a region.
type placement struct {
	region int
	off    int64
}

// place gives every buffer of l a place such that two buffers which are used at a common op share no byte, and returns
// the places, in the order of l, with the size of each region, the largest first, so that lists which share regions
// have large ones in common. Every buffer lies in one region. A region is at most regionMax bytes (any size where
// regionMax is not positive) unless it holds a buffer larger than that. The regions begin at an address that suits
// every alignment.
//
// Packing is NP-hard, so several greedy orders are tried and the one with the smallest sum of regions is taken, the
// earlier of equals. The result depends on the arguments alone.
func place(l []lifetime, regionMax int64) (at []placement, regions []int64) {
	if len(l) == 0 {
		return nil, nil
	}
	if regionMax <= 0 {
		regionMax = math.MaxInt64
	}
	l = slices.Clone(l)
	for i := range l {
		l[i].size, l[i].align = max(l[i].size, 1), max(l[i].align, 1)
	}
	bound, best := concurrent(l), int64(math.MaxInt64)
	for _, order := range placeOrders(l) {
		for _, tight := range [...]bool{false, true} {
			p := packer{l: l, limit: regionMax, tight: tight, at: make([]placement, len(l))}
			if total := p.run(order); at == nil || total < best {
				at, regions, best = p.at, p.sizes, total
			}
			if best <= bound {
				return largestFirst(at, regions)
			}
		}
	}
	return largestFirst(at, regions)
}

// largestFirst numbers regions by falling size.
func largestFirst(at []placement, regions []int64) ([]placement, []int64) {
	order := make([]int, len(regions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(regions[j], regions[i]) })
	sorted, number := make([]int64, len(regions)), make([]int, len(regions))
	for to, from := range order {
		sorted[to], number[from] = regions[from], to
	}
	for i := range at {
		at[i].region = number[at[i].region]
	}
	return at, sorted
}

// concurrent returns the largest sum of the sizes of buffers that are used at one op: no placement needs less.
func concurrent(l []lifetime) (bound int64) {
	for _, x := range l { // the sum can only rise where a buffer begins
		sum := int64(0)
		for _, y := range l {
			if y.first <= x.first && x.first <= y.last {
				sum = addClamped(sum, y.size)
			}
		}
		bound = max(bound, sum)
	}
	return bound
}

// placeOrders returns the orders, as permutations of l, in which place tries to place the buffers.
func placeOrders(l []lifetime) [][]int {
	span := func(x lifetime) int64 { return int64(x.last) - int64(x.first) }
	area := func(x lifetime) float64 { return float64(x.size) * float64(span(x)+1) }
	larger := func(x, y lifetime) int { return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(span(y), span(x))) }
	return [][]int{
		orderBy(l, larger),
		orderBy(l, func(x, y lifetime) int { return cmp.Or(cmp.Compare(area(y), area(x)), larger(x, y)) }),
		orderBy(l, func(x, y lifetime) int { return cmp.Or(cmp.Compare(span(y), span(x)), larger(x, y)) }),
		orderBy(l, func(x, y lifetime) int { return cmp.Or(cmp.Compare(x.first, y.first), larger(x, y)) }),
		orderBy(l, func(x, y lifetime) int { return cmp.Or(cmp.Compare(y.last, x.last), larger(x, y)) }),
	}
}

// orderBy returns the indices of l sorted by less, equal ones in the order of l.
func orderBy(l []lifetime, compare func(x, y lifetime) int) []int {
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(l[i], l[j]) })
	return order
}

// packer places buffers one after the other.
type packer struct {
	l     []lifetime
	limit int64 // of a region, in bytes
	tight bool  // the tightest gap instead of the lowest
	at    []placement
	in    [][]int // buffers placed so far, per region, by rising offset
	sizes []int64 // of the regions
	caps  []int64 // of the regions: limit, or the size of the larger buffer that opened it
}

// run places all buffers in the given order and returns the sum of the regions.
func (p *packer) run(order []int) (total int64) {
	for _, i := range order {
		p.put(i)
	}
	for _, s := range p.sizes {
		total = addClamped(total, s)
	}
	return total
}

// put places buffer i where the regions grow least, and in a new region only where none has room: few regions are worth
// more than the bytes that alignment loses.
func (p *packer) put(i int) {
	size := p.l[i].size
	best, off, cost := -1, int64(0), gapCost{math.MaxInt64, math.MaxInt64}
	for r := range p.in {
		if o, c, ok := p.gap(i, r); ok && c.less(cost) {
			best, off, cost = r, o, c
		}
	}
	if best < 0 {
		best, off = len(p.in), 0
		p.in, p.sizes, p.caps = append(p.in, nil), append(p.sizes, 0), append(p.caps, max(p.limit, size))
	}
	p.at[i] = placement{best, off}
	p.sizes[best] = max(p.sizes[best], off+size)
	k, _ := slices.BinarySearchFunc(p.in[best], off, func(j int, o int64) int { return cmp.Compare(p.at[j].off, o) })
	p.in[best] = slices.Insert(p.in[best], k, i)
}

// gapCost orders the gaps that a buffer may go to: first by the bytes by which the region grows, then by the bytes left
// over in the gap.
type gapCost struct{ growth, left int64 }

func (c gapCost) less(d gapCost) bool {
	return c.growth < d.growth || c.growth == d.growth && c.left < d.left
}

// gap returns the best place for buffer i in region r among the bytes that no buffer used at the same time holds.
func (p *packer) gap(i, r int) (off int64, cost gapCost, ok bool) {
	x := p.l[i]
	free := int64(0) // first byte after the buffers seen so far
	consider := func(end int64) {
		o, fits := roundUp(free, x.align)
		if !fits || o > p.caps[r]-x.size || o+x.size > end {
			return
		}
		c := gapCost{growth: max(0, o+x.size-p.sizes[r])}
		if p.tight {
			c.left = min(end, max(p.sizes[r], o+x.size)) - o - x.size
		}
		if !ok || c.less(cost) {
			off, cost, ok = o, c, true
		}
	}
	for _, j := range p.in[r] {
		if y := p.l[j]; meet(x, y) {
			consider(p.at[j].off)
			free = max(free, p.at[j].off+y.size)
		}
	}
	consider(math.MaxInt64)
	return off, cost, ok
}

// meet reports whether x and y are used at a common op. A buffer that is never used meets none.
func meet(x, y lifetime) bool {
	return max(x.first, y.first) <= min(x.last, y.last) // also false where one of the two is empty
}

// roundUp returns the first multiple of align at or after n; ok is false where that is no int64.
func roundUp(n, align int64) (up int64, ok bool) {
	rest := n % align
	if rest == 0 {
		return n, true
	}
	return n + (align - rest), n <= math.MaxInt64-(align-rest)
}
