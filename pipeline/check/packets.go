package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// unitOfPackets is the unit that the packets of the checks belong to.
const unitOfPackets = 41

// packetSizes are around workgroups and blocks.
var packetSizes = []int{0, 1, 255, 256, 257, layout.SendBlock - 1, layout.SendBlock, layout.SendBlock + 1, 5000}

func packetCases() []Case {
	return slices.Concat(sendCases(), joinCases(), copyCases(), gradCases())
}

// anyFloats are floats of any kind, of which copies must keep every bit.
func (t *trial) anyFloats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(t.NormFloat64()); t.IntN(4) == 0 {
			x[i] = bad[t.IntN(len(bad))]
		}
	}
	return x
}

// projection makes n projected splats, of which a share is seen.
func (t *trial) projection(n int, share float64) *ref.Projection[float32] {
	p := &ref.Projection[float32]{Splats: make([]ref.Projected[float32], n), Extents: make([][3]float32, n),
		DepthKeys: t.uints(n, 1<<31)}
	for i := range n {
		x := t.anyFloats(12)
		p.Splats[i] = ref.Projected[float32]{Mean2D: [2]float32(x[0:]), Conic: [3]float32(x[2:]), Opacity: x[5],
			Color: [3]float32(x[6:])}
		p.Extents[i] = [3]float32(x[9:])
		if t.Float64() >= share {
			p.DepthKeys[i] = layout.Culled
		}
	}
	return p
}

func sendCases() []Case {
	sizes := func(share float64) func(t *trial) error {
		return func(t *trial) error {
			return each(packetSizes, func(n int) error { return checkSend(t, t.projection(n, share), 3, 0) })
		}
	}
	return []Case{
		newCase("mark_visible", "sizes", func(t *trial) error {
			return each(packetSizes, func(n int) error { return checkMark(t, t.projection(n, 0.4).DepthKeys) })
		}),
		newCase("send_visible", "sizes", sizes(0.3)),
		newCase("send_visible", "all seen", sizes(1)),
		newCase("send_visible", "none seen", sizes(0)),
		newCase("send_visible", "few seen", sizes(0.002)),
		newCase("send_visible", "exactly full", func(t *trial) error {
			return each(packetSizes, func(n int) error { return checkSend(t, t.projection(n, 0.3), 0, 0) })
		}),
		newCase("send_visible", "one over", func(t *trial) error {
			return each(packetSizes[1:], func(n int) error { return checkSend(t, t.projection(n, 1), -1, 0) })
		}),
		newCase("send_visible", "after a failure", func(t *trial) error {
			return each([]int{-1, 0, 5}, func(room int) error {
				return first(checkSend(t, t.projection(700, 0.5), room, layout.FailedIsects),
					checkSend(t, t.projection(700, 0.5), room, layout.FailedPacket))
			})
		}),
	}
}

func checkMark(t *trial, keys []uint32) error {
	l := t.list()
	marks := output[uint32](l, "marks", len(keys)+7)
	l.r.Dispatch(&shaders.MarkVisible{
		Counters:  input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(len(keys))})),
		DepthKeys: input(l, "depth_keys", keys), Marks: marks.Slice,
	}, vk.Items(len(keys)+3*layout.Group, layout.Group))
	if err := l.run(); err != nil {
		return err
	}
	got, err := marks.written(len(keys))
	return first(err, equal("marks", got, ref.Mark(keys)))
}

// failedCounters are those of a unit at work, or of one that an earlier unit's failure emptied.
func failedCounters(failed uint32, set map[int]uint32) ([]uint32, ref.Failure) {
	c := junkCounters(set)
	f := ref.Failure{Failed: failed}
	if failed != 0 {
		f.Unit, f.Needed = 9, 77
	}
	c[layout.Failed], c[layout.FailedUnit], c[layout.Needed] = f.Failed, f.Unit, f.Needed
	return c, f
}

// withFailure returns c with what a reference made of the failure.
func withFailure(c []uint32, f ref.Failure) []uint32 {
	c = slices.Clone(c)
	c[layout.Failed], c[layout.FailedUnit], c[layout.Needed] = f.Failed, f.Unit, f.Needed
	return c
}

