package vk

import (
	"math"
	"slices"
	"sort"
)

// Access says what a pass does with a buffer: a set of the bits Read and Write. The zero value touches no bytes (a pass
// that only asks for the buffer's length).
type Access uint8

const (
	Read      Access         = 1 << iota // the pass loads from the buffer
	Write                                // the pass stores to the buffer
	ReadWrite = Read | Write             // the pass does both, atomics included
)

// String returns "read", "write", "read+write" or "none".
func (a Access) String() string {
	switch a & ReadWrite {
	case Read:
		return "read"
	case Write:
		return "write"
	case ReadWrite:
		return "read+write"
	}
	return "none"
}

// touch is one op's access to the bytes [off, off+size) of the memory named buf. Two touches can only collide when
// their buf is equal, so memory that is shared by several buffers must carry one buf for all of them.
type touch struct {
	buf       uint64
	off, size int64
	acc       Access
}

// hazards decides which ops of a recorded list need a barrier before them. It remembers every byte range touched since
// the last barrier. A barrier is global: it orders everything before it against everything after it, so the memory is
// emptied by each. The zero value is ready for use.
type hazards struct {
	seen map[uint64]*seenRanges
}

// seenRanges holds what was done to one buffer since the last barrier.
type seenRanges struct {
	read, written rangeSet
	// written before the last barrier, which so far does not make it visible to reads of grid sizes
	hidden rangeSet
}

// step tells hazards of the next op, which touches t, and reports whether a barrier must stand before that op: true
// when it reads bytes written, or writes bytes read or written, by an op since the last barrier. The touches of one op
// are never compared with each other: how the invocations of one dispatch share bytes is the kernel's own business.
func (h *hazards) step(t []touch) (barrier bool) {
	if slices.ContainsFunc(t, h.collides) {
		barrier = true
		h.pass()
	}
	for _, x := range t {
		h.remember(x)
	}
	return barrier
}

// pass goes past a barrier for shaders, copies and fills.
func (h *hazards) pass() {
	for _, s := range h.seen {
		for _, r := range s.written {
			s.hidden.add(r)
		}
		s.read, s.written = s.read[:0], s.written[:0]
	}
}

// reset forgets all touches, as a full barrier recorded by someone else does.
func (h *hazards) reset() {
	for _, s := range h.seen {
		s.read, s.written, s.hidden = s.read[:0], s.written[:0], s.hidden[:0]
	}
}

// stepIndirect tells hazards, after step, that the device reads the size of the op's grid from x. It reports whether
// the last barrier must be one for such reads too, and then takes it for one.
func (h *hazards) stepIndirect(x touch) bool {
	if s := h.seen[x.buf]; s == nil || !s.hidden.overlaps(x.bytes()) {
		return false
	}
	for _, s := range h.seen {
		s.hidden = s.hidden[:0]
	}
	return true
}

// collides reports whether x must wait for an op since the last barrier.
func (h *hazards) collides(x touch) bool {
	s := h.seen[x.buf]
	if s == nil || x.acc&ReadWrite == 0 {
		return false
	}
	r := x.bytes()
	return s.written.overlaps(r) || x.acc&Write != 0 && s.read.overlaps(r)
}

// remember adds x to what was seen since the last barrier.
func (h *hazards) remember(x touch) {
	r := x.bytes()
	if r.lo >= r.hi || x.acc&ReadWrite == 0 {
		return
	}
	if h.seen == nil {
		h.seen = make(map[uint64]*seenRanges)
	}
	s := h.seen[x.buf]
	if s == nil {
		s = new(seenRanges)
		h.seen[x.buf] = s
	}
	if x.acc&Read != 0 {
		s.read.add(r)
	}
	if x.acc&Write != 0 {
		s.written.add(r)
	}
}

// bytes returns the range that x touches, empty when its size is not positive.
func (x touch) bytes() byteRange {
	return byteRange{x.off, addClamped(x.off, max(x.size, 0))}
}

// byteRange is the half-open range [lo, hi) of byte offsets.
type byteRange struct{ lo, hi int64 }

// rangeSet is a set of bytes as sorted ranges of which no two overlap or touch.
type rangeSet []byteRange

// from returns the index of the first range of s that ends at or after lo.
func (s rangeSet) from(lo int64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].hi >= lo })
}

func (s rangeSet) overlaps(r byteRange) bool {
	if r.lo >= r.hi {
		return false
	}
	i := s.from(r.lo + 1) // r is not empty, so lo+1 does not overflow
	return i < len(s) && s[i].lo < r.hi
}

// add puts the bytes of r, which is not empty, into s and joins the ranges that it connects.
func (s *rangeSet) add(r byteRange) {
	i := s.from(r.lo)
	j := i
	for ; j < len(*s) && (*s)[j].lo <= r.hi; j++ {
		r.lo = min(r.lo, (*s)[j].lo)
		r.hi = max(r.hi, (*s)[j].hi)
	}
	*s = slices.Replace(*s, i, j, r)
}

// addClamped returns a+b for a b that is not negative, or the largest int64 where the sum would overflow.
func addClamped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
