package splatfile

import (
	"slices"
	"sync/atomic"

	"vksplat/internal/parallel"
	"vksplat/internal/philox"
)

// nearEntries is how many near entries are known of each entry of a palette.
const nearEntries = 16

// streamPalette is the third word of the counter of Philox for palettes.
const streamPalette = 0x10010

// paletteBlock is how many entries or points a core works on at a time.
const paletteBlock = 1 << 11

// paletteGraph holds the entries of a palette and which are near which.
type paletteGraph struct {
	stride   int
	entries  []float32 // [k*stride]
	near     []int32   // [k*degree] nearest first
	distance []float32 // [k*degree] their squared distances when they were last looked at
	degree   int
}

func (g *paletteGraph) k() int { return len(g.entries) / g.stride }

func (g *paletteGraph) entry(i int32) []float32 {
	return g.entries[g.stride*int(i):][:g.stride:g.stride]
}

// squaredDistance is the squared distance of two rows, whose length is a multiple of 8, or some number from limit on if
// it is not less.
func squaredDistance(a, b []float32, limit float32) float32 {
	sum := float32(0)
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		d0, d1, d2, d3 := x[0]-y[0], x[1]-y[1], x[2]-y[2], x[3]-y[3]
		d4, d5, d6, d7 := x[4]-y[4], x[5]-y[5], x[6]-y[6], x[7]-y[7]
		sum += (d0*d0 + d1*d1) + (d2*d2 + d3*d3) + ((d4*d4 + d5*d5) + (d6*d6 + d7*d7))
		if sum >= limit {
			return sum
		}
		a, b = a[8:], b[8:]
	}
	return sum
}

// connect starts from the neighbours in the tree and some entries at random, which the rounds replace.
func (g *paletteGraph) connect() {
	k := g.k()
	g.degree = min(nearEntries, k-1)
	g.near, g.distance = make([]int32, k*g.degree), make([]float32, k*g.degree)
	parallel.For((k+paletteBlock-1)/paletteBlock, func(block int) {
		seen := newMarks(k)
		for i := block * paletteBlock; i < min((block+1)*paletteBlock, k); i++ {
			seen.next(int32(i))
			list := g.list(i)
			for step := 1; list.n < g.degree && step <= nearEntries/4; step++ {
				g.offer(&list, seen, int32(i), int32((i+step)%k))
				g.offer(&list, seen, int32(i), int32((i+k-step)%k))
			}
			for draw := uint32(0); list.n < g.degree; draw++ {
				random := philox.Block([4]uint32{uint32(i), draw, streamPalette, 0}, philox.Key(0))
				for _, r := range random {
					if list.n < g.degree {
						g.offer(&list, seen, int32(i), int32(uint64(r)*uint64(k)>>32))
					}
				}
			}
		}
	})
}

// Rounds of connect's lists: until one entry in graphSettled gets a nearer neighbour, graphRounds at most.
const (
	graphRounds  = 12
	graphSettled = 50
)

// settle runs rounds until they find little.
func (g *paletteGraph) settle() {
	for round := 0; round < graphRounds && g.round() > g.k()/graphSettled; round++ {
	}
}

// round looks for nearer neighbours among the neighbours of neighbours, both ways, of all entries at once (Dong et al.
// 2011, "Efficient K-Nearest Neighbor Graph Construction for Generic Similarity Measures"), and tells how many entries
// got one.
func (g *paletteGraph) round() int {
	k := g.k()
	old := *g
	reverse, count := old.reverse()
	g.near, g.distance = make([]int32, len(old.near)), make([]float32, len(old.near))
	var better atomic.Int64
	parallel.For((k+paletteBlock-1)/paletteBlock, func(block int) {
		seen := newMarks(k)
		for i := block * paletteBlock; i < min((block+1)*paletteBlock, k); i++ {
			seen.next(int32(i))
			list := g.list(i)
			own := old.near[i*g.degree : (i+1)*g.degree]
			for _, j := range own {
				g.offer(&list, seen, int32(i), j)
			}
			was := list.sum()
			for _, group := range [2][]int32{own, reverse[i*g.degree:][:count[i]]} {
				for _, j := range group {
					g.offer(&list, seen, int32(i), j)
					for _, second := range old.near[int(j)*g.degree : (int(j)+1)*g.degree] {
						g.offer(&list, seen, int32(i), second)
					}
				}
			}
			if list.sum() < was {
				better.Add(1)
			}
		}
	})
	return int(better.Load())
}

