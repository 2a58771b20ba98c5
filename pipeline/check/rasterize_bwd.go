package check

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func rasterizeBwdCases() []Case {
	image := func(width, height int, p func(t *trial) *ref.Projection[float32]) func(t *trial) error {
		return func(t *trial) error { return checkRasterBwd(t, p(t), t.camera(width, height)) }
	}
	crowd := func(n, width, height int, opacity float64) func(t *trial) error {
		return image(width, height,
			func(t *trial) *ref.Projection[float32] { return t.crowd(n, width, height, opacity) })
	}
	return []Case{
		rasterCase("rasterize_bwd", "no splats", crowd(0, 40, 30, 1)),
		rasterCase("rasterize_bwd", "sizes of views", func(t *trial) error {
			return each([][2]int{{1, 1}, {15, 15}, {16, 16}, {17, 16}, {16, 17}, {37, 50}},
				func(s [2]int) error { return crowd(40, s[0], s[1], 0.3)(t) })
		}),
		rasterCase("rasterize_bwd", "numbers of splats around a bucket", func(t *trial) error {
			return each([]int{1, 2, 31, 33, 255, 256, 257, 513}, func(n int) error { return crowd(n, 16, 16, 0.03)(t) })
		}),
		rasterCase("rasterize_bwd", "several buckets in several tiles", crowd(600, 40, 30, 0.03)),
		rasterCase("rasterize_bwd", "opaque: pixels stop early", crowd(600, 40, 24, 0.9)),
		rasterCase("rasterize_bwd", "above the ceiling of alpha", crowd(12, 40, 24, 1.6)),
		rasterCase("rasterize_bwd", "all shapes",
			image(100, 60, func(t *trial) *ref.Projection[float32] { return t.ellipses(150, 100, 60) })),
		rasterCase("rasterize_bwd", "absolute gradients", func(t *trial) error {
			return checkRasterBwdAbs(t, t.crowd(300, 40, 30, 0.1), t.camera(40, 30))
		}),
		rasterCase("rasterize_bwd", "splats that are passed over have no gradient", checkPassedOverBwd),
		rasterCase("rasterize_bwd", "stale shared memory: of the dispatch before", checkStaleDispatchBwd),
		rasterCase("rasterize_bwd", "patches that a splat misses do not see it", checkMissedPatchesBwd),
		rasterCase("rasterize_bwd", "subgroup sizes give the same bytes", checkSubgroups),
	}
}

// rasterizeBwd records the backward pass of a band, in subgroups of the given size.
func (l *list) rasterizeBwd(out *raster, vRender [][4]float32, subgroup uint32) *buffer[layout.ProjectedGrad] {
	vSlots, _ := l.rasterizeBwdAbs(out, vRender, subgroup, false)
	return vSlots
}

// rasterizeBwdAbs also returns the absolute gradients, which are written only if absgrad.
func (l *list) rasterizeBwdAbs(out *raster, vRender [][4]float32, subgroup uint32,
	absgrad bool) (_ *buffer[layout.ProjectedGrad], _ *buffer[[2]float32]) {
	n := len(out.lists.TileIDs)
	vSlots, vAbs := output[layout.ProjectedGrad](l, "v_slots", n), output[[2]float32](l, "v_abs_slots", n)
	l.r.Dispatch(&shaders.RasterizeBwd{
		Params: out.in.Params, TileOffsets: out.in.TileOffsets, SlotFromIsect: out.in.SlotFromIsect,
		SplatFromSlot: out.in.SplatFromSlot, Shapes: out.in.Shapes, Paints: out.in.Paints, Render: out.render.Slice,
		LastIds: out.last.Slice, States: out.states.Slice, Touched: out.touched.Slice,
		VRender: input(l, "v_render", vRender), TileFromBucket: out.buckets.Slice,
		VSlots: vk.Cast[float32](vSlots.View), VAbsSlots: vAbs.Slice,
		Spec: shaders.RasterizeBwdSpec{WorkgroupSize: layout.TilePixels / 4, SubgroupSize: subgroup, Absgrad: absgrad,
			HandRound: l.cpuRaster, BucketSize: uint32(l.bucketSize()), PackedStates: out.packed},
	}, vk.Groups(len(out.buckets.got)+n/l.bucketSize()+len(out.lists.TileOffsets)+3))
	return vSlots, vAbs
}

