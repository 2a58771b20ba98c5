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

func rasterizeBwdCases() []Case {
	crowd := func(n, width, height int, opacity float64) func(t *trial) {
		return func(t *trial) { checkRasterBwd(t, t.crowd(n, width, height, opacity), t.camera(width, height), false) }
	}
	return shapedCases("rasterize_bwd", table{
		{"no splats", crowd(0, 40, 30, 1)},
		{"sizes of views", over([][2]int{{1, 1}, {15, 15}, {16, 16}, {17, 16}, {16, 17}, {37, 50}},
			func(t *trial, s [2]int) { crowd(40, s[0], s[1], 0.3)(t) })},
		{"numbers of splats around a bucket", over([]int{1, 2, 31, 33, 255, 256, 257, 513},
			func(t *trial, n int) { crowd(n, 16, 16, 0.03)(t) })},
		{"several buckets in several tiles", crowd(600, 40, 30, 0.03)},
		{"opaque: pixels stop early", crowd(600, 40, 24, 0.9)},
		{"above the ceiling of alpha", crowd(12, 40, 24, 1.6)},
		{"all shapes", func(t *trial) { checkRasterBwd(t, t.ellipses(150, 100, 60), t.camera(100, 60), false) }},
		{"absolute gradients",
			func(t *trial) { checkRasterBwd(t, t.crowd(300, 40, 30, 0.1), t.camera(40, 30), true) }},
		{"splats that are passed over have no gradient", checkPassedOverBwd},
		{"stale shared memory: of the dispatch before", checkStaleDispatchBwd},
		{"patches that a splat misses do not see it", checkMissedPatchesBwd},
		{"subgroup sizes give the same bytes", checkSubgroups},
	})
}

type slotGrads struct {
	slots vk.Slice[layout.ProjectedGrad]
	abs   vk.Slice[[2]float32]
}

// rasterizeBwd records the backward pass of a band, in subgroups of the given size. Absolute gradients are written only
// if absgrad.
func (t *trial) rasterizeBwd(r *raster, vRender [][4]float32, subgroup uint32, absgrad bool) slotGrads {
	n := len(r.lists.TileIDs)
	g := slotGrads{scratch[layout.ProjectedGrad](t, n), out[[2]float32](t, n, nothing)}
	if absgrad {
		g.abs = scratch[[2]float32](t, n)
	}
	t.dispatch(vk.Derive(&r.in, func(p *shaders.RasterizeBwd) {
		p.VRender, p.VSlots, p.VAbsSlots = in(t, vRender...), vk.Cast[float32](g.slots.View), g.abs
		p.Spec.WorkgroupSize, p.Spec.SubgroupSize = layout.TilePixels/4, subgroup
		p.Spec.Absgrad, p.Spec.HandRound, p.Spec.PackedStates = absgrad, t.processor, r.packed
	}), vk.Groups(2*(n/r.bucket+len(r.lists.TileOffsets))+2))
	return g
}

func (t source) pixelGrads(n int) [][4]float32 {
	v := make([][4]float32, n)
	for i := range v {
		for k := range v[i] {
			v[i][k] = float32(t.NormFloat64())
		}
	}
	return v
}

// checkRasterBwd compares the gradients, with absolute ones beside them or nothing.
func checkRasterBwd(t *trial, p *ref.Projection[float32], v *ref.View[float32], absgrad bool) {
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	r := t.rasterize(p, v, 0, 1, true, nil)
	if absgrad {
		t.rasterizeBwd(r, vRender, size, false)
	}
	g := t.rasterizeBwd(r, vRender, size, absgrad)
	t.run()
	packing := t.packing(p, make([]float64, len(p.Splats)), v, r, vRender, make([]float32, len(vRender)))
	grads, beside := ref.RasterizeBwdAbs(projection64(p).Splats, r.lists, ref.ConvertView[float64](v), v.Grid(),
		pixels64(vRender))
	// The variants are compiled apart: their last bits may differ.
	compareGrads("v_slots", got(t, g.slots), grads, 2e-4, packing)
	if absgrad {
		var want []float64
		for _, x := range beside {
			want = append(want, x[:]...)
		}
		nearNorm("v_abs_slots", floatsOf(got(t, g.abs)), want, 2e-4+packedNorm(packing, want, 9, 11))
	}
}