// checkSend sends what p sees in a packet with so much more room than that takes.
func checkSend(t *trial, p *ref.Projection[float32], room int, failed uint32) error {
	l := t.list()
	n := len(p.DepthKeys)
	marks, sum := ref.Scan(ref.Mark(p.DepthKeys))
	capacity := max(0, int(sum)+room)
	start, fail := failedCounters(failed, map[int]uint32{layout.NActive: uint32(n), layout.NSent: sum})
	counters, indexOf := inout(l, "counters", start), inout(l, "index_of", append(marks, guardWord, guardWord))
	headers := output[layout.PacketHeader](l, "headers", 4)
	shapes, paints := output[[4]float32](l, "out_shapes", 2*(capacity+1)),
		output[[4]float32](l, "out_paints", capacity+1)
	keys, sentOf := output[uint32](l, "out_keys", capacity+1), output[[2]uint32](l, "sent_of", 3)
	l.r.Dispatch(&shaders.SendVisible{
		Params: input(l, "params", []layout.StepParams{{Unit: unitOfPackets}}), Counters: counters.Slice,
		DepthKeys: input(l, "depth_keys", p.DepthKeys),
		Shapes:    input(l, "shapes", shapesOf(p)), Paints: input(l, "paints", paintsOf(p.Splats)),
		IndexOf: indexOf.Slice, Headers: headers.Slice, OutShapes: shapes.Slice, OutPaints: paints.Slice,
		OutKeys: keys.Slice, SentOf: sentOf.Slice,
		Push: shaders.SendVisiblePush{Capacity: uint32(capacity), HeaderId: 2, View: 1},
	}, vk.Items(n+2*layout.SendBlock, layout.SendBlock)) // of no splats, and of too many, the header is written once
	if err := l.run(); err != nil {
		return err
	}
	packet, index := ref.SendVisible(p)
	want := fail.SplatsHeader(sum, uint32(capacity), unitOfPackets, start[layout.NSplats])
	if int(sum) > capacity {
		packet = &ref.Projection[float32]{}
	}
	sent := len(packet.Splats)
	gotShapes, errS := shapes.written(2 * sent)
	gotPaints, errP := paints.written(sent)
	gotKeys, errK := keys.written(sent)
	return first(
		equal("headers", headers.got[2:3], []layout.PacketHeader{want}), onlyWritten(headers, 2, 3),
		equal("sent_of", sentOf.got[1:2], [][2]uint32{{0, want.N}}), onlyWritten(sentOf, 1, 2),
		equal("counters", counters.got, withFailure(start, fail)),
		equal("index_of", indexOf.got, append(index, guardWord, guardWord)),
		errS, errP, errK, sameBytes("out_shapes", gotShapes, shapesOf(packet)),
		sameBytes("out_paints", gotPaints, paintsOf(packet.Splats)),
		sameBytes("out_keys", gotKeys, packet.DepthKeys),
	)
}

// onlyWritten requires that nothing was written of b but the elements from a to z.
func onlyWritten[T any](b *buffer[T], a, z int) error {
	for i := range b.got {
		for _, w := range wordsOf(vk.Bytes(&b.got[i])) {
			if w != guardWord && (i < a || i >= z) {
				return fmt.Errorf("binding %s: element [%d] was written, only [%d:%d] may be", b.name, i, a, z)
			}
		}
	}
	return nil
}

// headersOf are headers of packets of this unit with so many records.
func headersOf(n ...uint32) []layout.PacketHeader {
	var h []layout.PacketHeader
	for _, k := range n {
		h = append(h, layout.PacketHeader{N: k, Unit: unitOfPackets, Splats: 10 * k})
	}
	return h
}

// joining is one call of join_packets and of settle.
type joining struct {
	headers  []layout.PacketHeader
	capacity uint32
	failed   uint32 // before
}

