package vk

import (
	"errors"
	"sync"
)

// Gate holds work of its device back until the host lets it through: a timeline semaphore that the host signals. A
// program waits at it where its list has an Await. Everything that is submitted to the device later waits too, because
// a device runs its work in order.
//
// The values of a gate only grow. Whoever submits chooses for each Await how far the gate must have been opened, as a
// rule one further each time.
type Gate struct {
	dev *Device

	mu        sync.Mutex // guards the fields below
	semaphore uint64     // 0: destroyed
	opened    uint64     // the semaphore's value
	awaited   uint64     // the largest value that was waited for so far
	last      Ticket     // of the last batch that waits
	closed    bool
}

// farthest is how far apart the value of a semaphore and those waited for may be: the least
// maxTimelineSemaphoreValueDifference that a device may have.
const farthest = 1<<31 - 1

// NewGate returns a gate that is opened to 0. Device.Close ends it if Close has not.
func (d *Device) NewGate() (*Gate, error) {
	s, r := d.shim.createTimeline()
	if r < 0 {
		return nil, d.check("vkCreateSemaphore", "gate", r)
	}
	g := &Gate{dev: d, semaphore: s}
	d.owned.add(g)
	return g, nil
}

// Open lets through everything that waits for n or less, now and later. An n that is not above that of all calls before
// does nothing. It may be called from several goroutines. What the host wrote to mapped memory before is seen by what
// is let through.
func (g *Gate) Open(n uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return invalid("open gate", g.dev.info.Name, "it is closed")
	}
	return g.open(n)
}

// open is Open under the lock.
func (g *Gate) open(n uint64) error {
	if n <= g.opened {
		return nil
	}
	if n-g.opened > farthest {
		return invalid("open gate", g.dev.info.Name, "from %d to %d is too far, at most %d is allowed", g.opened, n,
			farthest)
	}
	if r := g.dev.timeline.signal(g.semaphore, n); r < 0 {
		return g.dev.check("vkSignalSemaphore", "gate", r)
	}
	g.opened = n
	return nil
}

// admits returns why nothing can be submitted that waits for n, or nil.
func (g *Gate) admits(n uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return invalid("submit", g.dev.info.Name, "a gate that it waits at is closed")
	}
	if n > g.opened && n-g.opened > farthest {
		return invalid("submit", g.dev.info.Name,
			"it waits for a gate to be opened from %d to %d, at most %d further is allowed", g.opened, n, farthest)
	}
	return nil
}

// expect notes that the batch of ticket t waits for n, and returns the semaphore; 0 where the gate was closed
// meanwhile, which lets everything through.
func (g *Gate) expect(n uint64, t Ticket) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0
	}
	g.awaited, g.last = max(g.awaited, n), t
	return g.semaphore
}

// end opens the gate for all that waits at it. Nothing can wait there any more.
func (g *Gate) end() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	return g.open(g.awaited)
}

// Close opens the gate for all that waits at it and ends it. Programs that wait at it cannot be submitted any more. It
// does not wait: where work that refers to the gate is not done, the device keeps what is left of the gate until it is
// closed itself. That goes for a lost device as well: another goroutine may be in a Submit that has the semaphore
// already.
func (g *Gate) Close() error {
	err := g.end()
	g.mu.Lock()
	last := g.last // no batch comes after it: the gate has ended
	g.mu.Unlock()
	done, e := g.dev.Done(last)
	if done && e == nil {
		g.destroy()
	}
	return errors.Join(err, e)
}

// destroy destroys the semaphore of a gate that has ended and that no work refers to.
func (g *Gate) destroy() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.semaphore == 0 {
		return
	}
	g.dev.owned.remove(g)
	destroySemaphore(g.dev.h, g.semaphore)
	g.semaphore = 0
}

// Await appends waiting: what is recorded after it runs only once g has been opened as far as the submission says
// (Submission.AddGated). The list stays one, with one plan of its scratch buffers; but a command buffer ends here.
// Everything that was written before is then seen by the host, and by other devices in Shared memory; everything that
// the host, or others, wrote before they opened the gate is seen after it. An Await counts as an op, whose time
// (Program.Timings) is from the end of what is before it to the beginning of what is after it.
func (r *Recorder) Await(g *Gate) {
	if g == nil || g.dev != r.dev {
		r.fail(invalid("record", "await", "the gate is of another device"))
		return
	}
	r.add(op{kind: opAwait, name: "await", gate: g})
}

// PhaseTicket returns the ticket, after a Submit, that is reached when everything before the k-th Await, counted from
// 0, is done; for the number of awaits it is that of the whole program. Before the first submit it is 0. There is no
// such ticket for another k: Wait refuses what is returned then.
func (p *Program) PhaseTicket(k int) Ticket {
	switch {
	case p.last == 0:
		return 0
	case k >= 0 && k < len(p.waits):
		return p.first + Ticket(p.waits[k].part-1)
	case k == len(p.waits):
		return p.last
	}
	return ^Ticket(0)
}
