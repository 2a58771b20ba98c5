package vk

import (
	"runtime"
	"time"
)

// Ticket stands for submitted work and all that was submitted before it on the device. Tickets grow; 0 stands for no
// work and is always done.
type Ticket uint64

// Submittable is a part of a Submission: a *Program or a *Copier.
type Submittable interface {
	// ready returns why the command buffers cannot be submitted now, or nil.
	ready() error
	// commands returns the command buffers; each but the last ends a batch.
	commands() []uint64
	// awaits returns which of them wait at which gates, in order. The first never does.
	awaits() []await
	// submitted tells the ticket of the first command buffer's batch; each other one has the ticket after.
	submitted(first Ticket)
}

// await says that a command buffer waits at a gate.
type await struct {
	part int // index of the command buffer
	gate *Gate
}

// Submission is a list of programs and copies that are queued together. It can be used again after Reset.
type Submission struct {
	items   []entry
	values  []uint64 // of the gates of all items, one after the other
	batches batches
}

// entry is one item of a submission.
type entry struct {
	x        Submittable
	n, batch int // how many of the values are its own, and in which batch it begins
}

// batches are the command buffers of a submission as vkQueueSubmit takes them.
type batches struct {
	cbs          []uint64
	counts       []uint32 // command buffers per batch
	gates, until []uint64 // the semaphore that a batch waits for, or 0, and up to which value
}

// NewSubmission returns an empty submission.
func (d *Device) NewSubmission() *Submission {
	const room = 16
	return &Submission{items: make([]entry, 0, room), values: make([]uint64, 0, maxBatches),
		batches: batches{cbs: make([]uint64, 0, maxBatches),
			counts: make([]uint32, 0, maxBatches), gates: make([]uint64, 0, maxBatches),
			until: make([]uint64, 0, maxBatches)}}
}

// Reset empties s.
func (s *Submission) Reset() {
	clear(s.items)
	s.items, s.values = s.items[:0], s.values[:0]
}

// Add appends x, which runs after all that was added before. Submit refuses a program with awaits: AddGated takes
// those.
func (s *Submission) Add(x Submittable) { s.items = append(s.items, entry{x: x}) }

// AddGated appends p, which runs after all that was added before. What follows its k-th Await runs once that gate was
// opened to until[k] or further. Submit refuses a number of values that is not that of the awaits.
func (s *Submission) AddGated(p *Program, until ...uint64) {
	s.items = append(s.items, entry{x: p, n: len(until)})
	s.values = append(s.values, until...)
}

// check returns why s cannot be submitted, or nil.
func (s *Submission) check(d *Device) error {
	values, batches := s.values, 1
	for i, e := range s.items {
		if err := e.x.ready(); err != nil {
			return err
		}
		for _, y := range s.items[:i] {
			if e.x == y.x {
				return invalid("submit", d.info.Name, "item %d is in the submission twice", i)
			}
		}
		waits := e.x.awaits()
		if len(waits) != e.n {
			return invalid("submit", d.info.Name, "item %d waits at gates %d times, %d values were given", i,
				len(waits), e.n)
		}
		for j, w := range waits {
			if err := w.gate.admits(values[j]); err != nil {
				return err
			}
		}
		values = values[e.n:]
		batches += len(e.x.commands()) - 1
	}
	if batches > maxBatches {
		return invalid("submit", d.info.Name, "%d batches, at most %d are allowed", batches, maxBatches)
	}
	return nil
}

// sort sorts the command buffers into batches, of which the first gets the ticket first, and tells the gates who will
// wait at them.
func (s *Submission) sort(first uint64) {
	b, values := &s.batches, s.values
	b.cbs, b.counts, b.gates, b.until = b.cbs[:0], b.counts[:0], b.gates[:0], b.until[:0]
	b.begin(0, 0)
	for i := range s.items {
		e := &s.items[i]
		e.batch = len(b.counts) - 1
		waits := e.x.awaits()
		for part, cb := range e.x.commands() {
			switch {
			case len(waits) > 0 && waits[0].part == part:
				b.begin(waits[0].gate.expect(values[0], Ticket(first)+Ticket(len(b.counts))), values[0])
				waits, values = waits[1:], values[1:]
			case part > 0:
				b.begin(0, 0)
			}
			b.cbs = append(b.cbs, cb)
			b.counts[len(b.counts)-1]++
		}
	}
}

