package check

import (
	"math"
	"math/rand/v2"
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

// anyFloats are floats of any kind, of which copies must keep every bit.
func (t source) anyFloats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(t.NormFloat64()); t.IntN(4) == 0 {
			x[i] = bad[t.IntN(len(bad))]
		}
	}
	return x
}

func (t source) projection(n int, share float64) *ref.Projection[float32] {
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
	sizes := func(share float64, room int) func(t *trial) {
		return over(packetSizes, func(t *trial, n int) { checkSend(t, t.projection(n, share), room, 0) })
	}
	return append(casesOf("send_visible", table{
		{"sizes", sizes(0.3, 3)}, {"all seen", sizes(1, 3)}, {"none seen", sizes(0, 3)}, {"few seen", sizes(0.002, 3)},
		{"exactly full", sizes(0.3, 0)},
		{"one over", over(packetSizes[1:], func(t *trial, n int) { checkSend(t, t.projection(n, 1), -1, 0) })},
		{"after a failure", over([]int{-1, 0, 5}, func(t *trial, room int) {
			checkSend(t, t.projection(700, 0.5), room, layout.FailedIsects)
			checkSend(t, t.projection(700, 0.5), room, layout.FailedPacket)
		})},
	}), newCase("mark_visible", "sizes", over(packetSizes,
		func(t *trial, n int) { checkMark(t, t.projection(n, 0.4).DepthKeys) })))
}

func checkMark(t *trial, keys []uint32) {
	t.dispatch(&shaders.MarkVisible{Counters: in(t, junkCounters(counts{layout.NActive: uint32(len(keys))})...),
		DepthKeys: in(t, keys...), Marks: out[uint32](t, len(keys)+7, exactly(ref.Mark(keys)...))},
		vk.Items(len(keys)+3*layout.Group, layout.Group))
	t.run()
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
func checkSend(t *trial, p *ref.Projection[float32], room int, failed uint32) {
	n := len(p.DepthKeys)
	marks, sum := ref.Scan(ref.Mark(p.DepthKeys))
	capacity := max(0, int(sum)+room)
	start, fail := failedCounters(failed, counts{layout.NActive: uint32(n), layout.NSent: sum})
	packet, index := ref.SendVisible(p)
	want := fail.SplatsHeader(sum, uint32(capacity), unitOfPackets, start[layout.NSplats])
	if int(sum) > capacity {
		packet = &ref.Projection[float32]{}
	}
	t.dispatch(&shaders.SendVisible{
		Params:    in(t, layout.StepParams{Unit: unitOfPackets}),
		Counters:  update(t, start, exactly(withFailure(start, fail)...)),
		DepthKeys: in(t, p.DepthKeys...), Shapes: in(t, shapesOf(p)...), Paints: in(t, paintsOf(p.Splats)...),
		IndexOf:   update(t, append(marks, guardWord, guardWord), exactly(append(index, guardWord, guardWord)...)),
		Headers:   out[layout.PacketHeader](t, 4, exactlyAt(2, want)),
		OutShapes: out[[4]float32](t, 2*(capacity+1), exactly(shapesOf(packet)...)),
		OutPaints: out[[4]float32](t, capacity+1, exactly(paintsOf(packet.Splats)...)),
		OutKeys:   out[uint32](t, capacity+1, exactly(packet.DepthKeys...)),
		SentOf:    out[[2]uint32](t, 3, exactlyAt(1, [2]uint32{0, want.N})),
		Push:      shaders.SendVisiblePush{Capacity: uint32(capacity), HeaderId: 2, View: 1},
	}, vk.Items(n+2*layout.SendBlock, layout.SendBlock)) // of no splats, and of too many, the header is written once
	t.run()
}

// headersOf are headers of packets of this unit with so many records.
func headersOf(n ...uint32) []layout.PacketHeader {
	var h []layout.PacketHeader
	for _, k := range n {
		h = append(h, layout.PacketHeader{N: k, Unit: unitOfPackets, Splats: 10 * k})
	}
	return h
}

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
	beyond := []joining{{headersOf(math.MaxUint32, 1), 1 << 20, 0}, {headersOf(1<<31, 1<<31), 1 << 20, 0},
		{headersOf(1<<31, 1<<31, 7), math.MaxUint32 - 1, 0}}
	return slices.Concat(casesOf("join_packets", table{{"one to four devices", over(plain, checkJoin)},
		{"a peer failed", over(failing, checkJoin)}, {"packets of another unit", over(others, checkJoin)},
		{"exactly full and one over", over(full, checkJoin)}, {"sums beyond 32 bits", over(beyond, checkJoin)}}),
		casesOf("settle", table{{"one to four devices", over(plain, checkSettle)}, {"a peer failed", over(failing,
			checkSettle)}, {"packets of another unit", over(others, checkSettle)}}))
}

