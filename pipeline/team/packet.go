package team

import (
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Packets go in pieces, so that a device takes in one while it writes the next: the bus carries both directions at
// once. Each costs as much as waiting for all devices does, about as long as the bus takes for mostInPiece records.
const (
	MostPieces  = 2 // with more, the bus of an H200 carries no more both ways together
	mostInPiece = 1 << 18
)

// piecesOf returns the number of pieces of a packet of n records.
func piecesOf(records, inPiece int) int { return min((records+inPiece-1)/inPiece, MostPieces) }

// The two exchanges of a step.
const (
	Visible = iota // projections, to the device of the view
	Grads          // their gradients, to the devices of the splats
	nExchanges
)

// Unit is what the number of a packet's records is a multiple of, so that its parts begin where buffers can be bound.
const Unit = 64

// RoundUp returns n as a multiple of Unit.
func RoundUp(n int) int { return (n + Unit - 1) / Unit * Unit }

// bindStep is a multiple of every device's alignment of bound buffers.
const bindStep = 256

// Words of a record: shape, paint and depth key; the gradient of its projection, and the absolute one of its mean. How
// many words come beside a gradient is up to the training.
const (
	ShapeWords   = 8
	PaintWords   = 4
	KeyWords     = 1
	visibleWords = ShapeWords + PaintWords + KeyWords
	GradWords    = 9
	AbsWords     = 2
)

// Packet carries the splats that a view sees from one device to another.
type Packet struct {
	Shapes vk.Slice[[4]float32] // [records][2]
	Paints vk.Slice[[4]float32] // [records]
	Keys   vk.Slice[uint32]     // [records]
	Grads  vk.Slice[float32]    // [records][9], the way back
	Beside vk.Slice[float32]    // [records][words] what comes beside them
}

// Links are how a device reaches its team, for the recording of its programs.
type Links struct {
	Rank, N int
	Records int
	Pieces  int
	Out     []Packet                                    // by device whose view it is; none for its own
	In      []Packet                                    // by device whose splats they are
	Headers [nExchanges]vk.Slice[layout.PacketHeader]   // [n] of what it gets
	Sent    [nExchanges][]vk.Slice[layout.PacketHeader] // by receiver, [n]: its own is element rank
	Gates   [nExchanges]*vk.Gate                        // nil in plans
}

// Others calls f for each device but this one.
func (l *Links) Others(f func(o int)) {
	for k := 1; k < l.N; k++ {
		f((l.Rank + k) % l.N)
	}
}

// headerBytes is what the headers of all packets to one device take in one exchange.
func headerBytes(n int) int64 {
	return (int64(n)*packetHeaderBytes + bindStep - 1) / bindStep * bindStep
}

const packetHeaderBytes = 20

// RoomBytes returns the size of a packet with the way back, where so many words come beside a gradient.
func RoomBytes(records, beside int) int64 {
	return 4 * int64(visibleWords+GradWords+beside) * int64(records)
}

// packetIn lays a packet out in memory.
func packetIn(room vk.View, records, beside int) (p Packet) {
	at := int64(0)
	take := func(words int) vk.View {
		size := 4 * int64(words) * int64(records)
		at += size
		return room.Slice(at-size, size)
	}
	p.Shapes = vk.Cast[[4]float32](take(ShapeWords))
	p.Paints = vk.Cast[[4]float32](take(PaintWords))
	p.Keys = vk.Cast[uint32](take(KeyWords))
	p.Grads = vk.Cast[float32](take(GradWords))
	if p.Beside = p.Grads; beside > 0 {
		p.Beside = vk.Cast[float32](take(beside))
	}
	return p
}

func Phantom(dev *vk.Device, rank, n, records, beside int) *Links {
	l := &Links{Rank: rank, N: n, Records: records, Pieces: piecesOf(records, mostInPiece)}
	header := func() vk.Slice[layout.PacketHeader] {
		return vk.Cast[layout.PacketHeader](dev.Phantom(int64(n)*packetHeaderBytes, "planned"))
	}
	for range n {
		l.Out = append(l.Out, packetIn(dev.Phantom(RoomBytes(records, beside), "planned"), records, beside))
		for k := range nExchanges {
			l.Sent[k] = append(l.Sent[k], header())
		}
	}
	l.In = l.Out
	for k := range nExchanges {
		l.Headers[k] = header()
	}
	return l
}

// header returns where a device sees the headers of all packets to a receiver in an exchange.
func (t *Team) header(rank, exchange, receiver int) vk.Slice[layout.PacketHeader] {
	n := len(t.devices)
	at := int64(exchange*n+receiver) * headerBytes(n)
	return vk.Cast[layout.PacketHeader](t.headers.View(t.devices[rank]).Slice(at, int64(n)*packetHeaderBytes))
}
