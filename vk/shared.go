package vk

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// Shared is memory of the host that several devices work on, of any drivers: each imports it
// (VK_EXT_external_memory_host) and has a buffer over it. Where a device cannot, each has mapped memory of its own
// instead, between which Carry copies.
//
// Who may touch which bytes when is for the caller to order: a device's work before an Await, or before the end of a
// program, is seen by all others once its ticket is done and the gate that they wait at was opened after that.
type Shared struct {
	name  string
	size  int64
	parts []*sharedPart // per device

	mu     sync.Mutex     // guards the fields below
	memory unsafe.Pointer // nil where it was not imported, and after the end
	bytes  int64          // of memory: size in whole units of import
	living int            // parts that have not ended
}

type sharedPart struct {
	of   *Shared
	base *allocation
}

// leastPage is a size of pages that suits every machine; import alignments are at most that too.
const leastPage = 64 << 10

// NewShared returns memory of size bytes, all zero, that these devices share. The name is for messages. The memory ends
// with Close, or with the last of the devices.
func NewShared(devices []*Device, size int64, name string) (*Shared, error) {
	if len(devices) == 0 || size <= 0 {
		return nil, invalid("share", name, "%d bytes between %d devices", size, len(devices))
	}
	for i, d := range devices {
		if d == nil || d.h == 0 || slices.Contains(devices[:i], d) {
			return nil, invalid("share", name, "device %d of %d is closed or there twice", i, len(devices))
		}
		if most := min(d.info.Limits.MaxMemoryAllocationSize, d.info.Limits.MaxBufferSize) - leastPage; size > most {
			return nil, &callError{Call: "share", Object: name,
				Err: fmt.Errorf("%w: %s asked, %s takes at most %s at once", ErrOutOfMemory, BytesText(size),
					d.info.Name, BytesText(most))}
		}
	}
	if most := availableRAM() / 2; size > most {
		return nil, &callError{Call: "share", Object: name,
			Err: fmt.Errorf("%w: %s of RAM requested, more than half of what is available (%s)", ErrOutOfMemory,
				BytesText(size), BytesText(most))}
	}
	s := &Shared{name: name, size: size}
	if !slices.ContainsFunc(devices, func(d *Device) bool { return !d.info.Features.ExternalMemoryHost }) {
		err := s.importAll(devices)
		if err == nil {
			return s, nil
		}
		if err := errors.Join(s.Close(), lostAmong(devices, err)); err != nil {
			return nil, err
		}
		s = &Shared{name: name, size: size}
	}
	for _, d := range devices {
		v, err := d.Alloc(Readback, size, name)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		clear(v.Host())
		s.add(v.base)
	}
	return s, nil
}

func lostAmong(devices []*Device, err error) error {
	if slices.ContainsFunc(devices, (*Device).Lost) {
		return err
	}
	return nil
}

// add gives a device its part.
func (s *Shared) add(base *allocation) {
	base.shared = s
	p := &sharedPart{of: s, base: base}
	s.parts = append(s.parts, p)
	s.living++
	base.dev.owned.add(p)
}

// importAll takes memory of the host and imports it on every device.
func (s *Shared) importAll(devices []*Device) error {
	align := int64(leastPage)
	for _, d := range devices {
		align = max(align, d.info.Limits.MinImportedHostPointerAlignment)
	}
	s.bytes = (s.size + align - 1) / align * align
	if s.memory = takeHost(s.bytes, align); s.memory == nil {
		return &callError{Call: "share", Object: s.name,
			Err: fmt.Errorf("%w: the system has no %s", ErrOutOfMemory, BytesText(s.bytes))}
	}
	for _, d := range devices {
		b, err := d.memory.imported(s.memory, s.bytes, s.name)
		if err != nil {
			return err
		}
		s.add(&allocation{dev: d, name: s.name, size: s.size, kind: Readback, block: b,
			span: span{block: b.id, size: s.size}})
	}
	return nil
}

