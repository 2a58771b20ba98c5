package vk

import (
	"errors"
	"fmt"
	"slices"
)

// BuildOptions are the choices of Recorder.Build.
type BuildOptions struct {
	// SplitAfter lists ops after which a new command buffer starts; each command buffer is a submission of its own, so
	// that a desktop driver's watchdog sees several short jobs instead of a long one. Results do not depend on it.
	SplitAfter []int
	// Serial places no two scratch buffers in the same memory, puts a full barrier after every op and sets all scratch
	// memory to 0xFFFFFFFF (a NaN) at the start. VKSPLAT_SERIAL=1 does so too. Results must not depend on it: where
	// they do, a kernel's declared accesses are wrong. If the device is lost, the error names the op that ran.
	Serial bool
	// NoTimings leaves out the timestamps around ops; Timings returns nothing then.
	NoTimings bool
}

// Program is a list of ops as command buffers, recorded once, that can be submitted again and again, though not again
// before it is done: who wants several in flight builds several. It works on the buffers that were bound; they must not
// be freed before it.
type Program struct {
	dev        *Device
	name       string
	pool       *ScratchPool
	generation uint64 // of the pool

	cmdPool, setPool, queries uint64
	cbs                       []uint64
	waits                     []await
	first, last               Ticket // of the first and the last command buffer, as submitted last
	closed                    bool

	reached Slice[uint32] // one more than the op that runs, in host memory; only where the program is serial

	kept  map[*allocation]View // where the scratch buffers lie that the list keeps
	names []string             // per op
	// per op, the query that holds the time before it and what is timed with it; the one after them is the next
	start []int
	timed []int    // per op, how many are timed together
	ticks []uint64 // queries as read last
}

