package vk

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkPlaces fails the test unless at and regions are a valid placement of l, and returns the sum of the regions.
func checkPlaces(t *testing.T, l []lifetime, regionMax int64, at []placement, regions []int64) (total int64) {
	t.Helper()
	if len(at) != len(l) {
		t.Fatalf("%d places for %d buffers", len(at), len(l))
	}
	largest := make([]int64, len(regions))
	for i, p := range at {
		x := l[i]
		if p.region < 0 || p.region >= len(regions) || p.off < 0 || p.off+x.size > regions[p.region] {
			t.Fatalf("buffer %d %+v at %+v is outside of the regions %v", i, x, p, regions)
		}
		if x.align > 1 && p.off%x.align != 0 {
			t.Fatalf("buffer %d %+v at %+v is not aligned", i, x, p)
		}
		largest[p.region] = max(largest[p.region], x.size)
		for j, q := range at[:i] {
			y := l[j]
			together := false
			for op := x.first; op <= x.last && !together; op++ {
				together = y.first <= op && op <= y.last
			}
			if together && p.region == q.region && p.off < q.off+y.size && q.off < p.off+x.size {
				t.Fatalf("buffers %d %+v at %+v and %d %+v at %+v share bytes", i, x, p, j, y, q)
			}
		}
	}
	for r, size := range regions {
		if regionMax > 0 && size > max(regionMax, largest[r]) {
			t.Fatalf("region %d of %d bytes, at most %d allowed", r, size, regionMax)
		}
		total += size
	}
	return total
}

func TestPlaceTable(t *testing.T) {
	tests := []struct {
		name      string
		l         []lifetime
		regionMax int64
		want      []int64 // sizes of the regions, sorted downwards
	}{
		{"none", nil, 100, nil},
		{"one", []lifetime{{100, 4, 0, 3}}, 0, []int64{100}},
		{"apart in time", []lifetime{{100, 4, 0, 1}, {80, 4, 2, 3}}, 0, []int64{100}},
		{"meeting at one op", []lifetime{{100, 4, 0, 2}, {80, 4, 2, 3}}, 0, []int64{180}},
		{"chain", []lifetime{{100, 4, 0, 1}, {100, 4, 1, 2}, {100, 4, 2, 3}, {100, 4, 3, 4}}, 0, []int64{200}},
		{"aligned", []lifetime{{10, 1, 0, 0}, {20, 16, 0, 0}}, 0, []int64{30}},
		{"two regions", []lifetime{{60, 4, 0, 1}, {60, 4, 0, 1}}, 100, []int64{60, 60}},
		{"larger than a region", []lifetime{{500, 4, 0, 1}, {60, 4, 0, 1}, {60, 4, 2, 2}}, 100, []int64{500, 60}},
		{"never used", []lifetime{{100, 4, 0, 5}, {50, 4, 3, 2}}, 0, []int64{100}},
		{"nested", []lifetime{{30, 1, 0, 9}, {50, 1, 1, 2}, {50, 1, 3, 4}, {20, 1, 2, 3}}, 0, []int64{100}},
		{"no size, no alignment", []lifetime{{0, 0, 0, 1}, {-5, -1, 0, 1}}, 0, []int64{2}},
		{"huge", []lifetime{{math.MaxInt64, 4, 0, 0}, {math.MaxInt64, 256, 0, 0}}, 0,
			[]int64{math.MaxInt64, math.MaxInt64}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			at, regions := place(c.l, c.regionMax)
			if c.name != "huge" && c.name != "no size, no alignment" {
				checkPlaces(t, c.l, c.regionMax, at, regions)
			}
			slices.Sort(regions)
			slices.Reverse(regions)
			if !slices.Equal(regions, c.want) {
				t.Errorf("regions %v, want %v", regions, c.want)
			}
		})
	}
}

