package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"vksplat/vk"
)

// list is a recorded list of passes with the buffers it reads and writes. Everything is freed when it has run.
type list struct {
	d         *vk.Device
	r         *vk.Recorder
	err       error
	held      []vk.View
	outs      []readback
	mixed     bool   // chunks are in mixed precision
	cpuRaster bool   // rasterize and rasterize_bwd run as on processors
	subgroup  uint32 // of rasterize; 0: the device's own
	everyone  bool   // rasterize gives splats to all patches
	alone     bool   // rasterize draws into memory of the band's rows
	packed    bool   // states are packed
}

// readback is a written buffer and where the host sees it.
type readback struct {
	from, to vk.View
	take     func() error
}

func (t *trial) list() *list {
	return &list{d: t.d, r: vk.NewRecorder(t.d), mixed: t.mixed, cpuRaster: t.cpuRaster, packed: t.packed}
}

// guardWord fills outputs before the passes run, and guardBytes behind their end: what still holds it was not written.
const (
	guardWord  = 0xDEADBEEF
	guardBytes = 256
)

// alloc makes mapped memory that lives until the list has run.
func (l *list) alloc(kind vk.MemoryKind, bytes int64, name string) (v vk.View) {
	if l.err == nil {
		if v, l.err = l.d.Alloc(kind, bytes, name); l.err == nil {
			l.held = append(l.held, v)
		}
	}
	return v
}

// input makes a buffer that kernels only read.
func input[T any](l *list, name string, data []T) vk.Slice[T] {
	s := vk.Cast[T](l.alloc(vk.Upload, int64(max(1, len(data)))*sizeOf[T](), name))
	copy(vk.Host(s), data)
	return s
}

// buffer is memory that kernels write. The view is longer than n by a guard that nothing may write.
type buffer[T any] struct {
	vk.Slice[T]
	name  string
	start []T // [n] what it held at first; nil for an output
	got   []T // [n] after the list has run
}

// output makes a buffer of n elements that nothing has written yet.
func output[T any](l *list, name string, n int) *buffer[T] {
	bytes := int64(n) * sizeOf[T]()
	b := &buffer[T]{Slice: vk.Cast[T](l.r.Scratch(name, bytes+guardBytes)), name: name}
	l.r.Fill(b.View, guardWord)
	host := l.alloc(vk.Readback, bytes+guardBytes, name+" read back")
	l.outs = append(l.outs, readback{from: b.View, to: host, take: func() error {
		for k, w := range wordsOf(host.Host()[bytes:]) {
			if w != guardWord {
				return fmt.Errorf("binding %s: word %d behind its end was written: %#x", name, k, w)
			}
		}
		b.got = append([]T(nil), vk.Host(vk.Cast[T](host))[:n]...)
		return nil
	}})
	return b
}

// inout makes a buffer that holds data at first.
func inout[T any](l *list, name string, data []T) *buffer[T] {
	b := output[T](l, name, len(data))
	b.start = data
	if len(data) > 0 {
		src := input(l, name+" to start with", data)
		l.r.Copy(b.View.Slice(0, src.Size()), src.View)
	}
	return b
}

// run builds and submits the list, waits, and reads the buffers back.
func (l *list) run() (err error) {
	defer func() { err = errors.Join(err, l.free()) }()
	if l.err != nil {
		return l.err
	}
	for _, o := range l.outs {
		l.r.Copy(o.to, o.from)
	}
	if err := l.submit(); err != nil {
		return err
	}
	for _, o := range l.outs {
		if err := o.take(); err != nil {
			return err
		}
	}
	return nil
}

func (l *list) submit() (err error) {
	pool := l.d.NewScratchPool()
	defer func() { err = errors.Join(err, pool.Close()) }()
	p, err := l.r.Build("check", pool, vk.BuildOptions{NoTimings: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s := l.d.NewSubmission()
	s.Add(p)
	ticket, err := l.d.Submit(s)
	if err != nil {
		return err
	}
	return l.d.Wait(ticket)
}

func (l *list) free() (err error) {
	for _, v := range l.held {
		err = errors.Join(err, l.d.Free(v))
	}
	l.held = nil
	return err
}

// written returns what the kernel wrote of b, or an error if the elements from n on do not all stand as they were.
func (b *buffer[T]) written(n int) ([]T, error) {
	for i := n; i < len(b.got); i++ {
		for _, w := range wordsOf(vk.Bytes(&b.got[i])) {
			if w != guardWord {
				return nil, fmt.Errorf("binding %s: element [%d] was written, only the first %d may be", b.name, i, n)
			}
		}
	}
	return b.got[:n], nil
}

func sizeOf[T any]() int64 {
	var x T
	return int64(len(vk.Bytes(&x)))
}

func wordsOf(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// floatsOf returns the floats that x is made of.
func floatsOf[T any](x []T) []float32 {
	var f []float32
	for i := range x {
		for _, w := range wordsOf(vk.Bytes(&x[i])) {
			f = append(f, math.Float32frombits(w))
		}
	}
	return f
}

// with returns data with the element at i replaced.
func with[T any](data []T, i int, v T) []T {
	c := append([]T(nil), data...)
	c[i] = v
	return c
}
