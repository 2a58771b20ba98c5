package pipeline

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// A team is several devices that train one scene. Each has a share of the splats and, in a step, a view of its own. What a view sees of the others' splats
// comes to its device in packets, one from each of them; the gradients of those projections go back the same way. Packets lie in host memory that both devices
// reach. Where one device has written and another is to read, the reader's program waits at a gate, which the host opens. No order of arrival decides a byte.
// Several units are queued, and packets are there once: a device comes to the next step only when it has all gradients of this one, and whoever sent those had
// read what this device sent before.
type team struct {
	engines []*engine
	absgrad bool
	records int            // splats that a packet has room for, a multiple of packetUnit
	pieces  int            // in which packets go
	inPiece int            // records of a packet that is worth a piece more
	rooms   [][]*vk.Shared // packets from device i to device j, and gradients from j to i; nil for i = j
	headers *vk.Shared     // of all packets

	round  uint64        // exchanges so far
	awake  time.Duration // that relays wait without sleeping
	relays sync.WaitGroup

	mu      sync.Mutex
	arrival *sync.Cond
	arrived [nExchanges]int // devices that have written a piece of their packets, over all pieces and rounds
	err     error           // that ended it; sticks
}

// Packets go in pieces, so that a device takes in one while it writes the next: the bus carries both directions at once. Each costs as much as waiting for all
// devices does, about as long as the bus takes for mostInPiece records.
const (
	mostPieces  = 2 // with more, the bus of an H200 carries no more both ways together
	mostInPiece = 1 << 18
)

// piecesOf returns in how many pieces packets of so many records go.
func piecesOf(records, inPiece int) int { return min((records+inPiece-1)/inPiece, mostPieces) }

// The two exchanges of a step.
const (
	exchangeVisible = iota // projections, to the device of the view
	exchangeGrads          // their gradients, to the devices of the splats
	nExchanges
)

// packetUnit is what the number of a packet's records is a multiple of, so that its parts begin where buffers can be bound.
const packetUnit = 64

// bindStep is a multiple of every device's alignment of bound buffers.
const bindStep = 256

// Words of a record: projected, extents and depth key; its gradient, and its absolute one.
const (
	projectedWords = 9
	extentWords    = 3
	keyWords       = 1
	visibleWords   = projectedWords + extentWords + keyWords
	absWords       = 2
)

// packet is what one device sends another of the splats that a view sees.
type packet struct {
	projected vk.Slice[float32] // [records][9]
	extents   vk.Slice[float32] // [records][3]
	keys      vk.Slice[uint32]  // [records]
	grads     vk.Slice[float32] // [records][9], the way back
	absGrads  vk.Slice[float32] // [records][2] with absgrad
}

// links are how a device reaches its team, for the recording of its programs.
type links struct {
	rank, n int
	records int
	pieces  int
	out     []packet                                    // by device whose view it is; none for its own
	in      []packet                                    // by device whose splats they are
	headers [nExchanges]vk.Slice[layout.PacketHeader]   // [n] of what it gets
	sent    [nExchanges][]vk.Slice[layout.PacketHeader] // by receiver, [n]: its own is element rank
	gates   [nExchanges]*vk.Gate                        // nil in plans
}

// headerBytes is what the headers of all packets to one device take in one exchange.
func headerBytes(n int) int64 {
	return (int64(n)*packetHeaderBytes + bindStep - 1) / bindStep * bindStep
}

const packetHeaderBytes = 20

// roomBytes returns the size of a packet with the way back.
func roomBytes(records int, absgrad bool) int64 {
	words := visibleWords + projectedWords
	if absgrad {
		words += absWords
	}
	return 4 * int64(words) * int64(records)
}

// packetIn lays a packet out in memory.
func packetIn(room vk.View, records int, absgrad bool) (p packet) {
	at := int64(0)
	take := func(words int) vk.View {
		size := 4 * int64(words) * int64(records)
		at += size
		return room.Slice(at-size, size)
	}
	p.projected = vk.Cast[float32](take(projectedWords))
	p.extents = vk.Cast[float32](take(extentWords))
	p.keys = vk.Cast[uint32](take(keyWords))
	p.grads = vk.Cast[float32](take(projectedWords))
	if p.absGrads = p.grads; absgrad {
		p.absGrads = vk.Cast[float32](take(absWords))
	}
	return p
}