func checkJoin(t *trial, j joining) {
	start, fail := failedCounters(j.failed, counts{layout.NSplats: 1234, layout.NActive: 1234})
	first := fail.FirstOf(j.headers, j.capacity, unitOfPackets)
	after, tiles := withFailure(start, fail), uint32(7*40)
	after[layout.NActive] = first[len(j.headers)]
	if fail.Failed != 0 {
		tiles = 0
	}
	t.dispatch(&shaders.JoinPackets{Params: in(t, layout.StepParams{Unit: unitOfPackets, View: layout.View{TileWidth: 7,
		TileHeight: 40}}), Counters: update(t, start, exactly(after...)), DispatchArgs: argsOf(t,
		unitGrids(after[layout.NActive], tiles)), Headers: in(t, j.headers...), FirstOf: out[uint32](t, len(first)+1,
		exactly(first...)), Push: shaders.JoinPacketsPush{NDevices: uint32(len(j.headers)), Capacity: j.capacity}},
		vk.Groups(1))
	t.run()
}

func checkSettle(t *trial, j joining) {
	start, fail := failedCounters(j.failed, counts{layout.NSplats: 1234, layout.NActive: 99})
	first := fail.FirstOf(j.headers, math.MaxUint32, unitOfPackets)
	after := withFailure(start, fail)
	after[layout.NActive], after[layout.NTotal] = 1234, 0
	for _, h := range j.headers {
		after[layout.NTotal] += h.Splats
	}
	if fail.Failed != 0 {
		after[layout.NActive] = 0
	}
	t.dispatch(&shaders.Settle{Params: in(t, layout.StepParams{Unit: unitOfPackets}), Counters: update(t, start,
		exactly(after...)), Headers: in(t, j.headers...), FirstOf: out[uint32](t, len(first)+1, exactly(first...)),
		Push: shaders.SettlePush{NDevices: uint32(len(j.headers))}}, vk.Groups(1))
	t.run()
}

func copyCases() []Case {
	words := func(words int) func(t *trial) {
		return over(packetSizes, func(t *trial, n int) {
			eachOf([][2]int{{1, 1}, {1, 1000}, {2, 3}, {3, 1}, {3, 1000}, {4, 3}}, func(s [2]int) {
				checkCopy(t, n, words, s[0], s[1], (n+s[0]+s[1])%2 == 0)
			})
		})
	}
	return casesOf("copy_records", table{{"keys", words(1)}, {"absolute gradients", words(2)},
		{"gradients beside with depths", words(3)}, {"paints", words(4)}, {"shapes", words(8)}, {"gradients",
			words(9)}})
}

// packetBefore is how many records stand before the second of three packets.
const packetBefore = 13

// offsetsOf says where three packets begin, the second of which has n records, and where they end.
func offsetsOf(n int) []uint32 {
	return []uint32{0, packetBefore, uint32(packetBefore + n), uint32(packetBefore + n + 5)}
}