// begin begins a batch that waits for a semaphore, or for none.
func (b *batches) begin(gate, until uint64) {
	b.counts, b.gates, b.until = append(b.counts, 0), append(b.gates, gate), append(b.until, until)
}

// Submit queues s in one call and returns its ticket. It fails without effect when a program is stale or still in
// flight. It does not wait, and does not allocate once s has had as many items before.
func (d *Device) Submit(s *Submission) (Ticket, error) {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if d.lost.Load() {
		return 0, d.check("vkQueueSubmit", "submission", deviceLost)
	}
	if err := s.check(d); err != nil {
		return 0, err
	}
	first := d.timeline.submitted.Load() + 1
	s.sort(first)
	last, r := first+uint64(len(s.batches.counts))-1, success
	if d.submits++; d.info.faults.LostAfter > 0 && d.submits > d.info.faults.LostAfter {
		d.lost.Store(true) // as most are: the queue takes work, and it never ends
	} else {
		last, r = d.shim.submit(d.queue, &s.batches, d.timeline.semaphore, first)
	}
	if r < 0 {
		return 0, d.check("vkQueueSubmit", "submission", r)
	}
	d.timeline.submitted.Store(last)
	for _, e := range s.items {
		e.x.submitted(Ticket(first) + Ticket(e.batch))
	}
	return Ticket(last), nil
}

// Done reports whether the work of t has completed, without waiting.
func (d *Device) Done(t Ticket) (bool, error) {
	if uint64(t) <= d.timeline.done.Load() {
		return true, nil
	}
	now, r := d.timeline.read()
	if r < 0 {
		return false, d.check("vkGetSemaphoreCounterValue", "timeline", r)
	}
	d.timeline.reach(now)
	return uint64(t) <= now, nil
}

// Wait waits until the work of t has completed. Meanwhile others may submit.
func (d *Device) Wait(t Ticket) error {
	if uint64(t) <= d.timeline.done.Load() {
		return nil
	}
	if d.lost.Load() {
		return d.check("vkWaitSemaphores", awaited(d), deviceLost)
	}
	if last := Ticket(d.timeline.submitted.Load()); t > last {
		return invalid("wait", d.info.Name, "ticket %d was never issued, the last one is %d", t, last)
	}
	if r := d.timeline.wait(uint64(t)); r < 0 {
		return d.check("vkWaitSemaphores", awaited(d), r)
	}
	d.timeline.reach(uint64(t))
	return nil
}

// awaited names the oldest program of a device that is not known to be done, and the op that runs if the program is
// serial.
func awaited(d *Device) string {
	if !d.queueMu.TryLock() { // who submits or waits as well
		return "timeline"
	}
	defer d.queueMu.Unlock()
	var oldest *Program
	for _, c := range d.owned.list() {
		p, is := c.(*Program)
		if is && uint64(p.last) > d.timeline.done.Load() && (oldest == nil || p.first < oldest.first) {
			oldest = p
		}
	}
	if oldest == nil {
		return "timeline"
	}
	if at := Host(oldest.reached); len(at) > 0 {
		return oldest.name + ", pass " + oldest.names[max(int(at[0]), 1)-1]
	}
	return oldest.name
}

// WaitAwake is Wait that does not sleep for so long at most, but looks at the timeline again and again: who sleeps is
// woken late, on NVIDIA by 25 us. It takes a core meanwhile, which other goroutines may have a turn on.
func (d *Device) WaitAwake(t Ticket, most time.Duration) error {
	for start := time.Now(); time.Since(start) < most; runtime.Gosched() {
		if done, err := d.Done(t); done || err != nil {
			return err
		}
	}
	return d.Wait(t)
}

// WaitIdle waits until the device has done all that was submitted. Nothing can be submitted meanwhile, so the gates
// that this work waits at must have been opened before, or be opened by another goroutine. What closes a program or
// grows a scratch pool waits in this way too.
func (d *Device) WaitIdle() error {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if d.in.validate && !d.lost.Load() {
		d.timeline.wait(d.timeline.submitted.Load())
	}
	r := waitDeviceIdle(d.h)
	if d.lost.Load() {
		r = deviceLost
	}
	if err := d.check("vkDeviceWaitIdle", "device", r); err != nil {
		return err
	}
	d.timeline.reach(d.timeline.submitted.Load())
	return nil
}