// gradParts are the members of a ProjectedGrad, which are of different sizes.
var gradParts = []struct {
	name     string
	from, to int
}{{"mean2d", 0, 2}, {"conic", 2, 5}, {"opacity", 5, 6}, {"color", 6, 9}}

// compareGrads compares each member: by norm, and each element by the largest. A pixel whose alpha is 1/255 but for
// rounding counts in one and not in the other, and where a pixel has grown dark the light that is left is right to few
// digits: single elements may be off by a thousandth of the largest. It also allows what packing may make of each
// element; nil: nothing is packed.
func compareGrads(name string, got []layout.ProjectedGrad, want []ref.ProjectedGrad[float64], norm float64,
	packing []ref.PackedError) {
	if len(got) != len(want) {
		failf("binding %s: %d elements, want %d", name, len(got), len(want))
	}
	flat := floatsOf(got)
	for _, part := range gradParts {
		var g []float32
		var w []float64
		largest := 0.0
		for i := range want {
			g, w = append(g, flat[9*i+part.from:9*i+part.to]...), append(w, want[i][part.from:part.to]...)
			for _, x := range want[i][part.from:part.to] {
				largest = max(largest, math.Abs(x))
			}
		}
		member, most := name+"."+part.name, make([]float64, len(w))
		for i := range packing {
			copy(most[i*(part.to-part.from):], packing[i].Most[part.from:part.to])
		}
		nearNorm(member, g, w, norm+packedNorm(packing, w, part.from, part.to))
		nearBy(member, g, w, func(i int) float64 { return 2e-3*largest + most[i] })
	}
}

// checkPassedOverBwd wants the same gradients, to the bit, where no splat is passed over for missing a patch.
func checkPassedOverBwd(t *trial) {
	p, v := passedOver(t.source), t.camera(160, 120)
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	some, all := t.rasterizeBoth(p, v)
	touchesAll := *some
	touchesAll.in.Touched = all.in.Touched
	g, want := t.rasterizeBwd(some, vRender, size, true), t.rasterizeBwd(&touchesAll, vRender, size, true)
	t.run()
	if slices.Equal(got(t, some.in.Touched), got(t, all.in.Touched)) {
		failf("binding touched: no splat is passed over")
	}
	same("v_slots", got(t, g.slots), got(t, want.slots))
	same("v_abs_slots", got(t, g.abs), got(t, want.abs))
}

// checkStaleDispatchBwd is checkStaleDispatch of the backward pass.
func checkStaleDispatchBwd(t *trial) {
	one, v := &ref.Projection[float32]{}, t.camera(160, 160)
	t.addEllipse(one, [2]float64{80, 80}, 100, 90, 0.7)
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	clean := t.rasterize(one, v, 0, 1, true, nil)
	spoilt := t.rasterize(colorless(t.source, 160, 160), v, 0, 1, true, nil)
	want := t.rasterizeBwd(clean, vRender, size, false)
	t.rasterizeBwd(spoilt, vRender, size, false)
	again := t.rasterizeBwd(clean, vRender, size, false)
	t.run()
	areFinite("v_slots", floatsOf(got(t, again.slots)))
	same("v_slots", got(t, again.slots), got(t, want.slots))
}

// inSubgroups lets rasterize run in subgroups of a size, if its workgroups may have so many.
func (t *trial) inSubgroups(size uint32, f func()) {
	if t.rasterLanes() <= size*t.d.Info().Limits.MaxComputeWorkgroupSubgroups {
		t.subgroup = size
	}
	f()
	t.subgroup = 0
}

func checkSubgroups(t *trial) {
	p, v := t.crowd(400, 33, 20, 0.05), t.camera(33, 20)
	vRender := t.pixelGrads(v.Width * v.Height)
	var image *raster
	var want slotGrads
	for _, size := range subgroupSizes(t.d) {
		if size > layout.TilePixels/4 {
			continue
		}
		var r *raster
		t.inSubgroups(size, func() { r = t.rasterize(p, v, 0, 1, true, nil) })
		g := t.rasterizeBwd(r, vRender, size, true)
		t.run()
		if image == nil {
			image, want = r, g
		}
		during(size, func() {
			same("render", got(t, r.in.Render), got(t, image.in.Render))
			same("last_ids", got(t, r.in.LastIds), got(t, image.in.LastIds))
			same("touched", got(t, r.in.Touched), got(t, image.in.Touched))
			same("v_slots", got(t, g.slots), got(t, want.slots))
			same("v_abs_slots", got(t, g.abs), got(t, want.abs))
		})
	}
}