// checkCopy copies the second of three packets, to its place among them or the beginning, part after part in any order.
func checkCopy(t *trial, n, words, pieces, groups int, at bool) {
	source := t.uints(n*words+7, math.MaxUint32)
	parts, to := 1+n%3, 0
	if at {
		to = packetBefore * words
	}
	from, firstOf := in(t, source...), in(t, offsetsOf(n)...)
	copied := out[uint32](t, (packetBefore+n)*words+11, exactlyAt(to, source[:n*words]...))
	for _, k := range t.Perm(pieces * parts) {
		t.dispatch(&shaders.CopyRecords{FirstOf: firstOf, Source: from, Destination: copied,
			Push: shaders.CopyRecordsPush{Index: 1, Words: uint32(words), NPieces: uint32(pieces),
				NParts: uint32(parts), AtOffset: layout.Bit(at), Piece: uint32(k % pieces), Part: uint32(k / pieces)},
		}, vk.Groups(groups))
	}
	t.run()
}

func gradCases() []Case {
	sizes := func(beside int) func(t *trial) {
		return over(packetSizes, func(t *trial, n int) { checkSendGrads(t, n, beside, 0) })
	}
	return append(casesOf("send_grads", table{
		{"sizes", sizes(plain)}, {"absolute gradients", sizes(withAbsolute)},
		{"after a failure", over([]uint32{layout.FailedIsects, layout.FailedPeer},
			func(t *trial, failed uint32) { checkSendGrads(t, 700, withAbsolute, failed) })},
	}), newCase("send_grads_depth", "sizes", sizes(withDepth)))
}

// checkSendGrads sends the gradients of the second of three packets' splats, with what is summed beside them.
func checkSendGrads(t *trial, n, beside int, failed uint32) {
	splats := t.projection(packetBefore+n+5, 1).Splats
	grads := make([]ref.ProjectedGrad[float32], len(splats))
	for i := range splats {
		grads[i] = ref.ProjectedGrad[float32](t.anyFloats(9))
		for ch := range 3 {
			splats[i].Color[ch] = max(0, float32(t.NormFloat64()))
		}
	}
	words := max(beside, withAbsolute)
	others := t.anyFloats(words * len(splats))
	start, fail := failedCounters(failed, nil)
	header := fail.GradsHeader(uint32(n), unitOfPackets, start[layout.NSplats])
	end, wantOthers := packetBefore+int(header.N), []float32(nil)
	if beside != plain {
		wantOthers = others[words*packetBefore : words*end]
	}
	sent, sentOthers := out[float32](t, 9*(n+3)), out[float32](t, words*(n+3), exactly(wantOthers...))
	from := in(t, others...)
	var pass vk.Pass = &shaders.SendGrads{Params: in(t, layout.StepParams{Unit: unitOfPackets}),
		Counters: in(t, start...), FirstOf: in(t, offsetsOf(n)...), Paints: in(t, floatsOf(paintsOf(splats))...),
		VProjected: in(t, floatsOf(grads)...), VAbsMean2d: from, Headers: out[layout.PacketHeader](t, 4,
			exactlyAt(3, header)), OutGrads: sent, OutAbs: sentOthers, Push: shaders.SendGradsPush{Index: 1,
			HeaderId: 3}, Spec: shaders.SendGradsSpec{Absgrad: beside == withAbsolute}}
	if beside == withDepth {
		pass = vk.Derive(pass, func(p *shaders.SendGradsDepth) { p.VBeside, p.OutBeside = from, sentOthers })
	}
	t.dispatch(pass, vk.Items((n+700)*9, layout.CopyBlock))
	t.run()
	// Products with 1, which may lose what is below float32's normal numbers.
	near("out_grads", head(t, sent, 9*int(header.N)),
		floatsOf(ref.SendGrads(splats[packetBefore:end], grads[packetBefore:end])), 1.2e-38, 0)
}

