package vk

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// opKind is the sort of an op.
type opKind uint8

const (
	opDispatch opKind = iota
	opFill
	opCopy
	opAwait
)

// op is one entry of a recorded list.
type op struct {
	kind   opKind
	name   string
	kernel *Kernel
	views  []View // of a dispatch one per binding, of a fill the target, of a copy target and source
	push   []byte
	spec   []uint32
	grid   Grid
	value  uint32 // of a fill
	gate   *Gate  // of an await
}

// Recorder collects passes, fills and copies in the order in which they are to seem to run. The first error sticks; Err
// and Build return it. A Recorder is for one goroutine. Building does not use it up: it can be built again, or extended
// and built.
type Recorder struct {
	dev     *Device
	err     error
	ops     []op
	later   []op // that have not found their places among them yet
	putOff  bool // ops go there
	scratch []*allocation
	views   []View // for Args
}

// NewRecorder returns an empty recorder.
func NewRecorder(d *Device) *Recorder { return &Recorder{dev: d} }

// Err returns the first error.
func (r *Recorder) Err() error { return r.err }

// Len returns the number of ops so far, the index of the next one.
func (r *Recorder) Len() int {
	r.flush()
	return len(r.ops)
}

// Later has what f records run beside what is recorded afterwards, as far as nobody can tell: one op after each of
// those that come, and before the first that touches the same bytes; all of it before an Await and at the end of the
// list. Copies over a bus, which takes its time, fit beside passes that compute.
func (r *Recorder) Later(f func()) {
	before := r.putOff
	r.putOff = true
	f()
	r.putOff = before
}

// add appends an op.
func (r *Recorder) add(o op) {
	if r.putOff {
		r.later = append(r.later, o)
		return
	}
	r.flushBefore(&o)
	r.ops = append(r.ops, o)
	if len(r.later) > 0 {
		r.ops, r.later = append(r.ops, r.later[0]), r.later[1:]
	}
}

// flush appends all that was put off.
func (r *Recorder) flush() { r.ops, r.later = append(r.ops, r.later...), nil }

// flushBefore appends what of that must come before o.
func (r *Recorder) flushBefore(o *op) {
	n := len(r.later)
	for n > 0 && !o.collides(&r.later[n-1]) {
		n--
	}
	r.ops, r.later = append(r.ops, r.later[:n]...), r.later[n:]
}

// collides reports whether the order of two ops matters.
func (o *op) collides(p *op) (found bool) {
	if o.kind == opAwait {
		return true
	}
	o.each(func(v View, a Access) {
		p.each(func(w View, b Access) {
			overlap := v.base == w.base && v.off < w.off+w.size && w.off < v.off+v.size
			found = found || overlap && (a|b)&Write != 0
		})
	})
	return found
}