// pixelGrads returns random gradients of pixels.
func (t *trial) pixelGrads(n int) [][4]float32 {
	v := make([][4]float32, n)
	for i := range v {
		for k := range v[i] {
			v[i][k] = float32(t.NormFloat64())
		}
	}
	return v
}

func checkRasterBwd(t *trial, p *ref.Projection[float32], v *ref.View[float32]) error {
	l := t.list()
	vRender := t.pixelGrads(v.Width * v.Height)
	out := l.rasterize(p, v, 0, 1, true, nil)
	vSlots := l.rasterizeBwd(out, vRender, t.d.Info().Limits.SubgroupSize)
	if err := l.run(); err != nil {
		return err
	}
	up := make([][4]float64, len(vRender))
	for i, g := range vRender {
		copy(up[i][:], ref.ConvertSlice[float64](g[:]))
	}
	want := ref.RasterizeBwd(projection64(p).Splats, out.lists, ref.ConvertView[float64](v), v.Grid(), up)
	return compareGrads("v_slots", vSlots.got, want, 2e-4)
}

// checkRasterBwdAbs requires the same gradients with the absolute ones beside them, and nothing beside them without.
func checkRasterBwdAbs(t *trial, p *ref.Projection[float32], v *ref.View[float32]) error {
	l := t.list()
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	out := l.rasterize(p, v, 0, 1, true, nil)
	_, none := l.rasterizeBwdAbs(out, vRender, size, false)
	vSlots, vAbs := l.rasterizeBwdAbs(out, vRender, size, true)
	if err := l.run(); err != nil {
		return err
	}
	up := make([][4]float64, len(vRender))
	for i, g := range vRender {
		copy(up[i][:], ref.ConvertSlice[float64](g[:]))
	}
	grads, want := ref.RasterizeBwdAbs(projection64(p).Splats, out.lists, ref.ConvertView[float64](v), v.Grid(), up)
	var flat []float64
	for _, w := range want {
		flat = append(flat, w[:]...)
	}
	_, err := none.written(0)
	// The variants are compiled apart: their last bits may differ.
	return first(err, compareGrads("v_slots", vSlots.got, grads, 2e-4),
		normWithin("v_abs_slots", floatsOf(vAbs.got), flat, 2e-4))
}

// gradParts are the members of a ProjectedGrad, which are of different sizes.
var gradParts = []struct {
	name     string
	from, to int
}{{"mean2d", 0, 2}, {"conic", 2, 5}, {"opacity", 5, 6}, {"color", 6, 9}}

// compareGrads compares each member: by norm, and each element by the largest. A pixel whose alpha is 1/255 but for
// rounding counts in one and not in the other, and where a pixel has grown dark the light that is left is right to few
// digits: single elements may be off by a thousandth of the largest.
func compareGrads(binding string, got []layout.ProjectedGrad, want []ref.ProjectedGrad[float64], norm float64) error {
	return comparePackedGrads(binding, got, want, norm, nil)
}

// comparePackedGrads also allows what packing may make of each element; nil: nothing is packed.
func comparePackedGrads(binding string, got []layout.ProjectedGrad, want []ref.ProjectedGrad[float64], norm float64,
	packing []ref.PackedError) error {
	if len(got) != len(want) {
		return fmt.Errorf("binding %s: %d elements, want %d", binding, len(got), len(want))
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
		name, most := binding+"."+part.name, make([]float64, len(w))
		for i := range packing {
			copy(most[i*(part.to-part.from):], packing[i].Most[part.from:part.to])
		}
		if err := first(normWithin(name, g, w, norm+packedNorm(packing, w, part.from, part.to)),
			closeScaled(name, g, w, func(i int) float64 { return 2e-3*largest + most[i] })); err != nil {
			return err
		}
	}
	return nil
}

// checkPassedOverBwd requires the same gradients, to the bit, where no splat is passed over for missing a patch.
func checkPassedOverBwd(t *trial) error {
	p, v := t.passedOver(), t.camera(160, 120)
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	l := t.list()
	out := l.rasterize(p, v, 0, 1, true, nil)
	l.everyone = true
	all := *out
	all.touched = l.rasterize(p, v, 0, 1, true, nil).touched
	vSlots, vAbs := l.rasterizeBwdAbs(out, vRender, size, true)
	allSlots, allAbs := l.rasterizeBwdAbs(&all, vRender, size, true)
	if err := l.run(); err != nil {
		return err
	}
	if slices.Equal(out.touched.got, all.touched.got) {
		return errors.New("binding touched: no splat is passed over")
	}
	return first(sameBytes("v_slots", vSlots.got, allSlots.got), sameBytes("v_abs_slots", vAbs.got, allAbs.got))
}

