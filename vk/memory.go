package vk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// memoryAlign is where every buffer begins: no device asks for more than 256 bytes of a storage buffer (the
// specification's bound on minStorageBufferOffsetAlignment).
const memoryAlign = 256

// memory is a device's memory: one arena for the heap of the device and, where host memory is another heap, one for
// that.
type memory struct {
	dev         *Device
	local, host *arena              // the same one on unified memory
	types       [memoryKinds]uint32 // memory type of each kind
	heaps       [memoryKinds]uint32 // likewise its heap, of the profile if there is one
	mu          sync.Mutex          // guards the fields below
	blocks      map[int]*memoryBlock
	nextID      int
	limit       int64           // bytes that the driver has for all blocks together; 0: what it has
	taken       [maxHeaps]int64 // bytes of the blocks of each heap
	asked       int             // blocks asked for so far
	shared      int64           // bytes of imported memory of the host
}

// memoryBlock is one allocation of the driver with a buffer over all of it.
type memoryBlock struct {
	id             int
	heap           uint32
	size           int64
	buffer, memory uint64
	mapped         unsafe.Pointer // nil for device-local memory
}

// maxHeaps is VK_MAX_MEMORY_HEAPS.
const maxHeaps = 16

// memoryType is a type of memory.
type memoryType struct {
	Heap  uint32      `json:"heapIndex"`
	Flags memoryFlags `json:"propertyFlags"`
}

// memoryFlags is VkMemoryPropertyFlags. As text it is the names of the flags, separated by spaces.
type memoryFlags uint32

const (
	memDeviceLocal memoryFlags = 1 << iota
	memHostVisible
	memHostCoherent
	memHostCached
	memUnusual memoryFlags = 0xf0 // the other ones below: never wanted
)

var memoryFlagNames = []string{"deviceLocal", "hostVisible", "hostCoherent", "hostCached", "lazilyAllocated",
	"protected", "deviceCoherent", "deviceUncached"}

func (f *memoryFlags) UnmarshalText(text []byte) error {
	for name := range strings.FieldsSeq(string(text)) {
		bit := slices.Index(memoryFlagNames, name)
		if bit < 0 {
			return fmt.Errorf("memory flag %q is none of %v", name, memoryFlagNames)
		}
		*f |= 1 << bit
	}
	return nil
}

// begin chooses the memory types and opens the arenas.
func (m *memory) begin(d *Device, budget int64) error {
	m.dev, m.blocks, m.limit = d, map[int]*memoryBlock{}, d.info.faults.HeapBytes
	probe, r := createBuffer(d.h, 1<<16)
	if err := failed("vkCreateBuffer", "probe on "+d.info.Name, r); err != nil {
		return err
	}
	_, allowed := bufferRequirements(d.h, probe)
	destroyBuffer(d.h, probe)
	_, types := d.in.memory(d.info.handle, false)
	for kind := range memoryKinds {
		t, ok := chooseType(types, allowed, kind)
		if !ok {
			return invalid("open device", d.info.Name, "no memory type suits %v buffers", kind)
		}
		m.types[kind], m.heaps[kind] = t, types[t].Heap
	}
	for kind := range memoryKinds {
		if t, ok := chooseType(d.info.types, ^uint32(0), kind); ok {
			m.heaps[kind] = d.info.types[t].Heap
		}
	}
	m.local = newArena(m, budget)
	m.host = m.local
	// Callers plan to keep to a limit of their own, as pipeline does to --max-ram, in which this memory counts. Half of
	// what is available stops an error of a plan before the system swaps, and plans that have more than that.
	if m.heaps[Upload] != m.heaps[DeviceLocal] || m.heaps[Readback] != m.heaps[DeviceLocal] {
		m.host = newArena(m, min(availableRAM()/2, 1<<50))
	}
	return nil
}

// chooseType returns the memory type for a kind: the one with the most points, the earlier of equals (drivers list the
// better type first).
func chooseType(types []memoryType, allowed uint32, kind MemoryKind) (best uint32, ok bool) {
	most := -1 << 30
	for i, t := range types {
		flags := t.Flags
		if allowed&(1<<i) == 0 || flags&memUnusual != 0 {
			continue
		}
		has := func(bit memoryFlags, points int) int {
			if flags&bit != 0 {
				return points
			}
			return 0
		}
		points := 0
		switch kind {
		case DeviceLocal:
			points = has(memDeviceLocal, 8) - has(memHostVisible, 1)
		case Upload:
			points = -has(memDeviceLocal, 2) - has(memHostCached, 1)
		case Readback:
			points = has(memHostCached, 4) - has(memDeviceLocal, 2)
		}
		if kind != DeviceLocal && flags&(memHostVisible|memHostCoherent) != memHostVisible|memHostCoherent {
			continue
		}
		if points > most {
			most, best, ok = points, uint32(i), true
		}
	}
	return best, ok
}