func (r *Recorder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Scratch declares a buffer of size bytes that lives from its first to its last use in the list and shares memory with
// others. What it holds at its first use is undefined. It can be used in this recorder only.
func (r *Recorder) Scratch(name string, size int64) View {
	if size < 0 {
		r.fail(invalid("record scratch", name, "size of %d bytes is negative", size))
		size = 0
	}
	a := &allocation{dev: r.dev, name: name, size: size, kind: DeviceLocal, scratch: r, index: len(r.scratch)}
	r.scratch = append(r.scratch, a)
	return View{a, 0, size}
}

// ScratchOf is Scratch for n elements.
func ScratchOf[T any](r *Recorder, name string, n int) Slice[T] {
	return Slice[T]{r.Scratch(name, int64(n)*sizeOf[T]())}
}

// Keep lets a scratch buffer live to the end of the list and beyond, until another program of its pool runs: see
// Program.Kept.
func (r *Recorder) Keep(v View) {
	if v.base == nil || v.base.scratch != r {
		r.fail(invalid("record keep", v.Name(), "not a scratch buffer of this list"))
		return
	}
	v.base.kept = true
}

// Dispatch appends a pass. A grid of no workgroups is allowed and runs nothing.
func (r *Recorder) Dispatch(p Pass, g Grid) {
	k := p.Kernel()
	used, push, spec := p.Args(r.views[:0])
	r.views = used[:0]
	if g.err != nil {
		r.fail(&callError{Call: "record", Object: k.Name, Err: g.err})
		return
	}
	if err := r.checkPass(k, used, push, spec); err != nil {
		r.fail(err)
		return
	}
	if !g.indirect.IsZero() {
		if err := r.checkView(k.Name+" indirect size", g.indirect, 4); err != nil {
			r.fail(err)
			return
		}
	}
	l := r.dev.info.Limits.MaxComputeWorkGroupCount
	if g.x > l[0] || g.y > l[1] || g.z > l[2] {
		r.fail(invalid("record", k.Name, "grid of %v workgroups, maxComputeWorkGroupCount is %v", g, l))
		return
	}
	r.add(op{kind: opDispatch, name: k.Name, kernel: k, views: slices.Clone(used), push: slices.Clone(push),
		spec: slices.Clone(spec), grid: g})
}

// checkPass checks a pass against its kernel and the device.
func (r *Recorder) checkPass(k *Kernel, used []View, push []byte, spec []uint32) error {
	if len(used) != len(k.Bindings) {
		return invalid("record", k.Name, "%d buffers bound, it has %d bindings", len(used), len(k.Bindings))
	}
	if len(push) != int(k.PushSize) {
		return invalid("record", k.Name, "%d bytes of push constants given, it has %d", len(push), k.PushSize)
	}
	if len(spec) != len(k.Specs) {
		return invalid("record", k.Name, "%d specialization constants given, it has %d", len(spec), len(k.Specs))
	}
	l := &r.dev.info.Limits
	for i, v := range used {
		where := k.Name + " binding " + k.Bindings[i].Name
		if err := r.checkView(where, v, max(l.MinStorageBufferOffsetAlignment, 4)); err != nil {
			return err
		}
		if v.size > l.MaxStorageBufferRange {
			return invalid("record", where, "%s is %d bytes, maxStorageBufferRange is %d", v.Name(), v.size,
				l.MaxStorageBufferRange)
		}
	}
	return nil
}

// checkView checks that v can be used in this recorder and begins at a multiple of align.
func (r *Recorder) checkView(where string, v View, align int64) error {
	switch {
	case v.base == nil:
		return invalid("record", where, "no buffer is bound")
	case v.base.dev != r.dev:
		return invalid("record", where, "%s belongs to another device", v.Name())
	case v.base.scratch != nil && v.base.scratch != r:
		return invalid("record", where, "%s is scratch of another recorder", v.Name())
	case v.base.freed:
		return invalid("record", where, "%s was freed", v.Name())
	case v.off%align != 0:
		return invalid("record", where, "offset %d of %s is not a multiple of %d", v.off, v.Name(), align)
	}
	return nil
}

// Fill appends setting every 32-bit word of v, whose offset and size must be multiples of 4, to value.
func (r *Recorder) Fill(v View, value uint32) {
	where := "fill " + v.Name()
	err := r.checkView(where, v, 4)
	if err == nil && v.size%4 != 0 {
		err = invalid("record", where, "%d bytes are no whole number of words", v.size)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.add(op{kind: opFill, name: where, views: []View{v}, value: value})
}

// Copy appends copying the bytes of src to dst, which must be of one size and not overlap.
func (r *Recorder) Copy(dst, src View) {
	where := "copy " + src.Name() + " to " + dst.Name()
	err := errors.Join(r.checkView(where, dst, 1), r.checkView(where, src, 1))
	if err == nil {
		err = checkCopy(dst, src)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.add(op{kind: opCopy, name: where, views: []View{dst, src}})
}

// checkCopy checks that the bytes of src can be copied to dst.
func checkCopy(dst, src View) error {
	if dst.size != src.size {
		return invalid("record copy", src.Name()+" to "+dst.Name(), "%d bytes into %d", src.size, dst.size)
	}
	if dst.base == src.base && dst.off < src.off+src.size && src.off < dst.off+dst.size {
		return invalid("record copy", src.Name()+" to "+dst.Name(), "source and target overlap")
	}
	return nil
}

// phantom returns a view of the list that has no memory behind it, or the zero View.
func (r *Recorder) phantom() (found View) {
	for i := range r.ops {
		r.ops[i].each(func(v View, _ Access) {
			if v.base.phantom {
				found = v
			}
		})
	}
	return found
}

// access returns what o does with its i-th view.
func (o *op) access(i int) Access {
	switch {
	case o.kind == opDispatch:
		return o.kernel.Bindings[i].Access
	case i == 0:
		return Write
	}
	return Read
}

// each calls f for every view that o touches, the indirect size included.
func (o *op) each(f func(v View, a Access)) {
	for i, v := range o.views {
		f(v, o.access(i))
	}
	if !o.grid.indirect.IsZero() {
		f(o.grid.indirect, Read)
	}
}

// skipped reports whether o runs nothing.
func (o *op) skipped() bool {
	switch o.kind {
	case opDispatch:
		return o.grid.empty()
	case opAwait:
		return true
	}
	return o.views[0].size == 0
}

func (o *op) dispatches() bool { return o.kind == opDispatch && !o.skipped() }

// serialVariable, set to 1, makes every program serial: see BuildOptions.
const serialVariable = "VKSPLAT_SERIAL"

func serialByEnvironment() bool { return os.Getenv(serialVariable) == "1" }

// plan is where scratch buffers lie and before which ops barriers stand.
type plan struct {
	at       []placement // by scratch index
	regions  []int64
	barriers []bool // by op
	indirect []bool // by op: its barrier is also for grid sizes that the device reads
}

// lifetimes returns from which op to which each scratch buffer is used; in serial mode that is all of them.
func (r *Recorder) lifetimes(serial bool) []lifetime {
	list := make([]lifetime, len(r.scratch))
	for i, s := range r.scratch {
		list[i] = lifetime{size: max(s.size, 16), align: memoryAlign, first: len(r.ops), last: -1}
		if serial {
			list[i].first, list[i].last = 0, len(r.ops)
		}
	}
	for i := range r.ops {
		r.ops[i].each(func(v View, _ Access) {
			if v.base.scratch == r {
				l := &list[v.base.index]
				l.first, l.last = min(l.first, i), max(l.last, i)
			}
		})
	}
	for i, s := range r.scratch {
		if s.kept {
			list[i].last = len(r.ops)
		}
	}
	return list
}

// Sizes of regions of scratch memory, in bytes: the budget may have holes, so that not all of it can be had at once. A
// buffer that is larger has a region of its size.
const (
	smallRegion = 64 << 20  // largest region while all together take less than manyBytes
	largeRegion = 256 << 20 // largest region afterwards
	manyBytes   = 1 << 30
)

// plan places the scratch buffers and derives the barriers.
func (r *Recorder) plan(serial bool) (plan, error) {
	r.flush()
	if r.err != nil {
		return plan{}, r.err
	}
	if err := r.checkScratch(); err != nil {
		return plan{}, err
	}
	p := plan{barriers: make([]bool, len(r.ops)), indirect: make([]bool, len(r.ops))}
	live, most := r.lifetimes(serial), int64(smallRegion)
	if concurrent(live) > manyBytes {
		most = largeRegion
	}
	p.at, p.regions = place(live, min(most, r.dev.info.Limits.MaxMemoryAllocationSize, r.dev.info.Limits.MaxBufferSize))
	var h hazards
	var t []touch
	last := 0 // the op with the last barrier
	for i := range r.ops {
		if r.ops[i].kind == opAwait { // the command buffer after it begins with a barrier
			h.reset()
			continue
		}
		t = t[:0]
		if !r.ops[i].skipped() {
			r.ops[i].each(func(v View, a Access) { t = append(t, p.touch(v, a)) })
		}
		p.barriers[i] = h.step(t) || serial && i > 0
		p.indirect[i] = serial
		if p.barriers[i] {
			last = i
		}
		if grid := r.ops[i].grid.indirect; !grid.IsZero() && h.stepIndirect(p.touch(grid, Read)) {
			p.indirect[last] = true
		}
	}
	return p, nil
}

// touch names the memory behind v: blocks of the arena by their id, regions of scratch by numbers from 2^32 on.
func (p *plan) touch(v View, a Access) touch {
	if v.base.block != nil {
		return touch{buf: uint64(v.base.block.id), off: v.base.span.off + v.off, size: v.size, acc: a}
	}
	at := p.at[v.base.index]
	return touch{buf: 1<<32 + uint64(at.region), off: at.off + v.off, size: v.size, acc: a}
}

// checkScratch refuses a list that reads a scratch buffer before anything was written to it.
func (r *Recorder) checkScratch() error {
	written := make([]bool, len(r.scratch))
	var err error
	for i := range r.ops {
		o := &r.ops[i]
		o.each(func(v View, a Access) {
			if v.base.scratch == r && a == Read && v.size > 0 && !written[v.base.index] && err == nil {
				err = invalid("build", o.name, "it reads scratch buffer %s, which nothing wrote before", v.Name())
			}
		})
		o.each(func(v View, a Access) {
			if v.base.scratch == r && a&Write != 0 {
				written[v.base.index] = true
			}
		})
	}
	return err
}

// ScratchRegions returns the sizes of the regions that the scratch buffers of the list will lie in, or nil if the list
// has an error.
func (r *Recorder) ScratchRegions() []int64 {
	p, err := r.plan(serialByEnvironment())
	if err != nil {
		return nil
	}
	return p.regions
}

// String returns the plan: one line per op with its grid and buffers, and where barriers stand.
func (r *Recorder) String() string {
	var b strings.Builder
	p, err := r.plan(serialByEnvironment())
	if err != nil {
		return fmt.Sprintf("invalid: %v\n", err)
	}
	for i := range r.ops {
		o := &r.ops[i]
		switch {
		case p.barriers[i] && p.indirect[i]:
			b.WriteString("     ---- barrier, for sizes of grids too\n")
		case p.barriers[i]:
			b.WriteString("     ---- barrier\n")
		}
		fmt.Fprintf(&b, "%4d %s", i, o.name)
		if o.kind == opDispatch {
			fmt.Fprintf(&b, "%s %v", describeSpecs(o.kernel, o.spec), o.grid)
			for j, v := range o.views {
				fmt.Fprintf(&b, " %s=%s(%v %d)", o.kernel.Bindings[j].Name, v.Name(), o.access(j), v.size)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