func joinCases() []Case {
	var plain, full, failing, others []joining
	for n := 1; n <= 4; n++ {
		sizes := []uint32{1000, 0, 2049, 70000}[:n]
		_, sum := ref.Scan(sizes)
		plain = append(plain, joining{headersOf(sizes...), 1 << 20, 0}, joining{headersOf(make([]uint32, n)...), 0, 0})
		full = append(full, joining{headersOf(sizes...), sum, 0}, joining{headersOf(sizes...), sum - 1, 0},
			joining{headersOf(sizes...), 0, layout.FailedPacket})
		for k := range n {
			lost := headersOf(sizes...)
			lost[k] = layout.PacketHeader{Failed: 1, Needed: 5000, Unit: unitOfPackets}
			early, late := headersOf(sizes...), headersOf(sizes...)
			early[k].Unit, late[k].Unit = unitOfPackets-1, unitOfPackets+1
			failing = append(failing, joining{lost, 1 << 20, 0}, joining{lost, 1 << 20, layout.FailedPacket},
				joining{lost, 10, 0})
			others = append(others, joining{early, 1 << 20, 0}, joining{late, 1 << 20, layout.FailedIsects})
		}
	}
	over := []joining{
		{headersOf(math.MaxUint32, 1), 1 << 20, 0}, {headersOf(1<<31, 1<<31), 1 << 20, 0},
		{headersOf(1<<31, 1<<31, 7), math.MaxUint32 - 1, 0},
	}
	var cases []Case
	for _, kernel := range []string{"join_packets", "settle"} {
		check := func(list []joining) func(t *trial) error {
			return func(t *trial) error {
				return each(list, func(j joining) error {
					if kernel == "settle" {
						return checkSettle(t, j)
					}
					return checkJoin(t, j)
				})
			}
		}
		cases = append(cases, newCase(kernel, "one to four devices", check(plain)),
			newCase(kernel, "a peer failed", check(failing)),
			newCase(kernel, "packets of another unit", check(others)))
		if kernel == "join_packets" {
			cases = append(cases, newCase(kernel, "exactly full and one over", check(full)),
				newCase(kernel, "sums beyond 32 bits", check(over)))
		}
	}
	return cases
}

func checkJoin(t *trial, j joining) error {
	l := t.list()
	start, fail := failedCounters(j.failed, map[int]uint32{layout.NSplats: 1234, layout.NActive: 1234})
	p := layout.StepParams{Unit: unitOfPackets, View: layout.View{TileWidth: 7, TileHeight: 40}}
	counters, args := inout(l, "counters", start), output[[3]uint32](l, "dispatch_args", layout.NArgs)
	firstOf := output[uint32](l, "first_of", len(j.headers)+2)
	l.r.Dispatch(&shaders.JoinPackets{
		Params: input(l, "params", []layout.StepParams{p}), Counters: counters.Slice, DispatchArgs: args.Slice,
		Headers: input(l, "headers", j.headers),
		FirstOf: firstOf.Slice, Push: shaders.JoinPacketsPush{NDevices: uint32(len(j.headers)), Capacity: j.capacity},
	}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	want := fail.FirstOf(j.headers, j.capacity, unitOfPackets)
	after := withFailure(start, fail)
	after[layout.NActive] = want[len(j.headers)]
	got, err := firstOf.written(len(want))
	if err := first(err, equal("first_of", got, want), equal("counters", counters.got, after)); err != nil {
		return err
	}
	tiles := uint32(7 * 40)
	if fail.Failed != 0 {
		tiles = 0
	}
	return checkArgs(args.got, after[layout.NActive], tiles)
}

func checkSettle(t *trial, j joining) error {
	l := t.list()
	start, fail := failedCounters(j.failed, map[int]uint32{layout.NSplats: 1234, layout.NActive: 99})
	counters, firstOf := inout(l, "counters", start), output[uint32](l, "first_of", len(j.headers)+2)
	l.r.Dispatch(&shaders.Settle{
		Params: input(l, "params", []layout.StepParams{{Unit: unitOfPackets}}), Counters: counters.Slice,
		Headers: input(l, "headers", j.headers),
		FirstOf: firstOf.Slice, Push: shaders.SettlePush{NDevices: uint32(len(j.headers))},
	}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	want := fail.FirstOf(j.headers, math.MaxUint32, unitOfPackets)
	after := withFailure(start, fail)
	after[layout.NActive], after[layout.NTotal] = 1234, 0
	for _, h := range j.headers {
		after[layout.NTotal] += h.Splats
	}
	if fail.Failed != 0 {
		after[layout.NActive] = 0
	}
	got, err := firstOf.written(len(want))
	return first(err, equal("first_of", got, want), equal("counters", counters.got, after))
}

func copyCases() []Case {
	words := func(words int) func(t *trial) error {
		return func(t *trial) error {
			return each(packetSizes, func(n int) error {
				return each([]int{1, 2, 3, 4}, func(pieces int) error {
					return each([]int{1, 3, 1000},
						func(groups int) error {
							return checkCopy(t, n, words, pieces, groups,
								(n+pieces+groups)%2 == 0)
						})
				})
			})
		}
	}
	return []Case{
		newCase("copy_records", "keys", words(1)), newCase("copy_records", "absolute gradients", words(2)),
		newCase("copy_records", "gradients beside with depths", words(3)), newCase("copy_records", "paints", words(4)),
		newCase("copy_records", "shapes", words(8)), newCase("copy_records", "gradients", words(9)),
	}
}

// checkCopy copies the second of three packets, to its place among them or the beginning, part after part in any order.
func checkCopy(t *trial, n, words, pieces, groups int, at bool) error {
	l := t.list()
	const before = 13
	offsets := []uint32{0, before, uint32(before + n), uint32(before + n + 5)}
	source := t.uints(n*words+7, math.MaxUint32)
	parts := 1 + n%3
	push := shaders.CopyRecordsPush{Index: 1, Words: uint32(words), NPieces: uint32(pieces), NParts: uint32(parts)}
	to := 0
	if at {
		push.AtOffset, to = 1, before*words
	}
	from, firstOf := input(l, "source", source), input(l, "first_of", offsets)
	out := output[uint32](l, "destination", (before+n)*words+11)
	for _, k := range t.Perm(pieces * parts) {
		push.Piece, push.Part = uint32(k%pieces), uint32(k/pieces)
		l.r.Dispatch(&shaders.CopyRecords{FirstOf: firstOf, Source: from, Destination: out.Slice, Push: push},
			vk.Groups(groups))
	}
	if err := l.run(); err != nil {
		return err
	}
	return first(equal("destination", out.got[to:to+n*words], source[:n*words]), onlyWritten(out, to, to+n*words))
}

func gradCases() []Case {
	sizes := func(absgrad bool) func(t *trial) error {
		return func(t *trial) error {
			return each(packetSizes, func(n int) error { return checkSendGrads(t, n, absgrad, 0) })
		}
	}
	return []Case{
		newCase("send_grads", "sizes", sizes(false)), newCase("send_grads", "absolute gradients", sizes(true)),
		newCase("send_grads", "after a failure", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedPeer},
				func(failed uint32) error { return checkSendGrads(t, 700, true, failed) })
		}),
	}
}