// reverse lists, for each entry, entries that have it in their list: as many as a list has, at most.
func (g *paletteGraph) reverse() (from, count []int32) {
	from, count = make([]int32, len(g.near)), make([]int32, g.k())
	for at, j := range g.near {
		if int(count[j]) < g.degree {
			from[int(j)*g.degree+int(count[j])] = int32(at / g.degree)
			count[j]++
		}
	}
	return from, count
}

// nearList is a list while it is filled.
type nearList struct {
	ids       []int32
	distances []float32
	n         int
}

func (g *paletteGraph) list(i int) nearList {
	return nearList{g.near[i*g.degree : (i+1)*g.degree], g.distance[i*g.degree : (i+1)*g.degree], 0}
}

func (l *nearList) sum() (sum float64) {
	for _, d := range l.distances[:l.n] {
		sum += float64(d)
	}
	return sum
}

// offer puts entry j into the list of entry i if it is near enough and not there.
func (g *paletteGraph) offer(l *nearList, seen *marks, i, j int32) {
	if !seen.add(j) {
		return
	}
	limit := inf32
	if l.n == len(l.ids) {
		limit = l.distances[l.n-1]
	}
	d := squaredDistance(g.entry(i), g.entry(j), limit)
	if d >= limit && l.n == len(l.ids) {
		return
	}
	at := min(l.n, len(l.ids)-1)
	l.n = at + 1
	for ; at > 0 && l.distances[at-1] > d; at-- {
		l.ids[at], l.distances[at] = l.ids[at-1], l.distances[at-1]
	}
	l.ids[at], l.distances[at] = j, d
}

// beamEntries is how many entries a walk keeps in sight.
const beamEntries = 2

// beam holds the nearest entries of a point that are known, nearest first.
type beam struct {
	ids       [beamEntries]int32
	distances [beamEntries]float32
	done      [beamEntries]bool // its neighbours have been looked at
	n         int
}

// offer puts entry j in if it is near enough, and tells where.
func (b *beam) offer(g *paletteGraph, point []float32, j int32) (at int, in bool) {
	limit := inf32
	if b.n == beamEntries {
		limit = b.distances[beamEntries-1]
	}
	d := squaredDistance(point, g.entry(j), limit)
	// a NaN, of numbers whose squares are too large, is no distance
	if !(d < limit) || slices.Contains(b.ids[:b.n], j) {
		return 0, false
	}
	at = min(b.n, beamEntries-1)
	b.n = at + 1
	for ; at > 0 && b.distances[at-1] > d; at-- {
		b.ids[at], b.distances[at], b.done[at] = b.ids[at-1], b.distances[at-1], b.done[at-1]
	}
	b.ids[at], b.distances[at], b.done[at] = j, d, false
	return at, true
}

// nearest walks from some entries to the nearest of a point that it finds: to the neighbours of the nearest seen so
// far, as long as they get nearer.
func (g *paletteGraph) nearest(point []float32, starts ...int32) (int32, float32) {
	var b beam
	for _, j := range starts {
		b.offer(g, point, j)
	}
	for at := 0; at < b.n; {
		if b.done[at] {
			at++
			continue
		}
		b.done[at] = true
		for _, j := range g.near[int(b.ids[at])*g.degree : (int(b.ids[at])+1)*g.degree] {
			if to, in := b.offer(g, point, j); in {
				at = min(at, to)
			}
		}
	}
	return b.ids[0], b.distances[0]
}

// marks is a set of entries that is emptied at once.
type marks struct {
	stamp []int32
	now   int32
}

func newMarks(k int) *marks { return &marks{stamp: make([]int32, k)} }

// next empties the set and puts one entry in.
func (m *marks) next(i int32) {
	m.now++
	m.stamp[i] = m.now
}

// add tells whether an entry was not in the set, and puts it in.
func (m *marks) add(i int32) bool {
	if m.stamp[i] == m.now {
		return false
	}
	m.stamp[i] = m.now
	return true
}