// phantomLinks are links of device rank of n for plans.
func phantomLinks(dev *vk.Device, rank, n, records int, absgrad bool) *links {
	l := &links{rank: rank, n: n, records: records, pieces: piecesOf(records, mostInPiece)}
	header := func() vk.Slice[layout.PacketHeader] {
		return vk.Cast[layout.PacketHeader](dev.Phantom(int64(n)*packetHeaderBytes, "planned"))
	}
	for range n {
		l.out = append(l.out, packetIn(dev.Phantom(roomBytes(records, absgrad), "planned"), records, absgrad))
		for k := range nExchanges {
			l.sent[k] = append(l.sent[k], header())
		}
	}
	l.in = l.out
	for k := range nExchanges {
		l.headers[k] = header()
	}
	return l
}

// newTeam joins engines, whose models are there, with packets of so many records.
func newTeam(engines []*engine, records int) (t *team, err error) {
	t = &team{engines: engines, absgrad: engines[0].strategy.absgrad, inPiece: mostInPiece}
	t.arrival = sync.NewCond(&t.mu)
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	var devices []*vk.Device
	for _, e := range engines {
		devices = append(devices, e.dev)
	}
	n := len(engines)
	t.awake = awake(engines)
	if t.headers, err = vk.NewShared(devices, int64(nExchanges*n)*headerBytes(n), "packet headers"); err != nil {
		return t, err
	}
	for self, e := range engines {
		e.team, e.links = t, &links{rank: self, n: n}
		for k := range nExchanges {
			if e.links.gates[k], err = e.dev.NewGate(); err != nil {
				return t, err
			}
		}
	}
	if err = t.makeRooms(records); err != nil {
		return t, err
	}
	for _, e := range engines {
		e.messages = make(chan message, inFlight)
		t.relays.Add(1)
		go t.relay(e)
	}
	return t, nil
}

// mostAwake is how long a relay waits without sleeping: longer than a phase of most steps.
const mostAwake = 20 * time.Millisecond

// awake returns how long relays wait without sleeping: not at all where each taking a core would leave others, or drivers that compute on them, too few.
func awake(engines []*engine) time.Duration {
	software := slices.ContainsFunc(engines, func(e *engine) bool { return e.dev.Info().Type == vk.CPU })
	if software || runtime.GOMAXPROCS(0) < 2*len(engines)+2 {
		return 0
	}
	return mostAwake
}

// header returns where device e sees the headers of all packets to a receiver in an exchange.
func (t *team) header(e *engine, exchange, receiver int) vk.Slice[layout.PacketHeader] {
	n := len(t.engines)
	at := int64(exchange*n+receiver) * headerBytes(n)
	return vk.Cast[layout.PacketHeader](t.headers.View(e.dev).Slice(at, int64(n)*packetHeaderBytes))
}

// makeRooms makes packets of so many records, in place of those there are. Nothing may be in flight; programs must be built anew.
func (t *team) makeRooms(records int) error {
	records = (max(records, 1) + packetUnit - 1) / packetUnit * packetUnit
	if err := t.freeRooms(); err != nil {
		return err
	}
	n := len(t.engines)
	t.records, t.pieces = records, piecesOf(records, t.inPiece)
	t.rooms = make([][]*vk.Shared, n)
	for i, from := range t.engines {
		t.rooms[i] = make([]*vk.Shared, n)
		for j, to := range t.engines {
			if i == j {
				continue
			}
			room, err := vk.NewShared([]*vk.Device{from.dev, to.dev}, roomBytes(records, t.absgrad), fmt.Sprintf("packet %d to %d", i, j))
			if err != nil {
				return err
			}
			t.rooms[i][j] = room
			if !room.Imported() {
				t.pieces = 1 // the host copies packets whole
			}
		}
	}
	for i, e := range t.engines {
		t.link(e, i)
	}
	return nil
}