// imported makes a block of memory of the host at p.
func (m *memory) imported(p unsafe.Pointer, size int64, name string) (*memoryBlock, error) {
	d, object := m.dev, fmt.Sprintf("%s of host memory for %s", BytesText(size), name)
	types, r := d.shim.hostTypes(p)
	if r < 0 {
		return nil, d.check("vkGetMemoryHostPointerPropertiesEXT", object, r)
	}
	b := &memoryBlock{size: size, mapped: p}
	if b.buffer, r = d.shim.createHostBuffer(size); r < 0 {
		return nil, d.check("vkCreateBuffer", object, r)
	}
	if err := m.bindImported(b, types, object); err != nil {
		m.destroy(b)
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nextID++
	b.id = m.nextID
	m.shared += size
	d.shim.name(objectBuffer, b.buffer, name)
	return b, nil
}

// bindImported gives a block's buffer the memory of the host that it is for.
func (m *memory) bindImported(b *memoryBlock, types uint32, object string) error {
	d := m.dev
	need, allowed := bufferRequirements(d.h, b.buffer)
	_, table := d.in.memory(d.info.handle, false)
	t, ok := chooseType(table, allowed&types, Readback)
	if !ok || need > b.size {
		return invalid("import", object, "no coherent memory type suits it, or the buffer needs more, %d bytes", need)
	}
	var r Result
	if b.memory, r = d.shim.importHost(b.mapped, b.size, t); r < 0 {
		return d.check("vkAllocateMemory", object, r)
	}
	if r = bindBuffer(d.h, b.buffer, b.memory); r < 0 {
		return d.check("vkBindBufferMemory", object, r)
	}
	return nil
}

// Close ends the part of a device, when the device or the whole is closed.
func (p *sharedPart) Close() error {
	s, base, d := p.of, p.base, p.base.dev
	s.mu.Lock()
	defer s.mu.Unlock()
	if base.freed {
		return nil
	}
	d.owned.remove(p)
	var err error
	if base.arena != nil {
		base.shared = nil
		err = d.Free(View{base, 0, base.size})
	} else {
		base.freed = true
		d.memory.destroy(base.block)
		d.memory.mu.Lock()
		d.memory.shared -= base.block.size
		d.memory.mu.Unlock()
	}
	if s.living--; s.living == 0 {
		s.release()
	}
	return err
}

// release gives the memory of the host back, which no device has any more.
func (s *Shared) release() {
	if s.memory != nil {
		giveHost(s.memory, s.bytes)
		s.memory = nil
	}
}

// Close gives the memory back. Neither submitted work nor the bytes that Host and HostOf gave may be in use.
func (s *Shared) Close() error {
	var err error
	for _, p := range s.parts {
		err = errors.Join(err, p.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	return err
}

// part returns what d has of s, or nil.
func (s *Shared) part(d *Device) *sharedPart {
	for _, p := range s.parts {
		if p.base.dev == d {
			return p
		}
	}
	return nil
}

// View returns the memory as d has it, or the zero View, which every use refuses, where d is none of its devices.
func (s *Shared) View(d *Device) View {
	if p := s.part(d); p != nil {
		return View{p.base, 0, s.size}
	}
	return View{}
}

// Imported reports whether the devices work on the same bytes, so that nothing has to be carried.
func (s *Shared) Imported() bool { return s.parts[0].base.arena == nil }

// Host returns the bytes that all devices work on, or nil where each has its own.
func (s *Shared) Host() []byte {
	if !s.Imported() {
		return nil
	}
	return s.HostOf(s.parts[0].base.dev)
}

// HostOf returns the bytes that d works on, or nil where d is none of the devices or the memory has ended.
func (s *Shared) HostOf(d *Device) []byte {
	if v := s.View(d); !v.IsZero() && !v.base.freed {
		return v.Host()
	}
	return nil
}

// Carry makes to see the n bytes from byte off on as from has them: it copies them where each device has its own
// memory. Nobody else may touch the bytes meanwhile.
func (s *Shared) Carry(from, to *Device, off, n int64) error {
	src, dst := s.HostOf(from), s.HostOf(to)
	if src == nil || dst == nil || off < 0 || n < 0 || off > s.size || n > s.size-off {
		return invalid("carry", s.name, "bytes %d to %d of %d, between devices that have them", off, off+n, s.size)
	}
	if from != to && !s.Imported() {
		copy(dst[off:off+n], src[off:off+n])
	}
	return nil
}