func reduceCases() []Case {
	return slices.Concat(casesOf("reduce_slots", table{
		{"sizes", over([]int{0, 1, 3, 4, 5, 27, 28, 29, 255, 256, 257, 513},
			func(t *trial, n int) { checkReduce(t, t.ellipses(n, 250, 130), t.camera(250, 130), 1) })},
		{"64 slots and 65", func(t *trial) {
			p := &ref.Projection[float32]{}
			for _, size := range [][2]float64{{8, 8}, {8, 9}, {9, 8}, {8, 7}} { // tiles
				addCircle(t.source, p, [2]float64{8 * size[0], 8 * size[1]}, 8*size[0]-0.6, 8*size[1]-0.6)
			}
			checkReduce(t, p, t.camera(200, 200), 1)
		}},
		{"more than 28 and 56 rows of tiles", func(t *trial) {
			p := t.withHuge(t.ellipses(20, 60, 1100), [2]float64{30, 500}, 4000)
			checkReduce(t, p, t.camera(60, 1100), 1)
		}},
		{"bands give the same bytes", func(t *trial) {
			p := t.withHuge(t.ellipses(300, 250, 130), [2]float64{125, 65}, 4000)
			checkReduce(t, p, t.camera(250, 130), 1, 2, 3, 9, 20)
		}},
		{"a unit without isects sets zeros", func(t *trial) {
			p := t.ellipses(300, 100, 60)
			for i := range p.Extents {
				p.Extents[i] = [3]float32{}
				p.Splats[i].Mean2D = [2]float32{-100, -100}
			}
			checkReduce(t, p, t.camera(100, 60), 1)
		}},
		{"a unit whose isects did not fit sets zeros", over([]int{1, 2}, checkReduceFailed)},
	}), []Case{newCase("reduce_slots_depth", "bands", over([]int{1, 2, 5}, func(t *trial, bands int) {
		v := t.camera(250, 130)
		p := t.withHuge(t.ellipses(120, 250, 130), [2]float64{125, 65}, 400)
		checkBands(t, p, v, runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles()), bands, withDepth)
	}))})
}

// withHuge adds three splats that cover very many tiles.
func (t source) withHuge(p *ref.Projection[float32], mean [2]float64, size float64) *ref.Projection[float32] {
	for range 3 {
		t.addEllipse(p, mean, size, size, 0.9)
	}
	return p
}

// checkReduceFailed has first isects without isects, in the first of so many bands. Some splats have very many tiles,
// and slots that are not there.
func checkReduceFailed(t *trial, bands int) {
	p, v := t.ellipses(600, 250, 130), t.camera(250, 130)
	p = t.withHuge(p, [2]float64{125, 65}, 400)
	s := runTiles(t, p, v, 0, bands, 100)
	same("counters", s.counters[layout.NIsects:layout.NIsects+1], []uint32{0})
	start := stepBefore(len(p.Splats))
	want := slices.Clone(start)
	for _, splat := range s.ranks {
		want[splat] = ref.ProjectedGrad[float32]{}
	}
	t.reduce(plain, p, v, s, 0, bands, update(t, floatsOf(start), exactly(floatsOf(want)...)), out[float32](t, 0,
		nothing))
	t.run()
}

// addCircle adds an upright ellipse with the given extents.
func addCircle(t source, p *ref.Projection[float32], mean [2]float64, ex, ey float64) {
	t.addEllipse(p, mean, 1, 1, 0.5)
	last := len(p.Splats) - 1
	p.Extents[last] = [3]float32{float32(ex), float32(ey), float32(ex)}
	p.Splats[last].Conic = [3]float32{float32(9.7 / (ex * ex)), 0, float32(9.7 / (ey * ey))}
}

// slotGrad is the gradient that the check invents for a (splat, tile) pair, whatever its slot.
func slotGrad(splat, tile uint32) (g ref.ProjectedGrad[float32]) {
	r := rand.New(rand.NewPCG(uint64(splat), uint64(tile)))
	for k := range g {
		g[k] = float32(r.NormFloat64())
	}
	return g
}