// checkStaleDispatchBwd is checkStaleDispatch of the backward pass.
func checkStaleDispatchBwd(t *trial) error {
	one, v := &ref.Projection[float32]{}, t.camera(160, 160)
	t.addEllipse(one, [2]float64{80, 80}, 100, 90, 0.7)
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	l := t.list()
	clean, spoilt := l.rasterize(one, v, 0, 1, true, nil), l.rasterize(t.colorless(160, 160), v, 0, 1, true, nil)
	want := l.rasterizeBwd(clean, vRender, size)
	l.rasterizeBwd(spoilt, vRender, size)
	got := l.rasterizeBwd(clean, vRender, size)
	if err := l.run(); err != nil {
		return err
	}
	return first(finite("v_slots", floatsOf(got.got)), sameBytes("v_slots", got.got, want.got))
}

// checkSubgroups runs in every subgroup size that the device has.
func checkSubgroups(t *trial) error {
	p, v := t.crowd(400, 33, 20, 0.05), t.camera(33, 20)
	vRender := t.pixelGrads(v.Width * v.Height)
	var want []layout.ProjectedGrad
	var wantAbs [][2]float32
	var image *raster
	return each(subgroupSizes(t.d), func(size uint32) error {
		if size > layout.TilePixels/4 {
			return nil
		}
		l := t.list()
		if l.rasterLanes() <= size*t.d.Info().Limits.MaxComputeWorkgroupSubgroups {
			l.subgroup = size
		}
		out := l.rasterize(p, v, 0, 1, true, nil)
		vSlots, vAbs := l.rasterizeBwdAbs(out, vRender, size, true)
		if err := l.run(); err != nil {
			return err
		}
		if want == nil {
			want, wantAbs, image = vSlots.got, vAbs.got, out
		}
		return first(sameBytes("render", out.render.got, image.render.got),
			equal("last_ids", out.last.got, image.last.got), equal("touched", out.touched.got, image.touched.got),
			sameBytes("v_slots", vSlots.got, want), sameBytes("v_abs_slots", vAbs.got, wantAbs))
	})
}

// checkMissedPatchesBwd puts splats of infinite colour into one patch of a tile, between others that miss it: gradients
// of the others are what they are without them.
func checkMissedPatchesBwd(t *trial) error {
	const n = 60
	alone, both, v := &ref.Projection[float32]{}, &ref.Projection[float32]{}, t.camera(16, 16)
	inf := float32(math.Inf(1))
	for range n {
		at := [2]float64{2 + 4*t.Float64(), 5.5 + t.Float64()}
		t.addEllipse(both, [2]float64{3.5, 1.5}, 0.3, 0.2, 0.9)
		both.Splats[len(both.Splats)-1].Color = [3]float32{inf, inf, inf}
		t.addEllipse(both, at, 0.3, 0.2, 0.3)
		last := len(both.Splats) - 1
		alone.Splats = append(alone.Splats, both.Splats[last])
		alone.Extents = append(alone.Extents, both.Extents[last])
		alone.DepthKeys = append(alone.DepthKeys, both.DepthKeys[last])
	}
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	l := t.list()
	with, without := l.rasterize(both, v, 0, 1, true, nil), l.rasterize(alone, v, 0, 1, true, nil)
	got, want := l.rasterizeBwd(with, vRender, size), l.rasterizeBwd(without, vRender, size)
	if err := l.run(); err != nil {
		return err
	}
	// By splat: each touches the one tile.
	gotOf, wantOf := make([]layout.ProjectedGrad, n), make([]layout.ProjectedGrad, n)
	for slot, splat := range with.lists.SplatFromSlot {
		if splat%2 == 1 {
			gotOf[splat/2] = got.got[slot]
		}
	}
	for slot, splat := range without.lists.SplatFromSlot {
		wantOf[splat] = want.got[slot]
	}
	return closeTo("v_slots", floatsOf(gotOf), ref.ConvertSlice[float64](floatsOf(wantOf)), 1e-5, 1e-4)
}
