package vk

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// MemoryKind says where memory lies and who can reach it.
type MemoryKind int

const (
	DeviceLocal MemoryKind = iota // fastest for the device, not mapped on the host
	Upload                        // mapped and coherent: the host writes, the device reads
	Readback                      // mapped, cached where the device has such memory: the device writes, the host reads
	memoryKinds                   // number of kinds
)

// String returns "device-local", "upload" or "readback".
func (k MemoryKind) String() string {
	switch k {
	case DeviceLocal:
		return "device-local"
	case Upload:
		return "upload"
	case Readback:
		return "readback"
	}
	return fmt.Sprintf("memory kind %d", int(k))
}

// Sizes of blocks, in bytes. A large buffer has a block to itself, of exactly its size: then nothing is left over, and
// what it took is the driver's again once it is freed. Small ones share blocks, because the number of allocations is a
// limited resource (maxMemoryAllocationCount is 4096 on many); these start small, so that a small job stays small.
const (
	firstBlock = 4 << 20  // the first block of a kind that buffers share
	smallBlock = 64 << 20 // largest one
	leastAlone = 64 << 10 // a buffer above this has its own,
	aloneParts = 64       // if it is above this part of the largest,
	// and above this part of what is allocated, so that a device of any size takes some thousand blocks
	mostAlone = 512
)

// blockSource is where an arena gets its blocks from. The arena calls it under its lock, one call at a time.
type blockSource interface {
	// newBlock allocates size bytes, a multiple of pageSize, and returns an id that no other living block has. An error
	// that wraps ErrOutOfMemory makes the arena try again with less; any other ends the request.
	newBlock(kind MemoryKind, size int64) (id int, err error)
	// freeBlock returns a block that newBlock gave.
	freeBlock(id int)
}

// span is a part of a block: size bytes from byte off.
type span struct {
	block     int // id of the block
	off, size int64
}

// arena hands out parts of a few large blocks under a hard byte budget. Its methods may be called from several
// goroutines.
type arena struct {
	src blockSource

	mu     sync.Mutex
	blocks [memoryKinds][]*block // in the order in which they came, so that placement depends on the calls alone
	shared [memoryKinds]int64    // sum of the sizes of blocks that buffers share
	count  Stats
}

// block is one allocation of the source with the map of its pages.
type block struct {
	id    int
	kind  MemoryKind
	size  int64
	alone bool // made for one large buffer
	pages pageMap
	live  map[int64]int64 // sizes of buffers by offset
}

// newArena returns an arena without blocks that takes at most budget bytes from src.
func newArena(src blockSource, budget int64) *arena {
	return &arena{src: src, count: Stats{Budget: budget}}
}

