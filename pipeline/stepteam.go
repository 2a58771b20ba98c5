package pipeline

import (
	"vksplat/pipeline/team"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// teamBuffers are the scratch buffers of a step of a team, besides those of any step. S is the capacity of the device's
// shard, R the records of a packet.
type teamBuffers struct {
	indexOf vk.Slice[uint32]    // [views][S] number of a splat in the packet of a view, CULLED
	sentOf  vk.Slice[[2]uint32] // [views] 0 and the number of the device's splats that a view sees
	firstOf vk.Slice[uint32]    // [devices + 1] first of a device's splats among those that the view sees
	// [views + 1] the same of the gradients that come back; only differences are used
	backOf  vk.Slice[uint32]
	packs   []team.Packet     // packets as they are made, by view, and the gradients that go back, by device
	vViews  vk.Slice[float32] // [views][R][9] gradients of the device's own splats
	vBeside vk.Slice[float32] // [views][R][besideWords]
}

// piece is number k of n equal pieces of a packet. inParts has it copied by several dispatches, each about as long as
// the passes that it may overlap.
type piece struct {
	k, n    int
	inParts bool
}

var whole = piece{n: 1}

// recordTeamStep lists one training step of a device of a team. Each comment: reads -> writes.
func (v *view) recordTeamStep() {
	l := v.s.links
	v.begin() // counters -> counts and dispatch arguments of the shard
	l.Others(func(w int) {
		v.projectView(w) // chunks -> shapes paints depth_keys
		v.packView(w)    // shapes paints depth_keys -> packets, index_of
	})
	v.putVisible(piece{n: l.Pieces})
	v.projectView(l.Rank) // while the first piece is written
	v.await(team.Visible) // the others can read it while this device's own packet is made
	v.packView(l.Rank)
	// packets -> shapes paints depth_keys, counts and dispatch arguments of the view
	v.exchange(team.Visible, l.Pieces, v.joinPackets, v.receiveVisible, v.putVisible)
	v.forwardAndBack()
	l.Others(v.sendGrads) // v_projected paints -> packets
	v.putGrads(piece{n: l.Pieces})
	v.sendGrads(l.Rank) // v_projected paints -> v_views
	// packets -> v_views, counts of the shard, or failed
	v.exchange(team.Grads, l.Pieces, v.countGrads, v.receiveGrads, v.putGrads)
	v.stepOfViews() // v_views index_of chunks -> chunks
	// v_correction correction appearances -> appearances, unless the step failed anywhere
	v.appearanceAdam()
	v.trackErrors() // places errors history -> history, unless the step failed anywhere
	v.verifyModel("project_bwd_adam_views")
	v.finish(true) // not before the others are known to have done the step
}

// exchange lists the exchange of packets in n pieces, once the first is written: when all devices have written a piece
// it is received, and the next one is written at the same time. first comes before the first piece is received, and
// shares its barriers.
func (v *view) exchange(exchange, n int, first func(), receive, put func(p piece)) {
	for k := range n {
		v.await(exchange)
		if k == 0 {
			first()
		}
		receive(piece{k: k, n: n})
		if k+1 < n {
			put(piece{k: k + 1, n: n})
		}
	}
}

// await ends a phase: what comes next waits for an exchange.
func (v *view) await(exchange int) {
	if g := v.s.links.Gates[exchange]; g != nil {
		v.r.Await(g)
	}
}

// recordTeamRender lists the making of a picture by the first device; the others send their splats of it.
func (v *view) recordTeamRender() {
	v.begin()
	v.projectView(0)
	v.packView(0)
	if v.s.links.Rank != 0 {
		v.putVisibleTo(0, whole)
		v.finish(false)
		return
	}
	v.exchange(team.Visible, 1, v.joinPackets, v.receiveVisible, nil)
	v.drawPicture()
}

// packed returns packet number i in the device's own memory.
func (v *view) packed(i int) *team.Packet {
	if v.team.packs == nil {
		v.team.packs = make([]team.Packet, v.s.links.N)
	}
	return &v.team.packs[i]
}

// projectView projects the device's splats for view w.
func (v *view) projectView(w int) {
	v.shapes, v.paints, v.depthKeys = vk.Slice[[4]float32]{}, vk.Slice[[4]float32]{}, vk.Slice[uint32]{}
	v.projectFor(v.f.peers.ofView[w])
}

// packView makes a packet of the device's splats that view w sees.
func (v *view) packView(w int) {
	l, n, p := v.s.links, v.s.model.capacity(), v.packed(w)
	scratch(v.r, &v.team.indexOf, "index_of", l.N*n)
	scratch(v.r, &v.team.sentOf, "sent_of", l.N)
	marks := v.team.indexOf.At(w*n, n)
	v.r.Dispatch(&shaders.MarkVisible{Counters: v.s.counters, DepthKeys: v.depthKeys, Marks: marks},
		v.indirect(layout.ArgsSplats))
	v.scan("seen scan", marks, layout.NActive, layout.ArgsScanSplats, layout.NSent, false)
	p.Shapes = vk.ScratchOf[[4]float32](v.r, "packed shapes", 2*l.Records)
	p.Paints = vk.ScratchOf[[4]float32](v.r, "packed paints", l.Records)
	p.Keys = vk.ScratchOf[uint32](v.r, "packed keys", l.Records)
	v.r.Dispatch(&shaders.SendVisible{
		Params: v.f.params, Counters: v.s.counters, DepthKeys: v.depthKeys, Shapes: v.shapes, Paints: v.paints,
		IndexOf: marks, Headers: l.Sent[team.Visible][w], OutShapes: p.Shapes, OutPaints: p.Paints,
		OutKeys: p.Keys, SentOf: v.team.sentOf,
		Push: shaders.SendVisiblePush{Capacity: uint32(l.Records), HeaderId: uint32(l.Rank), View: uint32(w)},
	}, vk.Items(max(n, 1), layout.SendBlock)) // the first workgroup writes the header
}

// putVisible writes a piece of the packets to the others.
func (v *view) putVisible(p piece) { v.s.links.Others(func(w int) { v.putVisibleTo(w, p) }) }

func (v *view) putVisibleTo(w int, p piece) {
	v.copyVisible(p, v.team.packs[w], v.s.links.Out[w], vk.Cast[uint32](v.team.sentOf.View), 2*w, false)
}

// receiveVisible receives a piece of the packets of the others. Of the last one depths come first: the rest overlaps
// the passes that sort by them.
func (v *view) receiveVisible(p piece) {
	v.s.links.Others(func(o int) {
		if p.k+1 < p.n {
			v.copyVisible(p, v.s.links.In[o], v.joined(), v.team.firstOf, o, true)
			return
		}
		v.copyKeys(p, v.s.links.In[o], v.joined(), v.team.firstOf, o, true)
		p.inParts = true
		v.r.Later(func() { v.copyShapes(p, v.s.links.In[o], v.joined(), v.team.firstOf, o, true) })
	})
}

// joined are the packets of the view side by side.
func (v *view) joined() team.Packet {
	return team.Packet{Shapes: v.shapes, Paints: v.paints, Keys: v.depthKeys}
}

// joinPackets finds the places of all devices' packets side by side, and puts the device's own there.
func (v *view) joinPackets() {
	l, n := v.s.links, v.s.viewSplats
	scratch(v.r, &v.team.firstOf, "first_of", l.N+1)
	v.r.Dispatch(&shaders.JoinPackets{
		Params: v.f.params, Counters: v.s.counters, DispatchArgs: v.s.args, Headers: l.Headers[team.Visible],
		FirstOf: v.team.firstOf,
		Push:    shaders.JoinPacketsPush{NDevices: uint32(l.N), Capacity: uint32(n)},
	}, vk.Groups(1))
	v.shapes = vk.ScratchOf[[4]float32](v.r, "joined shapes", 2*n)
	v.paints = vk.ScratchOf[[4]float32](v.r, "joined paints", n)
	v.depthKeys = vk.ScratchOf[uint32](v.r, "joined depth_keys", n)
	v.copyVisible(whole, v.team.packs[l.Rank], v.joined(), v.team.firstOf, l.Rank, true)
}

// copyVisible copies a piece of packet number i: to its place among the others, or to the start.
func (v *view) copyVisible(p piece, from, to team.Packet, firstOf vk.Slice[uint32], i int, place bool) {
	v.copyShapes(p, from, to, firstOf, i, place)
	v.copyKeys(p, from, to, firstOf, i, place)
}

func (v *view) copyKeys(p piece, from, to team.Packet, firstOf vk.Slice[uint32], i int, place bool) {
	v.copyRecords(p, firstOf, i, team.KeyWords, from.Keys, to.Keys, place)
}

func (v *view) copyShapes(p piece, from, to team.Packet, firstOf vk.Slice[uint32], i int, place bool) {
	v.copyRecords(p, firstOf, i, team.ShapeWords, vk.Cast[uint32](from.Shapes.View), vk.Cast[uint32](to.Shapes.View),
		place)
	v.copyRecords(p, firstOf, i, team.PaintWords, vk.Cast[uint32](from.Paints.View), vk.Cast[uint32](to.Paints.View),
		place)
}

// mostCopying is the most workgroups of a copy: enough for any bus, few enough that a GPU has room for the copies of
// both directions and for the passes that they overlap. wordsInPart are the words of a record in a part.
const (
	mostCopying = 128
	wordsInPart = 3
)

// copyRecords copies a piece of packet number i, whose records have words words.
func (v *view) copyRecords(p piece, firstOf vk.Slice[uint32], i, words int, from, to vk.Slice[uint32], place bool) {
	parts := 1
	if p.inParts {
		parts = (words + wordsInPart - 1) / wordsInPart
	}
	push := shaders.CopyRecordsPush{Index: uint32(i), Words: uint32(words), Piece: uint32(p.k), NPieces: uint32(p.n),
		NParts: uint32(parts)}
	if place {
		push.AtOffset = 1
	}
	blocks := (v.s.links.Records*words + layout.CopyBlock - 1) / layout.CopyBlock
	for part := range parts {
		push.Part = uint32(part)
		v.r.Dispatch(&shaders.CopyRecords{FirstOf: firstOf, Source: from, Destination: to, Push: push},
			vk.Groups(min(blocks/p.n/parts+1, mostCopying)))
	}
}

// sendGrads makes a packet of the gradients of device o's projections; the device's own go where those of all views are
// collected.
func (v *view) sendGrads(o int) {
	l, p := v.s.links, v.packed(o)
	v.allocateViews()
	if o == l.Rank {
		p.Grads, p.Beside = v.gradsOf(o)
	} else {
		p.Grads = vk.ScratchOf[float32](v.r, "packed grads", team.GradWords*l.Records)
		if p.Beside = p.Grads; v.s.besideWords() > 0 {
			p.Beside = vk.ScratchOf[float32](v.r, "packed beside grads", v.s.besideWords()*l.Records)
		}
	}
	var pass vk.Pass = &shaders.SendGrads{
		Params: v.f.params, Counters: v.s.counters, FirstOf: v.team.firstOf,
		Paints:     vk.Cast[float32](v.paints.View),
		VProjected: vk.Cast[float32](v.vProjected.View), VAbsMean2d: v.vBeside,
		Headers: l.Sent[team.Grads][o], OutGrads: p.Grads, OutAbs: p.Beside,
		Push: shaders.SendGradsPush{Index: uint32(o), HeaderId: uint32(l.Rank)},
		Spec: shaders.SendGradsSpec{Absgrad: v.s.strategy.variants().absgrad},
	}
	if v.s.depths != nil {
		pass = vk.Derive(pass, func(g *shaders.SendGradsDepth) { g.VBeside, g.OutBeside = v.vBeside, p.Beside })
	}
	v.r.Dispatch(pass, vk.Items(l.Records*team.GradWords, layout.CopyBlock))
}

// allocateViews declares the buffers for the gradients of all views.
func (v *view) allocateViews() {
	n := v.s.links.N * v.s.links.Records
	scratch(v.r, &v.team.vViews, "v_views", team.GradWords*n)
	if words := v.s.besideWords(); words > 0 {
		scratch(v.r, &v.team.vBeside, "v_beside_views", words*n)
	} else {
		v.team.vBeside = v.team.vViews // not read
	}
}

func (v *view) gradsOf(w int) (grads, beside vk.Slice[float32]) {
	size := team.GradWords * v.s.links.Records
	grads = v.team.vViews.At(w*size, size)
	if beside = grads; v.s.besideWords() > 0 {
		size = v.s.besideWords() * v.s.links.Records
		beside = v.team.vBeside.At(w*size, size)
	}
	return grads, beside
}

func (v *view) putGrads(p piece) {
	v.s.links.Others(func(o int) {
		from, to := v.team.packs[o], v.s.links.In[o]
		v.copyGrads(p, from.Grads, from.Beside, to.Grads, to.Beside, v.team.firstOf, o)
	})
}

func (v *view) receiveGrads(p piece) {
	v.s.links.Others(func(w int) {
		from := v.s.links.Out[w]
		grads, beside := v.gradsOf(w)
		v.copyGrads(p, from.Grads, from.Beside, grads, beside, v.team.backOf, w)
	})
}

// copyGrads copies a piece of the gradients in packet number i.
func (v *view) copyGrads(p piece, grads, beside, to, besideTo vk.Slice[float32], firstOf vk.Slice[uint32], i int) {
	v.copyRecords(p, firstOf, i, team.GradWords, vk.Cast[uint32](grads.View), vk.Cast[uint32](to.View), false)
	if words := v.s.besideWords(); words > 0 {
		v.copyRecords(p, firstOf, i, words, vk.Cast[uint32](beside.View), vk.Cast[uint32](besideTo.View), false)
	}
}

// countGrads returns to the device's own shard: it finds how many gradients come from each view.
func (v *view) countGrads() {
	l := v.s.links
	scratch(v.r, &v.team.backOf, "back_of", l.N+1)
	v.r.Dispatch(&shaders.Settle{
		Params: v.f.params, Counters: v.s.counters, Headers: l.Headers[team.Grads], FirstOf: v.team.backOf,
		Push: shaders.SettlePush{NDevices: uint32(l.N)},
	}, vk.Groups(1))
}

// stepOfViews propagates the mean of the views' gradients to the parameters and steps the optimiser, chunk by chunk.
func (v *view) stepOfViews() {
	l := v.s.links
	for _, c := range v.s.model.chunks {
		var pass vk.Pass = &shaders.ProjectBwdAdamViews{
			Params: v.f.peers.ofViews, Counters: v.s.counters, IndexOf: v.team.indexOf, Chunk: c.Slice,
			VViews:    vk.Cast[layout.ProjectedGrad](v.team.vViews.View),
			VAbsViews: vk.Cast[[2]float32](v.team.vBeside.View),
			Mixed:     v.s.model.Mixed,
			Push: shaders.ProjectBwdAdamViewsPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: uint32(v.s.model.NParams),
				IndexStride: uint32(v.s.model.capacity()), GradStride: uint32(l.Records),
			},
			Spec: shaders.ProjectBwdAdamViewsSpec{Absgrad: v.s.strategy.variants().absgrad,
				Noise:  v.s.strategy.variants().noise,
				NViews: uint32(l.N)},
		}
		if v.s.depths != nil {
			pass = vk.Derive(pass, func(p *shaders.ProjectBwdAdamViewsDepth) {
				p.VBesideViews = vk.Cast[[3]float32](v.team.vBeside.View)
			})
		}
		v.r.Dispatch(pass, vk.Items(c.splats, 128))
	}
}