func (p *Program) ready() error {
	if p.Stale() {
		return invalid("submit", p.name, "the program is stale: it was closed or its scratch memory has moved")
	}
	err := p.dev.inFlight(p.name, p.last)
	if at := Host(p.reached); err == nil && len(at) > 0 {
		at[0] = 0
	}
	return err
}

func (p *Program) commands() []uint64 { return p.cbs }

func (p *Program) awaits() []await { return p.waits }

func (p *Program) submitted(first Ticket) { p.first, p.last = first, first+Ticket(len(p.cbs)-1) }

// inFlight returns an error when t is not done.
func (d *Device) inFlight(name string, t Ticket) error {
	done, err := d.Done(t)
	if err == nil && !done {
		err = invalid("submit", name, "it is still in flight, wait for ticket %d", t)
	}
	return err
}

// Copier is one copy between buffers that can be re-recorded for each use, without allocating.
type Copier struct {
	dev    *Device
	pool   uint64
	cbs    []uint64
	last   Ticket
	filled bool

	queries        uint64 // 0 until timed
	ticks          [2]uint64
	timed, clocked bool // what is recorded next, and what was recorded last
}

// NewCopier returns a copier. Device.Close ends it if Close has not.
func (d *Device) NewCopier() (*Copier, error) {
	pool, cbs, call, r := createCommandBuffers(d.h, d.info.family, 1)
	if r < 0 {
		return nil, d.check(call, "copier", r)
	}
	c := &Copier{dev: d, pool: pool, cbs: cbs}
	d.owned.add(c)
	return c, nil
}

// Record makes the copier copy the bytes of src to dst, between full barriers, at its next submit. It fails while the
// copier is in flight.
func (c *Copier) Record(dst, src View) error {
	switch {
	case c.pool == 0:
		return invalid("record copy", src.Name(), "the copier is closed")
	case dst.base == nil || src.base == nil || dst.base.block == nil || src.base.block == nil:
		return invalid("record copy", src.Name(), "source and target must be buffers of the device, no scratch")
	case dst.base.dev != c.dev || src.base.dev != c.dev || dst.base.freed || src.base.freed:
		return invalid("record copy", src.Name(), "a buffer was freed or is of another device")
	case dst.size == 0:
		return invalid("record copy", src.Name(), "nothing to copy")
	}
	if err := checkCopy(dst, src); err != nil {
		return err
	}
	if err := c.dev.inFlight("copier", c.last); err != nil {
		return err
	}
	c.filled = false
	from, to, r := src.base.span.off+src.off, dst.base.span.off+dst.off, success
	if c.clocked = c.timed; c.timed {
		r = c.recordTimed(src.base.block.buffer, dst.base.block.buffer, from, to, src.size)
	} else {
		r = c.dev.shim.recordCopy(c.cbs[0], src.base.block.buffer, dst.base.block.buffer, from, to, src.size)
	}
	if r < 0 {
		return c.dev.check("vkEndCommandBuffer", "copier", r)
	}
	c.filled = true
	return nil
}

func (c *Copier) ready() error {
	if !c.filled || c.pool == 0 {
		return invalid("submit", "copier", "nothing was recorded")
	}
	return c.dev.inFlight("copier", c.last)
}

func (c *Copier) commands() []uint64 { return c.cbs }

func (c *Copier) awaits() []await { return nil }

func (c *Copier) submitted(first Ticket) { c.last = first }

// Close ends the copier, after the device is idle if it may still be running.
func (c *Copier) Close() error {
	if c.pool == 0 {
		return nil
	}
	var err error
	if done, e := c.dev.Done(c.last); !done || e != nil {
		err = c.dev.WaitIdle()
	}
	c.dev.owned.remove(c)
	destroyCommandPool(c.dev.h, c.pool)
	if c.queries != 0 {
		destroyQueryPool(c.dev.h, c.queries)
	}
	c.pool, c.queries, c.timed, c.clocked = 0, 0, false, false
	return err
}
