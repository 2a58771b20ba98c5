package vk

import (
	"math/rand/v2"
	"testing"
)

// What fits says must be what then happens, and asking must change nothing.
func TestFitsIsWhatHappens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	yes, no := 0, 0
	for range 300 {
		const budget = 96 * mib
		src := newFakeSource(8 * gib)
		a := newArena(src, budget)
		var living []span
		for range 20 + rng.IntN(40) {
			if s, err := a.alloc(DeviceLocal, 1+rng.Int64N(9*mib), "buffer"); err == nil {
				living = append(living, s)
			}
			if k := rng.IntN(max(1, 4*len(living))); k < len(living) {
				mustFree(t, a, living[k])
				living = append(living[:k], living[k+1:]...)
			}
		}
		freed := living[:rng.IntN(len(living)+1)]
		sizes := make([]int64, 1+rng.IntN(3))
		for i := range sizes {
			sizes[i] = 1 + rng.Int64N(40*mib)
		}
		before, given := a.stats(), src.given
		fits := a.fits(freed, sizes, 1<<40)
		if a.stats() != before || src.given != given {
			t.Fatalf("asking changed %+v to %+v", before, a.stats())
		}
		mustFree(t, a, freed...)
		happens := true
		for _, size := range sizes {
			_, err := a.alloc(DeviceLocal, size, "buffer")
			happens = happens && err == nil
		}
		if fits != happens {
			t.Fatalf("sizes %v: fits is %v, allocating them %v", sizes, fits, happens)
		}
		if fits {
			yes++
		} else {
			no++
		}
	}
	if yes < 30 || no < 30 {
		t.Fatalf("%d fit, %d do not: the test is of little worth", yes, no)
	}
}

// Holes that add up to enough, and a largest block of the device, are no room.
func TestFitsKnowsHolesAndBlocks(t *testing.T) {
	a := newArena(newFakeSource(8*gib), 8*gib)
	var s []span
	for range 8 {
		s = append(s, mustAlloc(t, a, DeviceLocal, mib))
	}
	a.count.Budget = a.count.Allocated
	if a.fits(nil, []int64{pageSize}, 1<<40) {
		t.Error("a full arena has room")
	}
	if !a.fits([]span{s[0], s[2], s[4]}, []int64{mib, mib}, 1<<40) ||
		a.fits([]span{s[0], s[2], s[4]}, []int64{3 * mib / 2}, 1<<40) {
		t.Error("three holes of 1 MiB: two of those must fit, 1.5 MiB must not")
	}
	b := newArena(newFakeSource(8*gib), 64*mib)
	if b.fits(nil, []int64{33 * mib}, 32*mib) || !b.fits(nil, []int64{31 * mib}, 32*mib) {
		t.Error("blocks of at most 32 MiB hold 31 and not 33")
	}
}
