package vk

import (
	"fmt"
	"maps"
	"slices"
)

// Fits reports whether the pool, emptied first, could have regions of these sizes in bytes beside everything else that
// lives, within the budget. It takes the holes in blocks into account, in which no region may fit however many bytes
// they add up to. What the driver would say is not asked.
func (p *ScratchPool) Fits(sizes []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var own []span
	for _, v := range p.regions {
		if !v.IsZero() {
			own = append(own, v.base.span)
		}
	}
	l := p.dev.info.Limits
	return p.dev.memory.local.fits(own, sizes, min(l.MaxMemoryAllocationSize, l.MaxBufferSize))
}

// fits reports whether device-local buffers of these sizes could be allocated once the given spans were freed, with
// blocks of at most largest bytes. It plays that on a copy.
func (a *arena) fits(freed []span, sizes []int64, largest int64) bool {
	trial := a.rehearsal(largest)
	for _, s := range freed {
		if trial.free(s) != nil {
			return false
		}
	}
	for _, size := range sizes {
		if _, err := trial.alloc(DeviceLocal, size, "rehearsal"); err != nil {
			return false
		}
	}
	return true
}

// rehearsal returns a copy of the arena whose blocks come from nowhere.
func (a *arena) rehearsal(largest int64) *arena {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &arena{src: &thinAir{largest: largest}, shared: a.shared, count: a.count}
	for kind, list := range a.blocks {
		for _, b := range list {
			d := *b
			d.pages.taken = slices.Clone(b.pages.taken)
			d.live = maps.Clone(b.live)
			c.blocks[kind] = append(c.blocks[kind], &d)
		}
	}
	return c
}

// thinAir is a source of blocks that are not there, with ids that no real block has.
type thinAir struct {
	largest int64
	last    int
}

func (t *thinAir) newBlock(kind MemoryKind, size int64) (int, error) {
	if size > t.largest {
		return 0, fmt.Errorf("rehearse block of %s of %v memory: %w", BytesText(size), kind, ErrOutOfMemory)
	}
	t.last--
	return t.last, nil
}

func (t *thinAir) freeBlock(int) {}