func (s *isects) grads() (grads []ref.ProjectedGrad[float32]) {
	for slot, tile := range s.tiles {
		grads = append(grads, slotGrad(s.splats[slot], tile))
	}
	return grads
}

// stepBefore are gradients of the step before.
func stepBefore(n int) []ref.ProjectedGrad[float32] {
	g := make([]ref.ProjectedGrad[float32], n)
	for i := range g {
		g[i] = slotGrad(uint32(i), 1<<31)
	}
	return g
}

// What is summed beside gradients, by how many numbers it has.
const (
	plain        = 0
	withAbsolute = 2
	withDepth    = 3
)

// checkReduce sums in every number of bands and wants the bytes of ref.ReduceSlots, in float32: additions are exactly
// rounded on every device.
func checkReduce(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands ...int) {
	whole := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	eachOf(bands, func(n int) {
		checkBands(t, p, v, whole, n, plain)
		checkBands(t, p, v, whole, n, withAbsolute)
	})
}

func checkBands(t *trial, p *ref.Projection[float32], v *ref.View[float32], whole *isects, n, beside int) {
	start := stepBefore(len(p.Splats))
	want := slices.Clone(start)
	for i := range want {
		if p.DepthKeys[i] != ref.Culled {
			want[i] = ref.ProjectedGrad[float32]{}
		}
	}
	lists := ref.Lists{SplatFromRank: whole.ranks, FirstIsect: whole.first, TileIDs: whole.tiles}
	ref.ReduceSlots(want, whole.grads(), &lists, v.Grid().Cols, func(rank int) int {
		a, b := whole.slots(rank)
		return b - a
	})
	var parts []*isects
	for band := range n {
		parts = append(parts, runTiles(t, p, v, band, n, len(whole.tiles)))
	}
	grads := update(t, floatsOf(start), exactly(floatsOf(want)...))
	others := update(t, besideOf(start, withAbsolute), exactly(besideOf(start, withAbsolute)...))
	if beside != plain {
		others = update(t, besideOf(start, beside), exactly(besideOf(want, beside)...))
	}
	for band, s := range parts {
		t.reduce(beside, p, v, s, band, n, grads, others)
	}
	t.run()
}

// besideOf are the numbers that the check invents beside gradients: the first n of each, which need not be positive for
// their sums to be right.
func besideOf(v []ref.ProjectedGrad[float32], n int) (out []float32) {
	for _, g := range v {
		out = append(out, g[:n]...)
	}
	return out
}

// reduce records reduce_slots, or reduce_slots_depth, for one band.
func (t *trial) reduce(beside int, p *ref.Projection[float32], v *ref.View[float32], s *isects, band, bands int, grads,
	others vk.Slice[float32]) {
	slots := s.grads()
	besides := in(t, besideOf(slots, max(beside, withAbsolute))...)
	var pass vk.Pass = &shaders.ReduceSlots{Params: in(t, paramsOf(v)), Counters: in(t, s.counters...),
		SplatFromRank: in(t, s.ranks...), FirstIsect: in(t, s.first...),
		Shapes: in(t, shapesOf(p)...), VSlots: in(t, floatsOf(slots)...),
		VProjected: grads, VAbsSlots: besides, VAbsMean2d: others,
		Spec: shaders.ReduceSlotsSpec{Absgrad: beside == withAbsolute},
		Push: shaders.ReduceSlotsPush{Band: uint32(band), NBands: uint32(bands)}}
	if beside == withDepth {
		pass = vk.Derive(pass, func(p *shaders.ReduceSlotsDepth) { p.VBesideSlots, p.VBeside = besides, others })
	}
	t.dispatch(pass, vk.Items(len(s.ranks)+256, layout.ReduceRanks))
}