// checkMissedPatchesBwd puts splats of infinite colour into one patch of a tile, between others that miss it: gradients
// of the others are what they are without them.
func checkMissedPatchesBwd(t *trial) {
	const n = 60
	alone, both, v := &ref.Projection[float32]{}, &ref.Projection[float32]{}, t.camera(16, 16)
	for range n {
		at := [2]float64{2 + 4*t.Float64(), 5.5 + t.Float64()}
		t.addEllipse(both, [2]float64{3.5, 1.5}, 0.3, 0.2, 0.9)
		both.Splats[len(both.Splats)-1].Color = infinite
		t.addEllipse(both, at, 0.3, 0.2, 0.3)
		addSplat(alone, both, len(both.Splats)-1)
	}
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	with, without := t.rasterize(both, v, 0, 1, true, nil), t.rasterize(alone, v, 0, 1, true, nil)
	g, want := t.rasterizeBwd(with, vRender, size, false), t.rasterizeBwd(without, vRender, size, false)
	t.run()
	// By splat: each touches the one tile.
	gradOf, wantOf := make([]layout.ProjectedGrad, n), make([]layout.ProjectedGrad, n)
	for slot, splat := range with.lists.SplatFromSlot {
		if splat%2 == 1 {
			gradOf[splat/2] = got(t, g.slots)[slot]
		}
	}
	for slot, splat := range without.lists.SplatFromSlot {
		wantOf[splat] = got(t, want.slots)[slot]
	}
	near("v_slots", floatsOf(gradOf), floatsOf(wantOf), 1e-5, 1e-4)
}

// Cases of rasterize and rasterize_bwd with packed states, as mixed precision has them. Colours differ much from
// channel to channel, so that none passes for another and all bits are used.

func packedCases() []Case {
	forward := table{
		{"packed states: until pixels stop", func(t *trial) {
			checkImage(t, vivid(t.crowd(800, 40, 24, 0.08), 0), t.camera(40, 24), true)
		}},
		{"packed states: of numbers that do not fit", checkPackedEdges},
	}
	backward := table{
		{"packed states: until pixels stop",
			func(t *trial) { checkPackedBwd(t, vivid(t.crowd(800, 40, 24, 0.08), 1), t.camera(40, 24)) }},
		{"packed states: opaque splats behind", func(t *trial) {
			p := t.crowd(500, 40, 24, 0.03)
			for range 40 {
				t.addEllipse(p, [2]float64{40 * t.Float64(), 24 * t.Float64()}, 12, 5, 0.95)
				p.DepthKeys[len(p.DepthKeys)-1] = math.Float32bits(6)
			}
			checkPackedBwd(t, vivid(p, 1), t.camera(40, 24))
		}},
		{"packed states: one bucket needs none",
			func(t *trial) { checkPackedBwd(t, vivid(t.crowd(64, 16, 16, 0.1), 2), t.camera(16, 16)) }},
		{"packed states: subgroup sizes give the same bytes", checkSubgroups},
	}
	for turn, name := range []string{"dark red, bright blue", "dark green, bright red", "dark blue, bright green"} {
		forward = append(forward, table{{"packed states: " + name, func(t *trial) {
			checkImage(t, vivid(t.crowd(900, 50, 40, 0.03), turn), t.camera(50, 40), true)
		}}}...)
		backward = append(backward, table{{"packed states: " + name, func(t *trial) {
			checkPackedBwd(t, vivid(t.crowd(600, 40, 30, 0.03), turn), t.camera(40, 30))
		}}}...)
	}
	return append(shapedCases("rasterize", forward, packStates), shapedCases("rasterize_bwd", backward, packStates)...)
}

func packStates(t *trial) { t.packed = true }

