package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// shared are the scratch buffers of a step of a team, beside those of any step. S is the capacity of the device's share of the model, R the records of a
// packet.
type shared struct {
	indexOf  vk.Slice[uint32]          // [views][S] number of a splat in the packet of a view, CULLED
	firstOf  vk.Slice[uint32]          // [devices + 1] first of a device's splats among those that the view sees
	backOf   vk.Slice[uint32]          // [views + 1] likewise, of the gradients that come back; only differences are used
	own      packet                    // of the device's own view
	vViews   vk.Slice[float32]         // [views][R][9] gradients of the device's own splats
	vAbsView vk.Slice[float32]         // [views][R][2] with absgrad
	maps     vk.Slice[layout.Exposure] // [photos] with exposure
}

// recordTeamStep lists one training step of a device of a team. Each comment: reads -> writes.
func (v *view) recordTeamStep() {
	l := v.links
	v.begin() // counters -> counts and dispatch arguments of the share
	for k := 1; k < l.n; k++ {
		v.sendView((l.self + k) % l.n) // chunks -> packets, index_of
	}
	v.await(exchangeVisible) // the others can read theirs while this device's own is made
	v.sendView(l.self)
	v.await(exchangeVisible)
	v.joinPackets() // packets -> projected extents depth_keys, counts and dispatch arguments of the view
	v.forwardAndBack()
	for k := range l.n {
		v.sendGrads((l.self + 1 + k) % l.n) // v_projected projected -> packets
	}
	v.await(exchangeGrads)
	v.settle()       // packets -> v_views, counts of the share, or failed
	v.stepOfViews()  // v_views index_of chunks -> chunks
	v.exposureAdam() // v_affine exposures -> exposures, unless the step failed anywhere
	v.verifyModel("project_bwd_adam_views")
	v.finish(true)
}

// await ends a phase: what comes next waits for an exchange.
func (v *view) await(exchange int) {
	if g := v.links.gates[exchange]; g != nil {
		v.r.Await(g)
	}
}

// recordTeamRender lists the making of a picture, which is the first device's; the others say what of it they have.
func (v *view) recordTeamRender() {
	v.begin()
	v.sendView(0)
	if v.links.self != 0 {
		v.finish(false)
		return
	}
	v.await(exchangeVisible)
	v.joinPackets()
	v.drawPicture()
}

// packetTo returns the packet to the device of a view. That to itself is scratch memory.
func (v *view) packetTo(w int) packet {
	l := v.links
	if w != l.self {
		return l.out[w]
	}
	if v.shared.own.projected.IsZero() {
		v.shared.own.projected = vk.ScratchOf[float32](v.r, "own projected", projectedWords*l.records)
		v.shared.own.extents = vk.ScratchOf[float32](v.r, "own extents", extentWords*l.records)
		v.shared.own.keys = vk.ScratchOf[uint32](v.r, "own keys", l.records)
		v.shared.own.grads = vk.ScratchOf[float32](v.r, "own grads", projectedWords*l.records)
		if v.shared.own.absGrads = v.shared.own.grads; v.strategy.absgrad {
			v.shared.own.absGrads = vk.ScratchOf[float32](v.r, "own abs grads", absWords*l.records)
		}
	}
	return v.shared.own
}

// packetFrom returns the packet of a device to this one.
func (v *view) packetFrom(o int) packet {
	if o != v.links.self {
		return v.links.in[o]
	}
	return v.packetTo(o)
}

// sendView projects the device's splats for view w, and puts those that it sees into the packet to its device.
func (v *view) sendView(w int) {
	l, n := v.links, v.model.capacity()
	v.projected, v.extents, v.depthKeys = vk.Slice[layout.Projected]{}, vk.Slice[[3]float32]{}, vk.Slice[uint32]{}
	v.projectFor(v.f.mates.ofView[w])
	scratch(v.r, &v.shared.indexOf, "index_of", l.n*n)
	marks := v.shared.indexOf.At(w*n, n)
	v.r.Dispatch(&shaders.MarkVisible{Counters: v.counters, DepthKeys: v.depthKeys, Marks: marks}, v.indirect(layout.ArgsSplats))
	v.scan("seen scan", marks, layout.NActive, layout.ArgsScanSplats, layout.NSent, false)
	p := v.packetTo(w)
	v.r.Dispatch(&shaders.SendVisible{
		Params: v.f.params, Counters: v.counters, DepthKeys: v.depthKeys, Projected: vk.Cast[float32](v.projected.View), Extents: vk.Cast[float32](v.extents.View),
		IndexOf: marks, Headers: l.sent[exchangeVisible][w], OutProjected: p.projected, OutExtents: p.extents, OutKeys: p.keys,
		Push: shaders.SendVisiblePush{Capacity: uint32(l.records), HeaderId: uint32(l.self)},
	}, vk.Items(max(n, 1), layout.SendBlock)) // the first workgroup writes the header
}

