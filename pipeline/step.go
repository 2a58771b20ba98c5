package pipeline

import (
	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// view is one recorded unit: the recorder, the frame it belongs to, and the scratch buffers between its passes. The
// pass that writes a buffer describes it; N is the model's capacity, V visible splats, P pixels, I isects.
type view struct {
	s    *setup
	size viewSize // of the unit's views
	r    *vk.Recorder
	f    *frame
	kind recipe.Kind

	shapes        vk.Slice[[4]float32]           // [N][2], a Shape
	paints        vk.Slice[[4]float32]           // [N] opacity, colour
	depthKeys     vk.Slice[uint32]               // [N]
	splatFromRank vk.Slice[uint32]               // [V]
	firstIsect    vk.Slice[uint32]               // [V]
	splatFromSlot vk.Slice[uint32]               // [I]
	slotFromIsect vk.Slice[uint32]               // [I]
	tileOffsets   vk.Slice[uint32]               // [tiles + 1]
	tileOrder     vk.Slice[uint32]               // [tiles]
	render        vk.Slice[[4]float32]           // [P]
	lastIDs       vk.Slice[uint32]               // [P]
	states        vk.Slice[[2]uint32]            // [I / bucket][TILE_PIXELS][2], [1] in mixed precision
	touched       vk.Slice[uint32]               // [I / TOUCH_BITS + tiles][PATCHES]
	buckets       vk.Slice[uint32]               // [I / bucket + tiles]
	shown         vk.Slice[[4]float32]           // [P] the picture that is compared with the photo
	ssimMaps      vk.Slice[float32]              // [3][3][P]
	partials      vk.Slice[[3]float32]           // [tiles]
	counted       vk.Slice[[3]float32]           // [tiles], empty without masks and alpha loss
	vShown        vk.Slice[[4]float32]           // [P]
	correction    vk.Slice[layout.Correction]    // [1] with appearance
	uncorrected   vk.Slice[[4]float32]           // [P] with appearance
	vCorrection   vk.Slice[[4]float32]           // [tiles][7] with appearance
	inliers       vk.Slice[uint32]               // [tiles][COUNT_WORDS] with robust, else empty
	places        vk.Slice[uint32]               // [tiles][TILE_SQUARES] with robust
	errors        vk.Slice[uint32]               // [tiles][TILE_SQUARES] with robust
	depthSums     vk.Slice[float32]              // [P][2], then [I / bucket][TILE_PIXELS] with depths
	vSlots        vk.Slice[layout.ProjectedGrad] // [I]
	vProjected    vk.Slice[layout.ProjectedGrad] // [N]
	vBesideSlots  vk.Slice[float32]              // [I][besideWords]
	vBeside       vk.Slice[float32]              // [N][besideWords]
	pose          posePasses                     // where poses are refined
	tileIDs       vk.Slice[uint32]               // [I] sorted

	verifier *verifier   // of the frame that the unit is recorded for
	tallies  tallies     // with kernels that look back
	team     teamBuffers // with several devices
}

// record lists the passes of a unit. Barriers and the memory of scratch buffers follow from what each pass reads and
// writes.
func (s *setup) record(r *vk.Recorder, f *frame, k recipe.Kind) {
	v := &view{s: s, size: s.views, r: r, f: f}
	switch k {
	case recipe.Render:
		v.size = s.drawn
	case recipe.Align:
		v.size = s.views.union(s.drawn)
	}
	if s.parts != nil {
		v.size.maxPixels = s.drawn.partPixels(s.bands)
	}
	v.startVerify(k)
	switch k {
	case recipe.Step:
		if v.s.links != nil {
			v.recordTeamStep()
		} else {
			v.recordStep()
		}
	case recipe.Carve: // apart from the refinement: one that finds too little room must have changed nothing
		v.recordChange(v.carve) // voters chunks -> chunks
	case recipe.Refine: // chunks -> chunks, n_splats or failed
		v.recordChange(func() { v.s.strategy.refine(v); v.verifyModel("refine") })
	case recipe.Reorder:
		v.recordChange(func() { v.reorder(); v.verifyModel("reorder") }) // chunks -> chunks
	case recipe.Reset:
		v.recordChange(v.resetOpacity) // chunks -> chunks
	case recipe.Render:
		if v.s.links != nil {
			v.recordTeamRender()
		} else {
			v.recordRender()
		}
	case recipe.Align:
		v.recordAlign()
	}
}

// recordStep lists one training step. Each comment: reads -> writes.
func (v *view) recordStep() {
	v.begin()      // counters -> counts and dispatch arguments of this unit
	v.refinePose() // params poses -> refined params pose; this and the two others of poses only where they are refined
	v.project()    // chunks -> shapes paints depth_keys
	v.forwardAndBack()
	v.poseGrad()       // v_projected paints chunks -> pose_partials
	v.projectBwdAdam() // v_projected paints chunks -> chunks
	v.poseAdam()       // pose_partials pose anchors poses -> poses
	v.appearanceAdam() // v_correction correction appearances -> appearances
	v.trackErrors()    // places errors history -> history
	v.verifyModel("project_bwd_adam")
}

// forwardAndBack lists the passes from the projections of a view to their gradients.
func (v *view) forwardAndBack() {
	v.sortDepth() // depth_keys -> splat_from_rank, n_visible
	v.verifyProjection()
	last := v.s.bands - 1
	for band := range v.s.bands {
		// splat_from_rank shapes -> first_isect splat_from_slot slot_from_isect tile_offsets tile_order
		v.makeIsects(band)
		// slot_from_isect tile_order shapes paints -> render last_ids states; with several bands the backward pass
		// repeats it and keeps them
		v.rasterize(band, v.s.bands == 1)
		if band == last {
			v.adamUnseen(0) // depth_keys chunks -> chunks, of splats that the view does not see: half, with MCMC all
		}
		v.findPlaces(band) // what rasterize reads, depth_keys -> places; only where training is robust
	}
	v.comparePhoto()
	v.verifyImage()
	for band := range v.s.bands {
		if v.s.bands > 1 {
			v.makeIsects(band) // again: the bands before have been overwritten
			v.rasterize(band, true)
		}
		v.rasterizeBwd() // states last_ids render v_shown shapes paints -> v_slots
		if band == last {
			v.adamUnseen(1) // of the others
		}
		v.reduceSlots(band) // v_slots -> v_projected
		v.verifySlots()
	}
	v.verifyGradients()
}

// comparePhoto lists the passes from the picture of a view to the gradient of the loss by its pixels. A pass on the way
// there replaces v.shown, which the next one reads; on the way back, in the reverse order, it replaces v.vShown.
func (v *view) comparePhoto() {
	v.shown = v.render
	// appearances -> correction; this and the three others of appearance only where it is learnt
	v.findAppearance()
	v.applyAppearance() // shown correction -> shown
	v.findOutliers()    // shown target history places -> inliers errors; this and track_errors only if robust
	v.loss()            // shown target inliers -> ssim_maps partials counted
	if v.s.links == nil {
		v.finish(true) // counters partials counted -> report. No later pass fails or counts: it runs beside loss_grad
	}
	v.lossGrad() // shown target inliers ssim_maps -> v_shown
	// v_shown correction, what apply_appearance read -> v_shown v_correction
	v.applyAppearanceBwd()
	// depth_sums render depths target v_shown -> depth_sums v_shown; only where depths or normals are compared
	v.depthLoss() // two passes: normal_loss follows where normals are compared
}

// recordRender lists the making of a picture.
func (v *view) recordRender() {
	v.begin()
	v.project()
	v.drawPicture()
}

// drawPicture lists the passes from the projections of a view to its picture.
func (v *view) drawPicture() {
	if v.s.looks {
		v.look(v.f.params) // shapes paints -> shapes paints
	}
	v.sortDepth()
	if v.s.parts != nil {
		v.recordPart(v.f.part.band)
		v.finish(false)
		return
	}
	for band := range v.s.bands {
		v.makeIsects(band)
		v.rasterize(band, false)
	}
	v.r.Keep(v.render.View) // for readPicture
	v.f.picture = v.render
	v.finish(false)
}

// makeIsects lists the passes from the visible splats in depth order to each tile's splats in depth order, for one band
// of rows of tiles.
func (v *view) makeIsects(band int) {
	v.findIsects(band)               // splat_from_rank shapes -> first_isect, n_isects or failed
	ids, slots := v.emitIsects(band) // first_isect -> tile_ids splat_from_slot slots
	ids = v.sortTiles(ids, slots)    // tile_ids slots -> tile_ids slot_from_isect, by tile, depth order kept
	v.findTileOffsets(ids)           // tile_ids -> tile_offsets tile_order
	v.tileIDs = ids
	v.verifyIsects()
}

// recordChange lists a unit that changes the model without drawing it.
func (v *view) recordChange(pass func()) {
	v.begin()
	pass()
	v.finish(false)
}

// indirect returns the grid in slot i of dispatch_args.
func (v *view) indirect(i int) vk.Grid { return vk.Indirect(v.s.args.At(i, 1).View) }

// scratch declares a scratch buffer of n elements, unless s is one already.
func scratch[T any](r *vk.Recorder, s *vk.Slice[T], name string, n int) vk.Slice[T] {
	if s.IsZero() {
		*s = vk.ScratchOf[T](r, name, n)
	}
	return *s
}