// link gives engine i the places of its packets.
func (t *team) link(e *engine, i int) {
	l := e.links
	l.records, l.pieces, l.out, l.in = t.records, t.pieces, nil, nil
	for k := range nExchanges {
		l.headers[k], l.sent[k] = t.header(e, k, i), nil
		for j := range t.engines {
			l.sent[k] = append(l.sent[k], t.header(e, k, j))
		}
	}
	for j := range t.engines {
		var out, in packet
		if i != j {
			out = packetIn(t.rooms[i][j].View(e.dev), t.records, t.absgrad)
			in = packetIn(t.rooms[j][i].View(e.dev), t.records, t.absgrad)
		}
		l.out, l.in = append(l.out, out), append(l.in, in)
	}
}

func (t *team) freeRooms() (err error) {
	for _, row := range t.rooms {
		for _, room := range row {
			if room != nil {
				err = errors.Join(err, room.Close())
			}
		}
	}
	t.rooms = nil
	return err
}

// close frees what the team has, once nothing uses it: of a team that failed, devices may still be at units that the gates let through, and write packets.
func (t *team) close() (err error) {
	for _, e := range t.engines {
		if e.messages != nil {
			close(e.messages)
			e.messages = nil
		}
	}
	t.relays.Wait()
	for _, e := range t.engines {
		if e.links == nil {
			continue
		}
		for _, g := range e.links.gates {
			if g != nil {
				err = errors.Join(err, g.Close())
			}
		}
		e.team, e.links = nil, nil
	}
	for _, e := range t.engines {
		_ = e.dev.WaitIdle() // its error is that of a lost device, which engine.close reports
	}
	err = errors.Join(err, t.freeRooms())
	if t.headers != nil {
		err = errors.Join(err, t.headers.Close())
	}
	return err
}

// message says to an engine's relay what its device was given.
type message struct {
	frame   *frame
	written [nExchanges][mostPieces]vk.Ticket // when pieces of its packets are, 0 where there are none
	round   uint64
	end     vk.Ticket
}

// step returns how far a gate is opened for a piece of the packets of a round.
func step(round uint64, piece int) uint64 { return round*mostPieces + uint64(piece) }

// relay waits for what e's device was given, one phase after the other, and opens the device's gates when all have come as far. In a step nobody
// else waits for a device of a team, because on NVIDIA a gate opens milliseconds late while another thread waits for the same device; only who writes a checkpoint
// beside the training does, for its copies.
func (t *team) relay(e *engine) {
	defer t.relays.Done()
	for l := range e.messages {
		for exchange, pieces := range l.written {
			for piece, written := range pieces {
				if written == 0 {
					break
				}
				if err := t.pass(e, exchange, written, step(l.round, piece)); err != nil {
					t.fail(err)
				}
			}
		}
		err := e.dev.WaitAwake(l.end, t.awake)
		if err == nil {
			err = t.carryStepped(e, l.frame)
		}
		l.frame.done <- err
	}
}

// pass waits for a piece that e's device is to have written, and for those of the others, and lets it go on.
func (t *team) pass(e *engine, exchange int, written vk.Ticket, step uint64) error {
	if err := e.dev.WaitAwake(written, t.awake); err != nil {
		return err
	}
	if err := t.carry(e.links.rank, exchange); err != nil {
		return err
	}
	if !t.meet(e, exchange) {
		return nil
	}
	return e.links.gates[exchange].Open(step)
}

// carry copies what device self has written to where the others read it, where no memory is common to both.
func (t *team) carry(self, exchange int) (err error) {
	from := t.engines[self]
	n := len(t.engines)
	for j, to := range t.engines {
		if j == self {
			continue
		}
		err = errors.Join(err, t.headers.Carry(from.dev, to.dev, int64(exchange*n+j)*headerBytes(n)+int64(self)*packetHeaderBytes, packetHeaderBytes))
		there := 4 * visibleWords * int64(t.records)
		if exchange == exchangeVisible {
			err = errors.Join(err, t.rooms[self][j].Carry(from.dev, to.dev, 0, there))
		} else {
			err = errors.Join(err, t.rooms[j][self].Carry(from.dev, to.dev, there, roomBytes(t.records, t.absgrad)-there))
		}
	}
	return err
}