// joinPackets puts what all devices have of the view side by side.
func (v *view) joinPackets() {
	l, n := v.links, v.viewSplats
	scratch(v.r, &v.shared.firstOf, "first_of", l.n+1)
	v.r.Dispatch(&shaders.JoinPackets{
		Params: v.f.params, Counters: v.counters, DispatchArgs: v.args, Headers: l.headers[exchangeVisible], FirstOf: v.shared.firstOf,
		Push: shaders.JoinPacketsPush{NDevices: uint32(l.n), Capacity: uint32(n)},
	}, vk.Groups(1))
	v.projected = vk.ScratchOf[layout.Projected](v.r, "joined projected", n)
	v.extents = vk.ScratchOf[[3]float32](v.r, "joined extents", n)
	v.depthKeys = vk.ScratchOf[uint32](v.r, "joined depth_keys", n)
	for o := range l.n {
		p := v.packetFrom(o)
		v.fetch(o, v.shared.firstOf, projectedWords, vk.Cast[uint32](p.projected.View), vk.Cast[uint32](v.projected.View), true)
		v.fetch(o, v.shared.firstOf, extentWords, vk.Cast[uint32](p.extents.View), vk.Cast[uint32](v.extents.View), true)
		v.fetch(o, v.shared.firstOf, keyWords, p.keys, v.depthKeys, true)
	}
}

// fetch copies packet number i, of so many words a record, to the place of its device among the others, or to the start of to.
func (v *view) fetch(i int, firstOf vk.Slice[uint32], words int, from, to vk.Slice[uint32], place bool) {
	push := shaders.FetchPush{Index: uint32(i), Words: uint32(words)}
	if place {
		push.AtOffset = 1
	}
	v.r.Dispatch(&shaders.Fetch{FirstOf: firstOf, Source: from, Destination: to, Push: push}, vk.Items(v.links.records*words, layout.CopyBlock))
}

// sendGrads puts the gradients of device o's projections into the packet back to it.
func (v *view) sendGrads(o int) {
	l, p := v.links, v.packetFrom(o)
	v.r.Dispatch(&shaders.SendGrads{
		Params: v.f.params, Counters: v.counters, FirstOf: v.shared.firstOf, Projected: vk.Cast[float32](v.projected.View),
		VProjected: vk.Cast[float32](v.vProjected.View), VAbsMean2d: vk.Cast[float32](v.vAbsMean2D.View),
		Headers: l.sent[exchangeGrads][o], OutGrads: p.grads, OutAbs: p.absGrads,
		Push: shaders.SendGradsPush{Index: uint32(o), HeaderId: uint32(l.self)},
		Spec: shaders.SendGradsSpec{Absgrad: v.strategy.absgrad},
	}, vk.Items(l.records*projectedWords, layout.CopyBlock))
}

// settle takes in the gradients of all views.
func (v *view) settle() {
	l := v.links
	scratch(v.r, &v.shared.backOf, "back_of", l.n+1)
	v.r.Dispatch(&shaders.Settle{
		Params: v.f.params, Counters: v.counters, Headers: l.headers[exchangeGrads], FirstOf: v.shared.backOf, Push: shaders.SettlePush{NDevices: uint32(l.n)},
	}, vk.Groups(1))
	scratch(v.r, &v.shared.vViews, "v_views", projectedWords*l.n*l.records)
	if v.strategy.absgrad {
		scratch(v.r, &v.shared.vAbsView, "v_abs_views", absWords*l.n*l.records)
	} else {
		v.shared.vAbsView = v.shared.vViews // not read
	}
	for w := range l.n {
		p := v.packetTo(w)
		size := projectedWords * l.records
		v.fetch(w, v.shared.backOf, projectedWords, vk.Cast[uint32](p.grads.View), vk.Cast[uint32](v.shared.vViews.At(w*size, size).View), false)
		if v.strategy.absgrad {
			size = absWords * l.records
			v.fetch(w, v.shared.backOf, absWords, vk.Cast[uint32](p.absGrads.View), vk.Cast[uint32](v.shared.vAbsView.At(w*size, size).View), false)
		}
	}
}

// stepOfViews takes the mean of the views' gradients to the parameters and steps the optimiser, chunk by chunk.
func (v *view) stepOfViews() {
	l := v.links
	for _, c := range v.model.chunks {
		pass := shaders.ProjectBwdAdamViews{
			Params: v.f.mates.ofViews, Counters: v.counters, IndexOf: v.shared.indexOf, Chunk: c.Slice,
			VViews: vk.Cast[layout.ProjectedGrad](v.shared.vViews.View), VAbsViews: vk.Cast[[2]float32](v.shared.vAbsView.View),
			Push: shaders.ProjectBwdAdamViewsPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: uint32(v.model.nParams),
				IndexStride: uint32(v.model.capacity()), GradStride: uint32(l.records),
			},
			Spec: shaders.ProjectBwdAdamViewsSpec{Absgrad: v.strategy.absgrad, Noise: v.strategy.noise, NViews: uint32(l.n)},
		}
		if !v.model.mixed {
			v.r.Dispatch(&pass, vk.Items(c.splats, 128))
			continue
		}
		v.r.Dispatch(&shaders.ProjectBwdAdamViewsMixed{
			Params: pass.Params, Counters: pass.Counters, IndexOf: pass.IndexOf, Chunk: vk.Cast[uint32](c.View), VViews: pass.VViews, VAbsViews: pass.VAbsViews,
			Push: shaders.ProjectBwdAdamViewsMixedPush(pass.Push), Spec: shaders.ProjectBwdAdamViewsMixedSpec(pass.Spec),
		}, vk.Items(c.splats, 128))
	}
}
