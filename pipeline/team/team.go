package team

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"vksplat/vk"
)

// Team is the exchange between devices. Begin, Fail and Failure may be called on nil, for a device that trains alone.
type Team struct {
	devices []*vk.Device
	links   []*Links       // by rank
	beside  int            // words beside a gradient
	records int            // splats that a packet has room for, a multiple of Unit
	pieces  int            // in which packets go
	inPiece int            // records of a packet that is worth a piece more
	rooms   [][]*vk.Shared // packets from device i to device j, and gradients from j to i; nil for i = j
	headers *vk.Shared     // of all packets

	round    uint64        // exchanges so far
	awake    time.Duration // that relays wait without sleeping
	relays   sync.WaitGroup
	messages []chan Message       // by rank, to its relay
	awaited  [][mostAwaits]uint64 // by rank, of the program that is being submitted
	met      [][nExchanges]int    // by rank: pieces so far

	mu      sync.Mutex
	arrival *sync.Cond
	arrived [nExchanges]int // devices that have written a piece of their packets, over all pieces and rounds
	err     error           // that ended it; sticks
}

type Options struct {
	Records  int // splats that a packet has room for at first
	Beside   int // words that come beside a gradient
	InFlight int // programs that a device has queued at most
}

func New(devices []*vk.Device, o Options) (t *Team, err error) {
	n := len(devices)
	t = &Team{
		devices: devices, beside: o.Beside, inPiece: mostInPiece, awake: awake(devices),
		messages: make([]chan Message, n), awaited: make([][mostAwaits]uint64, n), met: make([][nExchanges]int, n),
	}
	t.arrival = sync.NewCond(&t.mu)
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if t.headers, err = vk.NewShared(devices, int64(nExchanges*n)*headerBytes(n), "packet headers"); err != nil {
		return t, err
	}
	for rank, d := range devices {
		l := &Links{Rank: rank, N: n}
		t.links = append(t.links, l)
		for k := range nExchanges {
			if l.Gates[k], err = d.NewGate(); err != nil {
				return t, err
			}
		}
	}
	if err = t.Resize(o.Records); err != nil {
		return t, err
	}
	for rank := range devices {
		t.messages[rank] = make(chan Message, o.InFlight)
		t.relays.Add(1)
		go t.relay(rank, t.messages[rank]) // Close may forget the channel before the relay has looked
	}
	return t, nil
}

// mostAwake is how long a relay waits without sleeping: longer than a phase of most steps.
const mostAwake = 20 * time.Millisecond

// awake returns how long relays wait without sleeping: not at all where each taking a core would leave others, or
// drivers that compute on them, too few.
func awake(devices []*vk.Device) time.Duration {
	software := slices.ContainsFunc(devices, func(d *vk.Device) bool { return d.Info().Type == vk.CPU })
	if software || runtime.GOMAXPROCS(0) < 2*len(devices)+2 {
		return 0
	}
	return mostAwake
}

// Links returns how a device reaches the others. They change with Resize.
func (t *Team) Links(rank int) *Links { return t.links[rank] }

// Records is how many splats a packet has room for.
func (t *Team) Records() int { return t.records }

// Imported reports whether all devices import the memory of packets: else the host copies them.
func (t *Team) Imported() bool { return t.rooms[0][1].Imported() }

// PieceRecords sets how many records of a packet are worth a piece more. It holds from the next Resize on.
func (t *Team) PieceRecords(n int) { t.inPiece = n }

// Resize replaces the packets by packets of n records. Nothing may be in flight; programs must be
// built anew.
func (t *Team) Resize(records int) error {
	records = RoundUp(max(records, 1))
	if err := t.freeRooms(); err != nil {
		return err
	}
	n := len(t.devices)
	t.records, t.pieces = records, piecesOf(records, t.inPiece)
	t.rooms = make([][]*vk.Shared, n)
	for i, from := range t.devices {
		t.rooms[i] = make([]*vk.Shared, n)
		for j, to := range t.devices {
			if i == j {
				continue
			}
			name := fmt.Sprintf("packet %d to %d", i, j)
			room, err := vk.NewShared([]*vk.Device{from, to}, RoomBytes(records, t.beside), name)
			if err != nil {
				return err
			}
			t.rooms[i][j] = room
			if !room.Imported() {
				t.pieces = 1 // the host copies packets whole
			}
		}
	}
	for rank := range t.devices {
		t.link(rank)
	}
	return nil
}

// link notes where a device finds its packets.
func (t *Team) link(rank int) {
	d, l := t.devices[rank], t.links[rank]
	l.Records, l.Pieces, l.Out, l.In = t.records, t.pieces, nil, nil
	for k := range nExchanges {
		l.Headers[k], l.Sent[k] = t.header(rank, k, rank), nil
		for j := range t.devices {
			l.Sent[k] = append(l.Sent[k], t.header(rank, k, j))
		}
	}
	for j := range t.devices {
		var out, in Packet
		if rank != j {
			out = packetIn(t.rooms[rank][j].View(d), t.records, t.beside)
			in = packetIn(t.rooms[j][rank].View(d), t.records, t.beside)
		}
		l.Out, l.In = append(l.Out, out), append(l.In, in)
	}
}

func (t *Team) freeRooms() (err error) {
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

// Close frees what the team has, once nothing uses it: of a team that failed, devices may still be at units that the
// gates let through, and write packets.
func (t *Team) Close() (err error) {
	for rank, c := range t.messages {
		if c != nil {
			close(c)
			t.messages[rank] = nil
		}
	}
	t.relays.Wait()
	for _, l := range t.links {
		for _, g := range l.Gates {
			if g != nil {
				err = errors.Join(err, g.Close())
			}
		}
	}
	for _, d := range t.devices {
		_ = d.WaitIdle() // its error is that of a lost device, which whoever closes that reports
	}
	err = errors.Join(err, t.freeRooms())
	if t.headers != nil {
		err = errors.Join(err, t.headers.Close())
	}
	return err
}

// Fail ends the team because of err, and whatever waits goes on. What it finds may be half a packet: headers, which say
// the unit, come before what they announce. It may step on that, so the models are of no more use, and Failure keeps
// them from being saved. Fail returns what ended the team first, of a device that trains alone err.
func (t *Team) Fail(err error) error {
	if t == nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.err = fmt.Errorf("exchange between devices: %w", err)
	t.arrival.Broadcast()
	for _, l := range t.links {
		for _, g := range l.Gates {
			_ = g.Close() // lets everything through; on a device that is lost nothing waits any more
		}
	}
	return t.err
}

// Failure returns what ended the team, or nil.
func (t *Team) Failure() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
