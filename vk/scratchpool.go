package vk

import (
	"fmt"
	"sync"
)

// ScratchPool is the memory that the scratch buffers of programs lie in. Programs built from one pool share it, so they
// must not overlap in time: programs submitted to a device run one after the other, which is enough.
type ScratchPool struct {
	dev *Device

	mu         sync.Mutex
	regions    []View
	generation uint64 // changes when a region moves: programs of before are stale
}

// NewScratchPool returns an empty pool. Device.Close ends it.
func (d *Device) NewScratchPool() *ScratchPool {
	p := &ScratchPool{dev: d}
	d.owned.add(p)
	return p
}

func (p *ScratchPool) Size() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.regions {
		n += v.size
	}
	return n
}

// reserve makes every region at least as large as asked and returns them. When a region must grow it waits until the
// device is idle, because submitted programs may still use the old one.
func (p *ScratchPool) reserve(sizes []int64) (regions []View, generation uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, size := range sizes {
		if i < len(p.regions) && p.regions[i].size >= size {
			continue
		}
		if i < len(p.regions) {
			if err := p.dropRegion(i); err != nil {
				return nil, 0, err
			}
		} else {
			p.regions = append(p.regions, View{})
		}
		if p.regions[i], err = p.dev.Alloc(DeviceLocal, size, fmt.Sprintf("scratch region %d", i)); err != nil {
			return nil, 0, err
		}
	}
	return append([]View(nil), p.regions[:len(sizes)]...), p.generation, nil
}

// dropRegion frees a region and makes the programs of the pool stale.
func (p *ScratchPool) dropRegion(i int) error {
	if p.regions[i].IsZero() {
		return nil
	}
	if err := p.dev.WaitIdle(); err != nil {
		return err
	}
	p.generation++
	v := p.regions[i]
	p.regions[i] = View{}
	return p.dev.Free(v)
}

// Close ends the pool: Empty, and no more use.
func (p *ScratchPool) Close() error {
	p.dev.owned.remove(p)
	return p.Empty()
}

// Empty gives the memory back, after the device is idle. The programs built from the pool are stale afterwards; the
// pool can be used again.
func (p *ScratchPool) Empty() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.regions {
		if err := p.dropRegion(i); err != nil {
			return err
		}
	}
	p.regions = nil
	return nil
}

// current reports whether what was built at the given generation can still be used.
func (p *ScratchPool) current(generation uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generation == generation
}