// alloc returns size bytes of the given kind, which begin at a page of their block. They hold whatever was there
// before. The name is for error messages. An error for want of memory wraps ErrOutOfMemory.
func (a *arena) alloc(kind MemoryKind, size int64, name string) (span, error) {
	switch {
	case kind < 0 || kind >= memoryKinds:
		return span{}, fmt.Errorf("allocate %s: unknown %v", name, kind)
	case size <= 0:
		return span{}, fmt.Errorf("allocate %s: size of %d bytes is not positive", name, size)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if size > a.count.Budget || size > math.MaxInt64-pageSize {
		return span{}, a.refuse(kind, size, name, ErrOutOfMemory)
	}
	want := pagesOf(size)
	b, at, ok := a.find(kind, want)
	if !ok {
		var err error
		if b, err = a.grow(kind, int64(want)*pageSize); err != nil {
			return span{}, a.refuse(kind, size, name, err)
		}
		at = 0
	}
	b.pages.take(at, want)
	off := int64(at) * pageSize
	b.live[off] = size
	a.count.InUse += int64(want) * pageSize
	a.count.Buffers++
	return span{b.id, off, size}, nil
}

func pagesOf(size int64) int { return int((size + pageSize - 1) / pageSize) }

// refuse words the error of a request that failed because of err.
func (a *arena) refuse(kind MemoryKind, size int64, name string, err error) error {
	s := &a.count
	return fmt.Errorf("allocate %s: %s of %v memory asked, %s in use in blocks of %s, budget %s: %w",
		name, BytesText(size), kind, BytesText(s.InUse), BytesText(s.Allocated), BytesText(s.Budget), err)
}

// find returns the place for want pages in the blocks at hand: the tightest run of free pages, the older block where
// two are as tight.
func (a *arena) find(kind MemoryKind, want int) (best *block, at int, ok bool) {
	excess := math.MaxInt
	for _, b := range a.blocks[kind] {
		if p, e, fits := b.pages.bestFit(want); fits && e < excess {
			best, at, excess = b, p, e
		}
	}
	return best, at, best != nil
}

// grow adds a block with room for size bytes, a multiple of pageSize. When the budget or the source has no room for a
// block of the size that it would like, it gives back the empty blocks and then tries ever smaller ones down to size
// itself. Empty blocks also go where a large buffer comes: that is rare, and while memory grows nothing of it stands
// idle.
func (a *arena) grow(kind MemoryKind, size int64) (*block, error) {
	alone := a.alone(size)
	if alone {
		a.releaseEmpty()
	}
	b, err := a.add(kind, a.blockSize(kind, size), alone)
	if !errors.Is(err, ErrOutOfMemory) {
		return b, err
	}
	a.releaseEmpty()
	for try := a.blockSize(kind, size); ; try = max(try/2/pageSize*pageSize, size) {
		if b, err = a.add(kind, try, alone); try == size || !errors.Is(err, ErrOutOfMemory) {
			return b, err
		}
	}
}

// blockSize returns the size of the next block for a request of size bytes. Blocks to share have a quarter of what such
// blocks already have, so that their number grows with the logarithm of the bytes and little of the last one stands
// empty.
func (a *arena) blockSize(kind MemoryKind, size int64) int64 {
	if a.alone(size) {
		return size
	}
	largest := a.largestBlock()
	n := min(firstBlock, largest)
	for n < largest && (4*n <= a.shared[kind] || n < size) {
		n *= 2
	}
	return min(n, largest)
}

// alone reports whether a buffer of size bytes gets a block to itself.
func (a *arena) alone(size int64) bool {
	return size > max(leastAlone, a.largestBlock()/aloneParts, min(a.count.Allocated/mostAlone, a.largestBlock()))
}

// largestBlock returns the cap on the size of blocks that buffers share. A small budget loses little to what is left
// over in them.
func (a *arena) largestBlock() int64 {
	return min(smallBlock, max(a.count.Budget/16/pageSize, 16)*pageSize)
}

// add takes one block of exactly size bytes from the source, if the budget allows it.
func (a *arena) add(kind MemoryKind, size int64, alone bool) (*block, error) {
	if size > a.count.Budget-a.count.Allocated {
		return nil, ErrOutOfMemory
	}
	a.count.AllocCalls++
	id, err := a.src.newBlock(kind, size)
	if err != nil {
		return nil, err
	}
	b := &block{id: id, kind: kind, size: size, alone: alone, pages: newPageMap(int(size / pageSize)),
		live: map[int64]int64{}}
	a.blocks[kind] = append(a.blocks[kind], b)
	if !b.alone {
		a.shared[kind] += size
	}
	a.count.Blocks++
	a.count.Allocated += size
	a.count.PeakAllocated = max(a.count.PeakAllocated, a.count.Allocated)
	return b, nil
}

// free gives back what alloc returned. A span that is not living is an error and changes nothing; one that was freed
// before cannot be distinguished from a living one of the same place and size.
func (a *arena) free(s span) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.byID(s.block)
	if b == nil {
		return fmt.Errorf("free %d bytes at offset %d of block %d: no such block", s.size, s.off, s.block)
	}
	if size, ok := b.live[s.off]; !ok || size != s.size {
		return fmt.Errorf("free %d bytes at offset %d of block %d: no such buffer lives there", s.size, s.off, s.block)
	}
	delete(b.live, s.off)
	n := pagesOf(s.size)
	b.pages.release(int(s.off/pageSize), n)
	a.count.InUse -= int64(n) * pageSize
	a.count.Buffers--
	if len(b.live) == 0 {
		a.retire(b)
	}
	return nil
}

// retire decides what becomes of b, which has just become empty. One empty block to share is kept of each kind, the
// larger of two, so that a small buffer that comes and goes does not make the driver allocate each time.
func (a *arena) retire(b *block) {
	if b.alone {
		a.drop(b)
		return
	}
	for _, o := range a.blocks[b.kind] {
		if o == b || len(o.live) > 0 {
			continue
		}
		if o.size > b.size {
			o = b
		}
		a.drop(o)
		return
	}
}

// releaseEmpty returns every empty block, of any kind, to the source.
func (a *arena) releaseEmpty() {
	for _, list := range a.blocks {
		for _, b := range slices.Clone(list) {
			if len(b.live) == 0 {
				a.drop(b)
			}
		}
	}
}

func (a *arena) drop(b *block) {
	list := a.blocks[b.kind]
	a.blocks[b.kind] = slices.Delete(list, slices.Index(list, b), slices.Index(list, b)+1)
	if !b.alone {
		a.shared[b.kind] -= b.size
	}
	a.count.Blocks--
	a.count.Allocated -= b.size
	a.src.freeBlock(b.id)
}

// byID returns the living block of that id, or nil.
func (a *arena) byID(id int) *block {
	for _, list := range a.blocks {
		for _, b := range list {
			if b.id == id {
				return b
			}
		}
	}
	return nil
}

// stats returns the counts as they are now.
func (a *arena) stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// close returns all blocks to the source. The arena is empty afterwards.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.blocks {
		for _, b := range slices.Clone(list) {
			a.drop(b)
		}
	}
	a.count.InUse, a.count.Buffers = 0, 0
}

// BytesText words a number of bytes with the largest binary unit that it reaches, as in "1.5 MiB" or "512 MiB".
func BytesText(n int64) string {
	units := [...]string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	if x >= 100 {
		return fmt.Sprintf("%.0f %s", x, units[u])
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}