func (m *memory) newBlock(kind MemoryKind, size int64) (int, error) {
	d, l := m.dev, m.dev.info.Limits
	object := fmt.Sprintf("block of %s of %v memory", BytesText(size), kind)
	if most := min(l.MaxMemoryAllocationSize, l.MaxBufferSize); size > most {
		return 0, &callError{Call: "vkAllocateMemory", Object: object,
			Err: fmt.Errorf("%w: the device takes at most %s at once", ErrOutOfMemory, BytesText(most))}
	}
	if m.full(kind, size) {
		return 0, &callError{Call: "vkAllocateMemory", Object: object, Result: outOfDevMemory}
	}
	b := &memoryBlock{heap: m.heaps[kind], size: size}
	var r Result
	if b.buffer, r = createBuffer(d.h, size); r < 0 {
		return 0, d.check("vkCreateBuffer", object, r)
	}
	if err := m.back(b, kind, object); err != nil {
		m.destroy(b)
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nextID++
	b.id = m.nextID
	m.blocks[b.id] = b
	m.taken[b.heap] += size
	d.shim.name(objectBuffer, b.buffer, fmt.Sprintf("block %d, %v", b.id, kind))
	return b.id, nil
}

// back gives a block's buffer its memory.
func (m *memory) back(b *memoryBlock, kind MemoryKind, object string) error {
	d := m.dev
	need, allowed := bufferRequirements(d.h, b.buffer)
	if allowed&(1<<m.types[kind]) == 0 {
		return invalid("vkGetBufferMemoryRequirements", object, "memory type %d does not suit it", m.types[kind])
	}
	var r Result
	if b.memory, r = allocateMemory(d.h, need, m.types[kind]); r < 0 {
		return d.check("vkAllocateMemory", object, r)
	}
	if r = bindBuffer(d.h, b.buffer, b.memory); r < 0 {
		return d.check("vkBindBufferMemory", object, r)
	}
	if kind != DeviceLocal {
		if b.mapped, r = mapMemory(d.h, b.memory, b.size); r < 0 {
			return d.check("vkMapMemory", object, r)
		}
	}
	return nil
}

// full reports whether a block of size bytes is above what LimitHeap or a profile allows.
func (m *memory) full(kind MemoryKind, size int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	all := size
	for _, n := range m.taken {
		all += n
	}
	d, heap := &m.dev.info, m.heaps[kind]
	return m.limit > 0 && all > m.limit || d.faults.RefusedFrom > 0 && m.asked >= d.faults.RefusedFrom ||
		len(d.types) > 0 && m.taken[heap]+size > d.Heaps[heap].Size
}

// freeBlock ends a block of an arena.
func (m *memory) freeBlock(id int) {
	m.mu.Lock()
	b := m.blocks[id]
	delete(m.blocks, id)
	if b != nil {
		m.taken[b.heap] -= b.size
	}
	m.mu.Unlock()
	if b != nil {
		m.destroy(b)
	}
}

// destroy ends what there is of a block. Freeing memory unmaps it.
func (m *memory) destroy(b *memoryBlock) {
	if b.buffer != 0 {
		destroyBuffer(m.dev.h, b.buffer)
	}
	if b.memory != 0 {
		freeMemory(m.dev.h, b.memory)
	}
}

func (m *memory) block(id int) *memoryBlock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blocks[id]
}

// close ends all blocks.
func (m *memory) close() {
	if m.local != nil {
		m.local.close()
		m.host.close()
	}
}

// Alloc takes size bytes of the given kind; they begin at a multiple of 256 bytes and hold whatever was there before.
// The name is for messages. Where the budget or the device has no room the error wraps ErrOutOfMemory and names what
// was asked, what is in use, and the budget. A size of 0 is allowed.
func (d *Device) Alloc(kind MemoryKind, size int64, name string) (View, error) {
	if size < 0 {
		return View{}, invalid("allocate", name, "size of %d bytes is negative", size)
	}
	a := d.memory.local
	if kind != DeviceLocal {
		a = d.memory.host
	}
	s, err := a.alloc(kind, max(size, 4), name)
	if err != nil {
		return View{}, err
	}
	base := &allocation{dev: d, name: name, size: size, kind: kind, block: d.memory.block(s.block), arena: a, span: s}
	return View{base, 0, size}, nil
}

// Free gives back the whole buffer that v is a view of. No submitted work may use it any more.
func (d *Device) Free(v View) error {
	switch {
	case v.base == nil:
		return nil
	case v.base.dev != d || v.base.scratch != nil:
		return invalid("free", v.Name(), "it is not a buffer of this device")
	case v.base.shared != nil:
		return invalid("free", v.Name(), "it is shared memory, which Shared.Close ends")
	case v.base.freed:
		return invalid("free", v.Name(), "it is already freed")
	}
	v.base.freed = true
	return v.base.arena.free(v.base.span)
}

// Stats counts a device's memory. All sizes are in bytes.
type Stats struct {
	InUse         int64 // device memory in living buffers, each rounded up to whole pages of 4 KiB
	Allocated     int64 // device memory taken from the driver
	PeakAllocated int64 // the most so far
	Budget        int64 // the ceiling of Allocated
	HostAllocated int64 // mapped host memory taken from the driver; 0 where that is device memory and counted above
	HostPeak      int64 // the most so far
	// memory of the host that Shared imported; RAM, on unified memory too, and beside all other counts and the budget
	SharedBytes int64
	Buffers     int // living buffers
	Blocks      int // living allocations of the driver
	AllocCalls  int // calls of vkAllocateMemory so far, failed ones included
}

// Stats returns the counts as they are now.
func (d *Device) Stats() Stats {
	s := d.memory.local.stats()
	if d.memory.host != d.memory.local {
		h := d.memory.host.stats()
		s.HostAllocated, s.HostPeak = h.Allocated, h.PeakAllocated
		s.Buffers, s.Blocks, s.AllocCalls = s.Buffers+h.Buffers, s.Blocks+h.Blocks, s.AllocCalls+h.AllocCalls
	}
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	s.SharedBytes = d.memory.shared
	return s
}

// Budget returns the ceiling of the device memory taken, in bytes.
func (d *Device) Budget() int64 { return d.memory.local.stats().Budget }

// SetBudget changes the ceiling of the device memory taken. It never gets below what is taken already.
func (d *Device) SetBudget(bytes int64) {
	a := d.memory.local
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count.Budget = max(bytes, a.count.Allocated)
}

// LimitHeap makes the driver seem to have bytes of memory, for tests: an allocation beyond fails as vkAllocateMemory
// does when memory is full. 0 ends it.
func (d *Device) LimitHeap(bytes int64) {
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}
