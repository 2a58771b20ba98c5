package vk

// Ticket stands for submitted work and all that was submitted before it on the device. Tickets grow; 0 stands for no work and is always done.
type Ticket uint64

// Submittable is what a Submission takes: a *Program or a *Copier.
type Submittable interface {
	// ready returns why the command buffers cannot be submitted now, or nil.
	ready() error
	// commands returns the command buffers; each but the last ends a submission.
	commands() []uint64
	// submitted tells the ticket.
	submitted(t Ticket)
}

// Submission is a list of programs and copies that are queued together. It can be used again after Reset.
type Submission struct {
	items  []Submittable
	cbs    []uint64
	counts []uint32 // command buffers per batch
}

// NewSubmission returns an empty submission.
func (d *Device) NewSubmission() *Submission {
	const room = 16
	return &Submission{items: make([]Submittable, 0, room), cbs: make([]uint64, 0, maxBatches), counts: make([]uint32, 0, maxBatches)}
}

// Reset empties s.
func (s *Submission) Reset() {
	clear(s.items)
	s.items = s.items[:0]
}

// Add appends x, which runs after all that was added before.
func (s *Submission) Add(x Submittable) { s.items = append(s.items, x) }

// batch sorts the command buffers into batches.
func (s *Submission) batch() {
	s.cbs, s.counts = s.cbs[:0], s.counts[:0]
	open := uint32(0)
	for _, x := range s.items {
		list := x.commands()
		for i, cb := range list {
			s.cbs = append(s.cbs, cb)
			open++
			if i < len(list)-1 {
				s.counts = append(s.counts, open)
				open = 0
			}
		}
	}
	if open > 0 || len(s.counts) == 0 {
		s.counts = append(s.counts, open)
	}
}

// Submit queues s in one call and returns its ticket. It fails without effect when a program is stale or still in flight. It does not wait, and does not
// allocate once s has had as many items before.
func (d *Device) Submit(s *Submission) (Ticket, error) {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if d.lost.Load() {
		return 0, &Error{Call: "vkQueueSubmit", Object: d.info.Name, Result: deviceLost}
	}
	for i, x := range s.items {
		if err := x.ready(); err != nil {
			return 0, err
		}
		for _, y := range s.items[:i] {
			if x == y {
				return 0, invalid("submit", d.info.Name, "item %d is in the submission twice", i)
			}
		}
	}
	s.batch()
	if len(s.counts) > maxBatches {
		return 0, invalid("submit", d.info.Name, "%d batches, at most %d are possible", len(s.counts), maxBatches)
	}
	last, r := d.shim.submit(d.queue, s.cbs, s.counts, d.timeline, d.submitted+1)
	if r < 0 {
		return 0, d.check("vkQueueSubmit", "submission", r)
	}
	d.submitted = last
	for _, x := range s.items {
		x.submitted(Ticket(last))
	}
	return Ticket(last), nil
}

// Done reports whether the work of t has completed, without waiting.
func (d *Device) Done(t Ticket) (bool, error) {
	if uint64(t) <= d.done.Load() {
		return true, nil
	}
	now, r := d.shim.counter(d.timeline)
	if r < 0 {
		return false, d.check("vkGetSemaphoreCounterValue", "timeline", r)
	}
	d.reached(now)
	return uint64(t) <= now, nil
}

// reached notes that the timeline has got to n.
func (d *Device) reached(n uint64) {
	for {
		old := d.done.Load()
		if n <= old || d.done.CompareAndSwap(old, n) {
			return
		}
	}
}

// Wait waits until the work of t has completed.
func (d *Device) Wait(t Ticket) error {
	if uint64(t) <= d.done.Load() {
		return nil
	}
	if d.lost.Load() {
		return &Error{Call: "vkWaitSemaphores", Object: d.info.Name, Result: deviceLost}
	}
	if last := d.lastSubmitted(); t > last {
		return invalid("wait", d.info.Name, "ticket %d was never given out, the last one is %d", t, last)
	}
	if r := d.shim.wait(d.timeline, uint64(t), ^uint64(0)); r < 0 {
		return d.check("vkWaitSemaphores", "timeline", r)
	}
	d.reached(uint64(t))
	return nil
}

func (d *Device) lastSubmitted() Ticket {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	return Ticket(d.submitted)
}

// WaitIdle waits until the device has done all that was submitted.
func (d *Device) WaitIdle() error {
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if err := d.check("vkDeviceWaitIdle", "device", waitDeviceIdle(d.h)); err != nil {
		return err
	}
	d.reached(d.submitted)
	return nil
}

func (p *Program) ready() error {
	if p.Stale() {
		return invalid("submit", p.name, "the program is stale: it was closed or its scratch memory has moved")
	}
	return p.dev.inFlight(p.name, p.last)
}

func (p *Program) commands() []uint64 { return p.cbs }

func (p *Program) submitted(t Ticket) { p.last = t }

// inFlight returns an error when t is not done.
func (d *Device) inFlight(name string, t Ticket) error {
	done, err := d.Done(t)
	if err == nil && !done {
		err = invalid("submit", name, "it is still in flight, wait for ticket %d", t)
	}
	return err
}

// Copier is one copy between buffers that can be recorded anew for each use, without allocating.
type Copier struct {
	dev    *Device
	pool   uint64
	cbs    []uint64
	last   Ticket
	filled bool
}

// NewCopier returns a copier. Device.Close ends it if Close has not.
func (d *Device) NewCopier() (*Copier, error) {
	pool, cbs, call, r := createCommandBuffers(d.h, d.info.family, 1)
	if r < 0 {
		return nil, d.check(call, "copier", r)
	}
	c := &Copier{dev: d, pool: pool, cbs: cbs}
	d.own(c)
	return c, nil
}

// Record makes the copier copy the bytes of src to dst, between full barriers, at its next submit. It fails while the copier is in flight.
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
	r := c.dev.shim.recordCopy(c.cbs[0], src.base.block.buffer, dst.base.block.buffer, src.base.span.off+src.off, dst.base.span.off+dst.off, src.size)
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

func (c *Copier) submitted(t Ticket) { c.last = t }

// Close ends the copier, after the device is idle if it may still be running.
func (c *Copier) Close() error {
	if c.pool == 0 {
		return nil
	}
	var err error
	if done, e := c.dev.Done(c.last); !done || e != nil {
		err = c.dev.WaitIdle()
	}
	c.dev.disown(c)
	destroyCommandPool(c.dev.h, c.pool)
	c.pool = 0
	return err
}