// checkSendGrads sends the gradients of the second of three packets' splats.
func checkSendGrads(t *trial, n int, absgrad bool, failed uint32) error {
	l := t.list()
	const before = 13
	offsets := []uint32{0, before, uint32(before + n), uint32(before + n + 5)}
	splats := t.projection(before+n+5, 1).Splats
	grads := make([]ref.ProjectedGrad[float32], len(splats))
	for i := range splats {
		grads[i] = ref.ProjectedGrad[float32](t.anyFloats(9))
		for ch := range 3 {
			splats[i].Color[ch] = max(0, float32(t.NormFloat64()))
		}
	}
	abs := t.anyFloats(2 * len(splats))
	start, fail := failedCounters(failed, nil)
	headers := output[layout.PacketHeader](l, "headers", 4)
	out, outAbs := output[float32](l, "out_grads", 9*(n+3)), output[float32](l, "out_abs", 2*(n+3))
	l.r.Dispatch(&shaders.SendGrads{
		Params: input(l, "params", []layout.StepParams{{Unit: unitOfPackets}}), Counters: input(l, "counters", start),
		FirstOf:    input(l, "first_of", offsets),
		Paints:     input(l, "paints", floatsOf(paintsOf(splats))),
		VProjected: input(l, "v_projected", floatsOf(gradientsOf(grads))),
		VAbsMean2d: input(l, "v_abs_mean2d", abs), Headers: headers.Slice, OutGrads: out.Slice, OutAbs: outAbs.Slice,
		Push: shaders.SendGradsPush{Index: 1, HeaderId: 3}, Spec: shaders.SendGradsSpec{Absgrad: absgrad},
	}, vk.Items((n+700)*9, layout.CopyBlock))
	if err := l.run(); err != nil {
		return err
	}
	want := fail.GradsHeader(uint32(n), unitOfPackets, start[layout.NSplats])
	sent := int(want.N)
	gotGrads, errG := out.written(9 * sent)
	gotAbs, errA := outAbs.written(0)
	if absgrad {
		gotAbs, errA = outAbs.written(2 * sent)
		abs = abs[2*before : 2*(before+sent)]
	} else {
		abs = nil
	}
	return first(
		equal("headers", headers.got[3:], []layout.PacketHeader{want}), onlyWritten(headers, 3, 4), errG, errA,
		// Products with 1, which may lose what is below float32's normal numbers.
		closeTo("out_grads", gotGrads,
			floatsOf(gradientsOf(ref.SendGrads(splats[before:before+sent], grads[before:before+sent]))), 1.2e-38, 0),
		sameBytes("out_abs", gotAbs, abs),
	)
}