// vivid makes one channel dark and another bright.
func vivid(p *ref.Projection[float32], turn int) *ref.Projection[float32] {
	for i := range p.Splats {
		c := &p.Splats[i].Color
		c[turn], c[(turn+1)%3], c[(turn+2)%3] = 0.02*c[turn], 0.5*c[(turn+1)%3], 12*c[(turn+2)%3]
	}
	return p
}

// packing returns what packing may do to gradients, nil if nothing is packed.
func (t *trial) packing(p *ref.Projection[float32], inverse []float64, v *ref.View[float32], r *raster,
	vRender [][4]float32, vSums []float32) []ref.PackedError {
	if !t.packed {
		return nil
	}
	return ref.PackedErrors(projection64(p).Splats, inverse, r.lists, ref.ConvertView[float64](v), v.Grid(),
		pixels64(vRender), ref.ConvertSlice[float64](vSums), r.bucket)
}

// packedNorm returns by how much of their norm packing may move the numbers from one to another of each pair's.
func packedNorm(packing []ref.PackedError, want []float64, from, to int) float64 {
	squares, norm := 0.0, 0.0
	for _, p := range packing {
		for _, x := range p.Square[from:to] {
			squares += x
		}
	}
	if squares == 0 {
		return 0
	}
	for _, x := range want {
		norm += x * x
	}
	return math.Sqrt(squares / norm)
}

// checkPackedBwd wants gradients as close to those of full precision as packing allows, the same picture, and the
// gradients that the kernel makes of states in full precision with the numbers of the packed ones.
func checkPackedBwd(t *trial, p *ref.Projection[float32], v *ref.View[float32]) {
	checkRasterBwd(t, p, v, true)
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	packed := t.rasterize(p, v, 0, 1, true, nil)
	g := t.rasterizeBwd(packed, vRender, size, true)
	t.run()
	t.packed = false
	plain := t.rasterize(p, v, 0, 1, true, nil)
	plain.in.States = scratchOf(t, packed.unpacked())
	full := t.rasterizeBwd(plain, vRender, size, true)
	t.run()
	t.packed = true
	grads := make([]ref.ProjectedGrad[float64], len(got(t, full.slots)))
	for i, x := range got(t, full.slots) {
		copy(grads[i][:], ref.ConvertSlice[float64](floatsOf([]layout.ProjectedGrad{x})))
	}
	same("render", got(t, packed.in.Render), got(t, plain.in.Render))
	same("last_ids", got(t, packed.in.LastIds), got(t, plain.in.LastIds))
	same("touched", got(t, packed.in.Touched), got(t, plain.in.Touched))
	// The variants are compiled apart: their last bits may differ.
	compareGrads("v_slots", got(t, g.slots), grads, 1e-4, nil)
}

// unpacked returns packed states as they are kept in full precision.
func (r *raster) unpacked() (states [][2]uint32) {
	for i := range got(r.t, r.in.States) {
		s := r.state(i)
		w := wordsOf32(s[:])
		states = append(states, [2]uint32(w[:2]), [2]uint32(w[2:]))
	}
	return states
}

// checkPackedEdges blends colours that no packed state holds: they become the largest that one does, what is no number
// that or 0, and spill into neither the other channels nor the transmittance.
func checkPackedEdges(t *trial) {
	for ch := range 3 {
		for _, huge := range []float32{1e7, 1e30, nan} {
			p, v := &ref.Projection[float32]{}, t.camera(16, 16)
			for range 600 {
				t.addEllipse(p, [2]float64{8, 8}, 100, 90, 0.01)
				p.Splats[len(p.Splats)-1].Color[ch] = huge
			}
			r := t.rasterize(p, v, 0, 1, true, nil)
			t.run()
			for i := range p.Splats {
				p.Splats[i].Color[ch] = 0
			}
			want := image64(p, onBlack(v), firstOfTiles(r.lists, r.bucket))
			for i := range layout.TilePixels {
				s := r.state(i)
				if s[ch] != ref.LargestPacked && !(isNaN(huge) && s[ch] == 0) {
					failf("binding states: %g in channel %d is not clamped; pixel %d", huge, ch, i)
				}
				s[ch] = 0
				during(fmt.Sprintf("%g in channel %d, pixel %d", huge, ch, i),
					func() { nearBy("states", s[:], want.Render[i][:], r.stateLimit(want.Render[i])) })
			}
		}
	}
}