// randomLifetimes returns n buffers over ops operations: sizes over four decades, most lives short, some through.
func randomLifetimes(rng *rand.Rand, n, ops int) []lifetime {
	l := make([]lifetime, n)
	for i := range l {
		first := rng.IntN(ops)
		last := min(first+rng.IntN(1+ops/4), ops-1)
		if rng.IntN(8) == 0 {
			first, last = rng.IntN(ops/2), ops/2+rng.IntN(ops/2)
		}
		l[i] = lifetime{int64(math.Exp2(4 + 14*rng.Float64())), 1 << rng.IntN(9), first, last}
	}
	return l
}

// TestPlaceRandom checks placements of random buffers by brute force and how far their sum is from what the worst op
// needs at once.
func TestPlaceRandom(t *testing.T) {
	const seeds = 300
	const meanBound, worstBound = 1.01, 1.25 // for one region
	sum, worst := 0.0, 0.0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := randomLifetimes(rng, 1+rng.IntN(60), 4+rng.IntN(60))
		at, regions := place(l, 0)
		if len(regions) != 1 {
			t.Fatalf("seed %d: %d regions without a limit", seed, len(regions))
		}
		ratio := float64(checkPlaces(t, l, 0, at, regions)) / float64(concurrent(l))
		sum, worst = sum+ratio, max(worst, ratio)

		limit := int64(1 << (10 + rng.IntN(10)))
		at, regions = place(l, limit)
		checkPlaces(t, l, limit, at, regions)
		at2, regions2 := place(l, limit)
		if !slices.Equal(at, at2) || !slices.Equal(regions, regions2) {
			t.Fatalf("seed %d: two calls differ", seed)
		}
	}
	t.Logf("sum of regions / lower bound: mean %.4f, worst %.4f", sum/seeds, worst)
	if sum/seeds > meanBound || worst > worstBound {
		t.Errorf("mean %.4f and worst %.4f, bounds %.2f and %.2f", sum/seeds, worst, meanBound, worstBound)
	}
}

// TestPlaceStep packs a list shaped like a training step: a few large buffers handed from pass to pass, small ones
// beside them.
func TestPlaceStep(t *testing.T) {
	l := []lifetime{
		{8 * mib, 256, 0, 13}, {4 * mib, 256, 0, 14}, {1 * mib, 256, 0, 2}, // shapes, paints, depth keys
		{1 * mib, 256, 1, 3}, {1 * mib, 256, 1, 3}, {mib / 8, 256, 1, 3}, // sort buffers, histogram
		{1 * mib, 256, 3, 12}, {1 * mib, 256, 4, 6}, {1 * mib, 256, 5, 12}, // splat_from_rank, counts, first_isect
		// isects
		{16 * mib, 256, 6, 8}, {16 * mib, 256, 6, 11}, {16 * mib, 256, 7, 8}, {16 * mib, 256, 7, 8}, {mib, 256, 7, 8},
		{16 * mib, 256, 8, 11}, {mib / 64, 256, 8, 11}, // slot_from_isect, offsets
		// states, render, last ids, v_render
		{32 * mib, 256, 9, 11}, {8 * mib, 256, 9, 10}, {2 * mib, 256, 9, 11}, {8 * mib, 256, 10, 11},
		{144 * mib, 256, 11, 12}, {9 * mib, 256, 12, 14}, // slot gradients, per-splat gradients
	}
	all := int64(0)
	for _, x := range l {
		all += x.size
	}
	at, regions := place(l, 0)
	total := checkPlaces(t, l, 0, at, regions)
	at, regions = place(l, 128*mib)
	split := checkPlaces(t, l, 128*mib, at, regions)
	bound := concurrent(l)
	t.Logf("without sharing %s, lower bound %s, one region %s, %d regions of at most 128 MiB %s",
		BytesText(all), BytesText(bound), BytesText(total), len(regions), BytesText(split))
	if float64(total) > 1.01*float64(bound) || float64(split) > 1.10*float64(bound) {
		t.Errorf("%d and %d bytes, lower bound %d", total, split, bound)
	}
}
