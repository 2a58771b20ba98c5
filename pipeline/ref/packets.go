package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: begin finish mark_visible send_visible join_packets copy_records send_grads settle

// Failure is what counters hold of units that failed: the first of them decides Unit.
type Failure struct {
	Failed, Unit, Needed uint32
}

func (f *Failure) fail(reason, unit, needed uint32) {
	if f.Failed == 0 {
		f.Unit = unit
	}
	f.Failed |= reason
	f.Needed = max(f.Needed, needed)
}

// SplatsHeader returns the header of a packet of n splats, for which there is room for capacity, from a device that has
// so many splats in all.
func (f *Failure) SplatsHeader(n, capacity, unit, splats uint32) layout.PacketHeader {
	h := layout.PacketHeader{N: n, Unit: unit, Splats: splats}
	if n > capacity {
		f.fail(layout.FailedPacket, unit, n)
		h.Needed = n
	}
	if f.Failed != 0 {
		h.N, h.Failed = 0, 1
	}
	return h
}

// GradsHeader returns the header of a packet of n gradients, likewise.
func (f *Failure) GradsHeader(n, unit, splats uint32) layout.PacketHeader {
	if f.Failed != 0 {
		return layout.PacketHeader{Failed: 1, Unit: unit, Splats: splats}
	}
	return layout.PacketHeader{N: n, Unit: unit, Splats: splats}
}

// FirstOf returns where the records of each packet go and, at the end, how many there are; all 0 after a failure.
func (f *Failure) FirstOf(headers []layout.PacketHeader, capacity, unit uint32) []uint32 {
	first, total, peer := make([]uint32, len(headers)+1), uint64(0), false
	for i, h := range headers {
		peer = peer || h.Failed != 0 || h.Unit != unit
		total += uint64(h.N)
		first[i+1] = uint32(total)
	}
	if peer {
		f.fail(layout.FailedPeer, unit, 0)
	}
	if total > uint64(capacity) {
		f.fail(layout.FailedView, unit, uint32(min(total, math.MaxUint32)))
	}
	if f.Failed != 0 {
		clear(first)
	}
	return first
}

// Mark returns 1 for each splat that a view sees.
func Mark(keys []uint32) []uint32 {
	marks := make([]uint32, len(keys))
	for i, k := range keys {
		if k != layout.Culled {
			marks[i] = 1
		}
	}
	return marks
}

// SendVisible returns the splats that a view sees, in the order of their ids, and each splat's number among them, or
// Culled.
func SendVisible[T Real](p *Projection[T]) (packet *Projection[T], indexOf []uint32) {
	packet, indexOf = &Projection[T]{}, make([]uint32, len(p.DepthKeys))
	for i := range indexOf {
		indexOf[i] = layout.Culled
		if p.Visible(i) {
			indexOf[i] = uint32(len(packet.Splats))
			packet.append(p, i, i+1)
		}
	}
	return packet, indexOf
}

func (p *Projection[T]) append(q *Projection[T], from, to int) {
	p.Splats = append(p.Splats, q.Splats[from:to]...)
	p.Extents = append(p.Extents, q.Extents[from:to]...)
	p.DepthKeys = append(p.DepthKeys, q.DepthKeys[from:to]...)
}

// SendGrads returns the gradients of splats, whose device no longer has their colours: where these are clamped, nothing
// flows.
func SendGrads[T Real](splats []Projected[T], v []ProjectedGrad[T]) []ProjectedGrad[T] {
	out := append([]ProjectedGrad[T](nil), v...)
	for i, s := range splats {
		for ch, c := range s.Color {
			if !(c > 0) {
				out[i][6+ch] *= 0
			}
		}
	}
	return out
}
