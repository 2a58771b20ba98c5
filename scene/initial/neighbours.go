package initial

import (
	"context"
	"math"
	"runtime"
	"sync"

	"vksplat/scene"
)

// leafSize is the most points a leaf of a pointTree holds.
const leafSize = 8

// pointTree is a balanced k-d tree without nodes: the points of a range [lo, hi) of more than leafSize are split at the
// middle one, which belongs to the upper half, along the axis of largest extent.
type pointTree struct {
	pos    [][3]float64 // in tree order
	index  []int32      // of the point, by position in the tree
	splits []split      // of the ranges, as a heap: those of range k are 2k+1 and 2k+2
}

// split is the plane that divides a range.
type split struct {
	at   float64
	axis int8
}

func newPointTree(ctx context.Context, points []scene.Point) *pointTree {
	return buildTree(ctx, len(points), func(i int) [3]float64 { return points[i].Pos })
}

// buildTree makes the tree of n points; when ctx ends, one that is not in order.
func buildTree(ctx context.Context, n int, pos func(i int) [3]float64) *pointTree {
	t := &pointTree{make([][3]float64, n), make([]int32, n), make([]split, splitRanges(n))}
	for i := range n {
		t.pos[i], t.index[i] = pos(i), int32(i)
	}
	t.build(ctx, 0, 0, n, runtime.GOMAXPROCS(0))
	return t
}

// Spacing returns for each position, [N*3] and finite, the mean distance to its three nearest others, or to as many as
// there are.
func Spacing(means []float32) []float32 {
	t := treeOf(means)
	out := make([]float32, len(t.pos))
	scene.InBlocks(len(out), func(lo, hi int) {
		for at := lo; at < hi; at++ {
			out[t.index[at]] = float32(t.spacing(at))
		}
	})
	return out
}

// splitRanges returns how many ranges a tree of n points splits at most: halving a range leaves the larger half rounded
// up.
func splitRanges(n int) int {
	ranges := 1
	for ; n > leafSize; n = (n + 1) / 2 {
		ranges *= 2
	}
	return ranges - 1
}

// build orders range k on several goroutines; the tree does not depend on their number.
func (t *pointTree) build(ctx context.Context, k, lo, hi, workers int) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for hi-lo > leafSize {
		if hi-lo > spacingBlock && ctx.Err() != nil {
			return
		}
		mid, axis := (lo+hi)/2, t.longestAxis(lo, hi)
		t.partition(lo, hi, mid, axis)
		t.splits[k] = split{t.pos[mid][axis], int8(axis)}
		if workers > 1 {
			workers /= 2
			upper, share, half := hi, workers, 2*k+2
			wg.Go(func() { t.build(ctx, half, mid, upper, share) })
		} else {
			t.build(ctx, 2*k+2, mid, hi, 1)
		}
		k, hi = 2*k+1, mid
	}
}

func (t *pointTree) longestAxis(lo, hi int) int {
	low, high := t.pos[lo], t.pos[lo]
	for _, p := range t.pos[lo+1 : hi] {
		for k, x := range p {
			low[k], high[k] = min(low[k], x), max(high[k], x)
		}
	}
	axis := 0
	for k := range 3 {
		if high[k]-low[k] > high[axis]-low[axis] {
			axis = k
		}
	}
	return axis
}

// partition orders the range so that nothing below mid is greater along the axis than mid and nothing above is less
// (Hoare's selection, the pivot being the median of three).
func (t *pointTree) partition(lo, hi, mid, axis int) {
	for hi--; lo < hi; {
		a, b, c := t.pos[lo][axis], t.pos[(lo+hi)/2][axis], t.pos[hi][axis]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for t.pos[i][axis] < pivot {
				i++
			}
			for t.pos[j][axis] > pivot {
				j--
			}
			if i <= j {
				t.pos[i], t.pos[j] = t.pos[j], t.pos[i]
				t.index[i], t.index[j] = t.index[j], t.index[i]
				i++
				j--
			}
		}
		switch {
		case mid <= j:
			hi = j
		case mid >= i:
			lo = i
		default:
			return
		}
	}
}

type neighbour struct {
	d2 float64 // squared distance, +Inf for none
	at int32   // place in the tree
}

// noNeighbour is one that is yet to be found.
var noNeighbour = neighbour{math.Inf(1), -1}

// search looks through range k for points nearer to that at a position than those in best, which ascends.
func (t *pointTree) search(k, lo, hi, at int, best []neighbour) {
	p, last := &t.pos[at], len(best)-1
	if hi-lo <= leafSize {
		for i := lo; i < hi; i++ {
			q := &t.pos[i]
			x, y, z := q[0]-p[0], q[1]-p[1], q[2]-p[2]
			// The conversions forbid fused multiply-add: equal bytes on every processor.
			if d2 := float64(x*x) + float64(y*y) + float64(z*z); d2 < best[last].d2 && i != at {
				insert(best, neighbour{d2, int32(i)})
			}
		}
		return
	}
	mid := (lo + hi) / 2
	plane := t.splits[k]
	gap := p[plane.axis] - plane.at
	near, far := [3]int{2*k + 1, lo, mid}, [3]int{2*k + 2, mid, hi}
	// Of points in one place each looks where it is itself first, or else all would find the same ones.
	if gap > 0 || gap == 0 && at >= mid {
		near, far = far, near
	}
	t.search(near[0], near[1], near[2], at, best)
	if gap*gap < best[last].d2 {
		t.search(far[0], far[1], far[2], at, best)
	}
}

// insert puts one that is nearer than the last in its place.
func insert(best []neighbour, found neighbour) {
	i := len(best) - 1
	for ; i > 0 && best[i-1].d2 > found.d2; i-- {
		best[i] = best[i-1]
	}
	best[i] = found
}

// Nearest returns for each position, [N*3] and finite, the numbers of its k nearest others, [N*k], the nearest first;
// -1 where there are fewer.
func Nearest(means []float32, k int) []int32 {
	t := treeOf(means)
	out := make([]int32, len(t.pos)*k)
	scene.InBlocks(len(t.pos), func(lo, hi int) {
		best := make([]neighbour, k)
		for at := lo; at < hi; at++ {
			for j := range best {
				best[j] = noNeighbour
			}
			t.search(0, 0, len(t.pos), at, best)
			for j, found := range best {
				if found.at >= 0 {
					found.at = t.index[found.at]
				}
				out[int(t.index[at])*k+j] = found.at
			}
		}
	})
	return out
}

func treeOf(means []float32) *pointTree {
	return buildTree(context.Background(), len(means)/3, func(i int) [3]float64 {
		return [3]float64{float64(means[3*i]), float64(means[3*i+1]), float64(means[3*i+2])}
	})
}