// Build plans, compiles and records the list. Scratch buffers get their place in pool; where that has to grow, the
// device is waited for and programs built from it earlier become stale. The name is for messages and debug labels.
// Device.Close ends the program if Close has not.
func (r *Recorder) Build(name string, pool *ScratchPool, o BuildOptions) (*Program, error) {
	if r.err != nil {
		return nil, fmt.Errorf("build %s: %w", name, r.err)
	}
	if pool == nil || pool.dev != r.dev {
		return nil, invalid("build", name, "the scratch pool is of another device")
	}
	r.flush()
	if v := r.phantom(); !v.IsZero() {
		return nil, invalid("build", name, "%s is a phantom, it has no memory", v.Name())
	}
	serial := o.Serial || serialByEnvironment()
	b := builder{r: r, serial: serial, p: &Program{dev: r.dev, name: name, pool: pool}}
	err := b.prepare(o)
	if err == nil {
		err = b.record()
	}
	if err != nil {
		b.p.end()
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	r.dev.owned.add(b.p)
	return b.p, nil
}

// builder is the state of one Build.
type builder struct {
	r       *Recorder
	p       *Program
	serial  bool
	plan    plan
	regions []View
	pipes   []*pipeline // per op, nil where nothing is dispatched
	sets    []uint64    // likewise
	parts   []part      // per command buffer
}

// part is the ops [first, end), which one command buffer holds.
type part struct {
	first, end int
	gate       *Gate // that it waits at, or nil
}

// prepare makes everything that recording refers to.
func (b *builder) prepare(o BuildOptions) (err error) {
	d, ops := b.r.dev, b.r.ops
	if b.plan, err = b.r.plan(b.serial); err != nil {
		return err
	}
	if b.regions, b.p.generation, err = b.p.pool.reserve(b.plan.regions); err != nil {
		return err
	}
	b.keep()
	if b.serial {
		if b.p.reached, err = Make[uint32](d, Readback, 1, b.p.name+" reached"); err != nil {
			return err
		}
	}
	if err = b.split(o.SplitAfter); err != nil {
		return err
	}
	if err = b.bind(); err != nil {
		return err
	}
	var call string
	var res Result
	if b.p.cmdPool, b.p.cbs, call, res = createCommandBuffers(d.h, d.info.family, len(b.parts)); res < 0 {
		return d.check(call, b.p.name, res)
	}
	for i := range ops {
		b.p.names = append(b.p.names, ops[i].name)
	}
	if o.NoTimings || d.info.Limits.TimestampBits == 0 {
		return nil
	}
	n := len(ops) + len(b.parts)
	if b.p.queries, res = createQueryPool(d.h, n); res < 0 {
		return d.check("vkCreateQueryPool", b.p.name, res)
	}
	b.p.ticks = make([]uint64, n)
	return nil
}

// keep notes where the scratch buffers lie that the list keeps.
func (b *builder) keep() {
	for i, s := range b.r.scratch {
		if s.kept {
			if b.p.kept == nil {
				b.p.kept = map[*allocation]View{}
			}
			at := b.plan.at[i]
			b.p.kept[s] = b.regions[at.region].Slice(at.off, s.size)
		}
	}
}

// split decides where command buffers end: after the given ops, and at each await, which is in neither of the two
// beside it.
func (b *builder) split(after []int) error {
	ops, n := b.r.ops, len(b.r.ops)
	for _, i := range after {
		if i < 0 || i >= n {
			return invalid("split", b.p.name, "after op %d of %d", i, n)
		}
	}
	var next part
	for i := range ops {
		switch {
		case ops[i].kind == opAwait:
			next.end = i
			b.parts = append(b.parts, next)
			b.p.waits = append(b.p.waits, await{part: len(b.parts), gate: ops[i].gate})
			next = part{first: i + 1, gate: ops[i].gate}
		case i > next.first && slices.Contains(after, i-1):
			next.end = i
			b.parts = append(b.parts, next)
			next = part{first: i}
		}
	}
	next.end = n
	if b.parts = append(b.parts, next); len(b.parts) > maxBatches {
		return invalid("split", b.p.name, "%d command buffers, at most %d are allowed", len(b.parts), maxBatches)
	}
	return nil
}

// bind compiles the kernels and makes the descriptor sets.
func (b *builder) bind() error {
	d, ops := b.r.dev, b.r.ops
	var err error
	if b.pipes, err = d.kernels.compileAll(ops); err != nil {
		return err
	}
	sets, buffers := 0, 0
	for i := range ops {
		if b.pipes[i] != nil {
			sets, buffers = sets+1, buffers+len(ops[i].views)
		}
	}
	if sets == 0 {
		return nil
	}
	b.sets = make([]uint64, len(ops))
	var r Result
	if b.p.setPool, r = d.shim.createDescriptorPool(sets, buffers); r < 0 {
		return d.check("vkCreateDescriptorPool", b.p.name, r)
	}
	writes := make([]setWrite, 0, buffers)
	for i := range ops {
		if b.pipes[i] == nil {
			continue
		}
		if b.sets[i], r = allocateSet(d.h, b.p.setPool, b.pipes[i].set); r < 0 {
			return d.check("vkAllocateDescriptorSets", ops[i].name, r)
		}
		for j, v := range ops[i].views {
			buffer, off, size := b.where(v)
			writes = append(writes, newSetWrite(b.sets[i], buffer, off, max(size, 4), j))
		}
	}
	d.shim.updateSets(writes)
	return nil
}

// where returns the buffer behind v and the place in it. A view of no bytes is given the start of its buffer, which
// always has a word: it can be bound but holds nothing.
func (b *builder) where(v View) (buffer uint64, off, size int64) {
	base, at := v.base, v.off
	if v.size == 0 {
		at = 0
	}
	if base.block == nil {
		place := b.plan.at[base.index]
		region := b.regions[place.region].base
		return region.block.buffer, region.span.off + place.off + at, v.size
	}
	return base.block.buffer, base.span.off + at, v.size
}

// record fills the command buffers.
func (b *builder) record() error {
	d, p := b.r.dev, b.p
	p.start, p.timed = make([]int, len(b.r.ops)), make([]int, len(b.r.ops))
	query := 0
	for k, cb := range p.cbs {
		part := b.parts[k]
		if err := d.check("vkBeginCommandBuffer", p.name, beginCommands(cb)); err != nil {
			return err
		}
		d.shim.cmdLabel(cb, p.name)
		if k == 0 {
			b.open(cb)
		}
		if part.gate != nil {
			d.shim.cmdGateBarrier(cb)
			// the await: from the end of the part before to the beginning of this one
			p.start[part.first-1], p.timed[part.first-1] = query-1, 1
		}
		if p.queries != 0 {
			cmdTimestamp(cb, p.queries, query)
			query++
		}
		for i := part.first; i < part.end; {
			if b.plan.barriers[i] {
				b.barrier(cb, i)
			}
			if b.serial {
				buffer, off, size := b.where(b.p.reached.View)
				cmdFill(cb, buffer, off, size, uint32(i+1))
			}
			n := b.together(i, part.end)
			for range n {
				b.emit(cb, i)
				p.start[i], p.timed[i] = query-1, n
				i++
			}
			if p.queries != 0 {
				cmdTimestamp(cb, p.queries, query)
				query++
			}
		}
		if k == len(p.cbs)-1 || b.parts[k+1].gate != nil {
			d.shim.cmdHostBarrier(cb)
		}
		d.shim.cmdEndLabel(cb)
		if err := d.check("vkEndCommandBuffer", p.name, endCommands(cb)); err != nil {
			return err
		}
	}
	if p.queries != 0 {
		p.ticks = p.ticks[:query]
	}
	return nil
}

// together returns how many ops from op i on, all before end, are timed together: those of one name without a barrier
// between them, such as a kernel's for each chunk of a model. They may run at the same time, which a timestamp between
// them may prevent.
func (b *builder) together(i, end int) int {
	n := 1
	for i+n < end && !b.plan.barriers[i+n] && b.r.ops[i+n].name == b.r.ops[i].name {
		n++
	}
	return n
}

// open records what stands before the first op: the list is run again and again after others, so a full barrier.
func (b *builder) open(cb uint64) {
	d := b.r.dev
	if b.p.queries != 0 {
		cmdResetQueries(cb, b.p.queries, len(b.p.ticks))
	}
	d.shim.cmdBarrier(cb)
	if !b.serial {
		return
	}
	for _, v := range b.regions {
		cmdFill(cb, v.base.block.buffer, v.base.span.off, v.size&^3, 0xFFFFFFFF)
	}
	d.shim.cmdBarrier(cb)
}

// barrier records the barrier before op i. One for grid sizes too keeps the device from preparing what follows.
func (b *builder) barrier(cb uint64, i int) {
	if b.plan.indirect[i] {
		b.r.dev.shim.cmdBarrier(cb)
	} else {
		b.r.dev.shim.cmdMemoryBarrier(cb)
	}
}

// emit records op i.
func (b *builder) emit(cb uint64, i int) {
	o, d := &b.r.ops[i], b.r.dev
	if o.skipped() {
		return
	}
	d.shim.cmdLabel(cb, o.name)
	switch o.kind {
	case opDispatch:
		pipe := b.pipes[i]
		cmdBind(cb, pipe.handle, pipe.pipeline, b.sets[i])
		cmdPush(cb, pipe.pipeline, o.push)
		if o.grid.indirect.IsZero() {
			cmdDispatch(cb, o.grid.x, o.grid.y, o.grid.z)
		} else {
			buffer, off, _ := b.where(o.grid.indirect)
			cmdDispatchIndirect(cb, buffer, off)
		}
	case opFill:
		buffer, off, size := b.where(o.views[0])
		cmdFill(cb, buffer, off, size, o.value)
	case opCopy:
		dst, off, size := b.where(o.views[0])
		src, srcOff, _ := b.where(o.views[1])
		d.shim.cmdCopy(cb, src, dst, srcOff, off, size)
	}
	d.shim.cmdEndLabel(cb)
}

// Kept returns where a scratch buffer, or a part of one, lies that the list keeps (Recorder.Keep): what the program
// wrote stays there until another program of the pool runs. It is the zero View where the list does not keep it, and
// where the program is stale.
func (p *Program) Kept(v View) View {
	if p.Stale() {
		return View{}
	}
	return p.kept[v.base].Slice(v.off, v.size)
}

// Name returns the name given to Build.
func (p *Program) Name() string { return p.name }

// Stale reports whether the scratch memory that the program uses is gone, so that it can no longer be submitted and
// must be built anew.
func (p *Program) Stale() bool { return p.closed || !p.pool.current(p.generation) }

// Close ends the program, after the device is idle if it may still be running.
func (p *Program) Close() error {
	if p.closed {
		return nil
	}
	var err error
	if done, e := p.dev.Done(p.last); !done || e != nil {
		err = errors.Join(e, p.dev.WaitIdle())
	}
	p.dev.owned.remove(p)
	p.end()
	return err
}

// end destroys what the program has.
func (p *Program) end() {
	h := p.dev.h
	if p.cmdPool != 0 {
		destroyCommandPool(h, p.cmdPool)
	}
	if p.setPool != 0 {
		destroyDescriptorPool(h, p.setPool)
	}
	if p.queries != 0 {
		destroyQueryPool(h, p.queries)
	}
	if !p.reached.IsZero() {
		_ = p.dev.Free(p.reached.View)
	}
	p.cmdPool, p.setPool, p.queries, p.reached, p.closed = 0, 0, 0, Slice[uint32]{}, true
}
