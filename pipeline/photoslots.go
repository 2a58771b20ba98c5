package pipeline

import (
	"errors"
	"math"

	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/vk"
)

// photoSlots is the memory of photos on a device: the slots of the cache, and the target, which holds the photo of a
// step unless the loss reads it in its slot.
type photoSlots struct {
	dev     *vk.Device
	cams    []scene.Camera
	layout  photos.Layout
	all     bool  // there is a slot for every view
	words   int   // of the target
	largest int64 // bytes of a slot otherwise
	slots   []photoSlot
	target  photoSlot
	shelves []vk.View // the buffers that they lie in
	// the buffer that the loss reads: one of slots and target, or the target alone, into which all photos are copied
	// then; see target.glsl
	bound  vk.Slice[uint32]
	direct bool // bound has the slots
}

type photoSlot struct {
	words  vk.Slice[uint32]
	offset uint32 // in words, of the buffer that it lies in
	view   int    // -1: none
	bytes  int64  // of its photo
}

// stagedPhoto is the place where the loss reads the photo of a view, and the copies that are submitted before.
type stagedPhoto struct {
	offset   uint32     // in words, in the buffer that the loss reads
	keep     *vk.Copier // puts the photo into the cache; nil: nothing does
	kept     int64      // bytes that keep copies
	dst, src vk.View    // what is copied then; zero: nothing
}

// noPhoto is the stagedPhoto of units other than steps.
var noPhoto stagedPhoto

// cached returns where the loss finds a view's photo that the cache has.
func (p *devicePhotos) cached(view int) stagedPhoto {
	s := &p.slots[p.slotOf[view]]
	if p.direct {
		return stagedPhoto{offset: s.offset}
	}
	return p.copied(s.words.View.Slice(0, s.bytes))
}

// copied returns where the loss finds a photo that is copied for it.
func (p *photoSlots) copied(src vk.View) stagedPhoto {
	return stagedPhoto{offset: p.target.offset, dst: p.target.words.View.Slice(0, src.Size()), src: src}
}

// shelfBytes is the most that the slots of one buffer take together where the loss does not read them, unless there is
// only one of them.
const shelfBytes = 64 << 20

// makeSlots makes n slots and the target in one buffer, which is one allocation, so that the loss reads photos in their
// slots. Where a binding cannot span it, or there is no allocation of that size, it makes them apart.
func (p *photoSlots) makeSlots(n int) error {
	_, p.largest = p.layout.Totals(p.cams)
	if end, _ := p.row(0, n, maxBinding(p.dev)-p.targetBytes()); end == n {
		err := p.makeShelf(0, n, true)
		if p.direct = err == nil; p.direct || !errors.Is(err, vk.ErrOutOfMemory) {
			return err
		}
	}
	return p.makeApart(n)
}

// makeApart is makeSlots with the target in one buffer and the slots in others, as many in each as fit in shelfBytes.
// Steps copy their photos to the target then.
func (p *photoSlots) makeApart(n int) error {
	if err := p.makeShelf(0, 0, true); err != nil {
		return err
	}
	l := p.dev.Info().Limits
	room := min(shelfBytes, l.MaxMemoryAllocationSize, l.MaxBufferSize)
	for first := 0; first < n; {
		end, _ := p.row(first, n, room)
		end = max(end, first+1)
		if err := p.makeShelf(first, end, false); err != nil {
			return err
		}
		first = end
	}
	return nil
}

func (p *photoSlots) slotBytes(i int) int64 {
	if p.all {
		return p.layout.Bytes(&p.cams[i])
	}
	return p.largest
}

func (p *photoSlots) targetBytes() int64 { return 4 * int64(p.words) }

// row returns where those of the slots [first, n) end that fit side by side in room, and what they take.
func (p *photoSlots) row(first, n int, room int64) (end int, sum int64) {
	for end = first; end < n && sum+p.slotBytes(end) <= room; end++ {
		sum += p.slotBytes(end)
	}
	return end, sum
}

// makeShelf makes a buffer with the slots [first, end). The one that the loss reads has the target behind them.
func (p *photoSlots) makeShelf(first, end int, bound bool) error {
	_, size := p.row(first, end, math.MaxInt64)
	if bound {
		size += p.targetBytes()
	}
	shelf, err := p.dev.Alloc(vk.DeviceLocal, size, "photos")
	if err != nil {
		return err
	}
	p.shelves = append(p.shelves, shelf)
	off := int64(0)
	place := func(size int64) photoSlot {
		s := photoSlot{words: vk.Cast[uint32](shelf.Slice(off, size)), offset: uint32(off / 4), view: -1}
		off += size
		return s
	}
	for ; first < end; first++ {
		p.slots = append(p.slots, place(p.slotBytes(first)))
	}
	if bound {
		p.target, p.bound = place(p.targetBytes()), vk.Cast[uint32](shelf)
	}
	return nil
}

// freeSlots gives the memory of slots and target back.
func (p *photoSlots) freeSlots() (err error) {
	for _, s := range p.shelves {
		err = errors.Join(err, p.dev.Free(s))
	}
	p.slots, p.shelves, p.target, p.bound, p.direct = nil, nil, photoSlot{}, vk.Slice[uint32]{}, false
	return err
}
