package vk

import (
	"math/bits"

	"github.com/kelindar/bitmap"
)

// pageSize is the unit of the arena in bytes. 4 KiB is a multiple of every offset alignment that Vulkan may ask of a
// buffer (the specification caps minStorageBufferOffsetAlignment, minUniformBufferOffsetAlignment and
// nonCoherentAtomSize at 256), so that every page starts aligned for any use; it is the smallest page that GPUs map;
// and it keeps the map of a 64 MiB block at 2 KiB, which one scan passes in microseconds. What rounding up costs, at
// most 4 KiB a buffer, is nothing beside the megabytes that buffers of this program take.
const pageSize = 4096

// pageMap says which pages of one block are taken: bit p is set while page p is.
type pageMap struct {
	taken bitmap.Bitmap
	n     int // pages in the block
	free  int // pages not taken
}

func newPageMap(n int) pageMap {
	m := pageMap{n: n, free: n}
	m.taken.Grow(uint32(max(n, 1) - 1))
	return m
}

// bestFit returns the first page of the smallest run of free pages that holds want pages, and how many pages that run
// is longer than want. Of equal runs the lowest wins. ok is false when no run is long enough.
func (m *pageMap) bestFit(want int) (start, excess int, ok bool) {
	if want > m.free {
		return 0, 0, false
	}
	for p := m.next(0, false); p < m.n; {
		end := m.next(p, true)
		if p+want <= end && (!ok || end-p-want < excess) {
			start, excess, ok = p, end-p-want, true
			if excess == 0 {
				return start, excess, ok
			}
		}
		p = m.next(end, false)
	}
	return start, excess, ok
}

// next returns the first page at or after p that is taken, or free when taken is false; n when there is none.
func (m *pageMap) next(p int, taken bool) int {
	for p < m.n {
		word := m.taken[p>>6]
		if !taken {
			word = ^word
		}
		if word >>= p & 63; word != 0 {
			return min(p+bits.TrailingZeros64(word), m.n)
		}
		p = (p | 63) + 1
	}
	return m.n
}

// take marks the free pages [start, start+count) as taken.
func (m *pageMap) take(start, count int) {
	m.each(start, count, func(w int, mask uint64) { m.taken[w] |= mask })
	m.free -= count
}

// release marks the taken pages [start, start+count) as free.
func (m *pageMap) release(start, count int) {
	m.each(start, count, func(w int, mask uint64) { m.taken[w] &^= mask })
	m.free += count
}

// each calls f for every word of the map that holds pages of [start, start+count), with the mask of those pages.
func (m *pageMap) each(start, count int, f func(word int, mask uint64)) {
	for end := start + count; start < end; {
		stop := min((start|63)+1, end)
		f(start>>6, ^uint64(0)>>(64-(stop-start))<<(start&63))
		start = stop
	}
}