// meet waits until all devices have written their pieces of an exchange; false says that the team has ended, and that all gates are open.
func (t *team) meet(e *engine, exchange int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.met[exchange]++
	if t.arrived[exchange]++; t.arrived[exchange] == e.met[exchange]*len(t.engines) {
		t.arrival.Broadcast()
	}
	for t.err == nil && t.arrived[exchange] < e.met[exchange]*len(t.engines) {
		t.arrival.Wait()
	}
	return t.err == nil
}

// fail ends the team because of err, and whatever waits goes on. What it finds may be half a packet: headers, which say the unit, come before what they
// announce. It may step on that, so the models are of no more use, and failure keeps them from being saved.
func (t *team) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	t.err = fmt.Errorf("pipeline: exchange between devices: %w", err)
	t.arrival.Broadcast()
	for _, e := range t.engines {
		for _, g := range e.links.gates {
			_ = g.Close() // lets everything through; on a device that is lost nothing waits any more
		}
	}
}

// broken is fail for a team that may be none: of a device that waits for one that was given nothing. It returns what ended the team first.
func (t *team) broken(err error) error {
	if t == nil {
		return err
	}
	t.fail(err)
	return t.failure()
}

// grow makes packets as large as the reports of a failed unit, by device, ask for. Nothing may be in flight.
func (t *team) grow(reports []*layout.Report) (err error) {
	if t == nil {
		return nil
	}
	need := 0
	for _, r := range reports {
		if r != nil && r.Failed&layout.FailedPacket != 0 {
			need = max(need, int(r.Needed))
		}
	}
	if need <= t.records {
		return nil
	}
	most, all := need, 0
	for _, e := range t.engines {
		most, all = max(most, e.model.capacity()), all+e.model.capacity()
		err = errors.Join(err, e.startAfresh())
	}
	if err = errors.Join(err, t.makeRooms(min(need+need/2, most))); err != nil {
		return fmt.Errorf("pipeline: grow packets between devices: %w", err)
	}
	for _, e := range t.engines { // now, rather than in a stop of its own: what sees more splats of one device sees more of all
		had := e.viewSplats
		e.viewSplats = max(had, min(t.records*len(t.engines), all)/packetUnit*packetUnit)
		if n := e.fewerIsects(e.isectCapacity); n > 0 {
			e.isectCapacity = n
			continue
		}
		e.viewSplats = had // by need, then
	}
	return nil
}

// failure returns what ended the team, or nil.
func (t *team) failure() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// begin counts an exchange of all devices, before the first of them is given its part.
func (t *team) begin() {
	if t != nil {
		t.round++
	}
}

// post has e's relay wait for the program that f was submitted with.
func (t *team) post(e *engine, f *frame, k unitKind) {
	if t == nil {
		return
	}
	l := message{frame: f, round: t.round, end: f.ticket}
	switch k {
	case unitStep:
		for piece := range t.pieces {
			l.written[exchangeVisible][piece] = f.ran.PhaseTicket(phaseVisible(piece))
			l.written[exchangeGrads][piece] = f.ran.PhaseTicket(t.pieces + 1 + piece)
		}
	case unitRender:
		l.written[exchangeVisible][0] = f.ran.PhaseTicket(0)
	}
	e.messages <- l
}

// phaseVisible is the phase of a step's program in which a piece of packets is written. The first is alone in its phase, the others come after the Await for the
// one before; gradients follow them.
func phaseVisible(piece int) int {
	if piece == 0 {
		return 0
	}
	return piece + 1
}

// noWait is what an Await waits for that only ends a phase.
const noWait = 0

// until returns what the Awaits of a program of kind k wait for.
func (t *team) until(e *engine, k unitKind) []uint64 {
	switch {
	case t == nil:
		return nil
	case k == unitStep:
		list := append(e.awaited[:0], noWait)
		for range nExchanges {
			for piece := range t.pieces {
				list = append(list, step(t.round, piece))
			}
		}
		return list
	case k == unitRender && e.links.rank == 0:
		return append(e.awaited[:0], step(t.round, 0))
	}
	return nil
}
