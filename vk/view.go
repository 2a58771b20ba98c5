package vk

import "unsafe"

// View is a range of bytes of device memory: all or part of what Device.Alloc or Recorder.Scratch gave. The zero View
// is of nothing. Views are small and are passed by value; two are equal when they are of the same bytes.
type View struct {
	base      *allocation
	off, size int64
}

// allocation is one buffer of an arena, or one scratch buffer of a recorder that gets its bytes when a program is
// built.
type allocation struct {
	dev     *Device
	name    string
	size    int64
	kind    MemoryKind
	block   *memoryBlock // nil for scratch
	arena   *arena
	span    span
	freed   bool
	scratch *Recorder // nil unless scratch
	index   int       // among the recorder's scratch buffers
	shared  *Shared   // nil unless it is a device's part of one
	kept    bool      // scratch that lives to the end of the list
	phantom bool      // there is no memory behind it
}

// Phantom returns a buffer that is not there: lists that use it can be recorded and measured (Recorder.ScratchRegions),
// not built.
func (d *Device) Phantom(size int64, name string) View {
	return View{&allocation{dev: d, name: name, size: size, kind: DeviceLocal, block: &memoryBlock{id: -1, size: size},
		phantom: true}, 0, size}
}

func (v View) Size() int64 { return v.size }

func (v View) Name() string {
	if v.base == nil {
		return "nothing"
	}
	return v.base.name
}

// IsZero reports whether v is the zero View, of no memory at all. A View of zero bytes of a buffer is not.
func (v View) IsZero() bool { return v.base == nil }

// Slice returns the size bytes of v that begin at byte off. Asking for bytes outside of v yields the zero View, which
// every use refuses.
func (v View) Slice(off, size int64) View {
	if v.base == nil || off < 0 || size < 0 || off > v.size || size > v.size-off {
		return View{}
	}
	return View{v.base, v.off + off, size}
}

// Host returns the bytes of v as the host sees them, or nil when v is not mapped (device-local or scratch memory). The
// device sees what the host wrote before the submit; the host sees what the device wrote once the ticket is done.
func (v View) Host() []byte {
	if v.base == nil || v.base.block == nil || v.base.block.mapped == nil {
		return nil
	}
	return unsafe.Slice((*byte)(v.base.block.mapped), v.base.block.size)[v.base.span.off+v.off:][:v.size:v.size]
}

// Slice is a View of elements of type T, which must have a fixed size and no pointers.
type Slice[T any] struct {
	View
}

// Cast gives the bytes of v a type. A rest that is too short for an element is left out of N.
func Cast[T any](v View) Slice[T] { return Slice[T]{v} }

func sizeOf[T any]() int64 {
	var x T
	return int64(unsafe.Sizeof(x))
}

func (s Slice[T]) N() int {
	if n := sizeOf[T](); n > 0 {
		return int(s.size / n)
	}
	return 0
}

// At returns n elements from element i on; outside of s that is the zero Slice, which every use refuses.
func (s Slice[T]) At(i, n int) Slice[T] {
	return Slice[T]{s.Slice(int64(i)*sizeOf[T](), int64(n)*sizeOf[T]())}
}

// Make allocates n elements. The memory holds whatever was there before.
func Make[T any](d *Device, kind MemoryKind, n int, name string) (Slice[T], error) {
	v, err := d.Alloc(kind, int64(n)*sizeOf[T](), name)
	return Slice[T]{v}, err
}

// Host returns the elements of s as the host sees them (see View.Host), or nil when s is not mapped.
func Host[T any](s Slice[T]) []T {
	b := s.View.Host()
	if len(b) == 0 || s.N() == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), s.N())
}

// Bytes returns the bytes of x, for push constants. T must have no pointers.
func Bytes[T any](x *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x)) }
