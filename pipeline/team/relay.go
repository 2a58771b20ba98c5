package team

import (
	"errors"

	"vksplat/vk"
)

const mostAwaits = 1 + nExchanges*MostPieces

// Message says to a device's relay what the device was given.
type Message struct {
	End     vk.Ticket                         // when it is done
	Written [nExchanges][MostPieces]vk.Ticket // when pieces of its packets are, 0 where there are none
	Row     Row                               // that the device steps for all
	Done    chan error                        // gets what waiting came to

	round uint64
}

// Row is a part of what all devices have in common.
type Row struct {
	Of       *vk.Shared // nil: none
	At, Size int64      // bytes
}

// Begin counts an exchange of all devices, before the first of them is given its part.
func (t *Team) Begin() {
	if t != nil {
		t.round++
	}
}

// Post has a device's relay wait for the program that the device was given.
func (t *Team) Post(rank int, m Message) {
	m.round = t.round
	t.messages[rank] <- m
}

// step returns how far a gate is opened for a piece of the packets of a round.
func step(round uint64, piece int) uint64 { return round*MostPieces + uint64(piece) }

// noWait is what an Await waits for that only ends a phase.
const noWait = 0

// StepAwaits returns what the Awaits of a step's program wait for. It is valid until the next call.
func (t *Team) StepAwaits(rank int) []uint64 {
	list := append(t.awaited[rank][:0], noWait)
	for range nExchanges {
		for piece := range t.pieces {
			list = append(list, step(t.round, piece))
		}
	}
	return list
}

// PictureAwaits is StepAwaits of the program that draws a picture on the first device.
func (t *Team) PictureAwaits() []uint64 { return append(t.awaited[0][:0], step(t.round, 0)) }

// relay waits for what a device was given, one phase after the other, and opens the device's gates when all have come
// as far. In a step nobody else waits for a device of a team, because on NVIDIA a gate opens milliseconds late while
// another thread waits for the same device; only who writes a checkpoint beside the training does, for its copies.
func (t *Team) relay(rank int, messages <-chan Message) {
	defer t.relays.Done()
	for m := range messages {
		for exchange, pieces := range m.Written {
			for piece, written := range pieces {
				if written == 0 {
					break
				}
				if err := t.pass(rank, exchange, written, step(m.round, piece)); err != nil {
					_ = t.Fail(err)
				}
			}
		}
		err := t.devices[rank].WaitAwake(m.End, t.awake)
		if err == nil {
			err = t.carryRow(rank, m.Row)
		}
		m.Done <- err
	}
}

// carryRow makes all devices see the row that one has stepped, where they do not anyway. It is done before the others
// begin with the rows of the next unit: they do not until this relay has come as far as that.
func (t *Team) carryRow(rank int, r Row) (err error) {
	if r.Of == nil {
		return nil
	}
	for _, to := range t.devices {
		err = errors.Join(err, r.Of.Carry(t.devices[rank], to, r.At, r.Size))
	}
	return err
}

// pass waits for a piece that a device is to have written, and for those of the others, and lets it go on.
func (t *Team) pass(rank, exchange int, written vk.Ticket, step uint64) error {
	if err := t.devices[rank].WaitAwake(written, t.awake); err != nil {
		return err
	}
	if err := t.carry(rank, exchange); err != nil {
		return err
	}
	if !t.meet(rank, exchange) {
		return nil
	}
	return t.links[rank].Gates[exchange].Open(step)
}

// carry copies what a device has written to where the others read it, where no memory is common to both.
func (t *Team) carry(rank, exchange int) (err error) {
	from, n := t.devices[rank], len(t.devices)
	for j, to := range t.devices {
		if j == rank {
			continue
		}
		at := int64(exchange*n+j)*headerBytes(n) + int64(rank)*packetHeaderBytes
		err = errors.Join(err, t.headers.Carry(from, to, at, packetHeaderBytes))
		there := 4 * visibleWords * int64(t.records)
		if exchange == Visible {
			err = errors.Join(err, t.rooms[rank][j].Carry(from, to, 0, there))
		} else {
			size := RoomBytes(t.records, t.beside) - there
			err = errors.Join(err, t.rooms[j][rank].Carry(from, to, there, size))
		}
	}
	return err
}

// meet waits until all devices have written their pieces of an exchange; false says that the team has ended, and that
// all gates are open.
func (t *Team) meet(rank, exchange int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met[rank][exchange]++
	all := t.met[rank][exchange] * len(t.devices)
	if t.arrived[exchange]++; t.arrived[exchange] == all {
		t.arrival.Broadcast()
	}
	for t.err == nil && t.arrived[exchange] < all {
		t.arrival.Wait()
	}
	return t.err == nil
}
