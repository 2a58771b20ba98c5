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

// depthCases are those of blending depth and of comparing it.
func depthCases() []Case {
	type image struct {
		name          string
		width, height int
		p             func(t *trial) *ref.Projection[float32]
	}
	crowd := func(name string, n, width, height int, opacity float64) image {
		return image{name, width, height,
			func(t *trial) *ref.Projection[float32] { return t.crowd(n, width, height, opacity) }}
	}
	images := []image{
		crowd("no splats", 0, 40, 30, 1), crowd("several buckets in several tiles", 900, 50, 40, 0.03),
		crowd("opaque: pixels stop early", 600, 40, 24, 0.9),
		{"above the ceiling of alpha", 40, 24, func(t *trial) *ref.Projection[float32] {
			p := t.crowd(12, 40, 24, 0.3)
			p.Splats[5].Opacity = 1.6 // one alone: where two are, rounding decides whether a pixel stops
			return p
		}},
		{"all shapes", 100, 60, func(t *trial) *ref.Projection[float32] { return t.ellipses(150, 100, 60) }},
	}
	var list []Case
	for _, m := range images {
		list = append(list,
			rasterCase("rasterize_depth", m.name, func(t *trial) error {
				return t.deep(m.p(t), t.camera(m.width, m.height), false).checkSums()
			}),
			rasterCase("rasterize_bwd_depth", m.name, func(t *trial) error {
				return t.deep(m.p(t), t.camera(m.width, m.height), false).checkBackward()
			}))
	}
	return slices.Concat(list, []Case{
		rasterCase("rasterize_bwd_depth", "absolute gradients", func(t *trial) error {
			return t.deep(t.crowd(300, 40, 30, 0.1), t.camera(40, 30), true).checkBackward()
		}),
		rasterCase("rasterize_bwd_depth", "subgroup sizes give the same bytes", checkDepthSubgroups),
	}, packedDepthCases(), depthLossCases(), normalLossCases(), depthStepCases("project_bwd_adam_depth", newCase),
		depthStepCases("project_bwd_adam_depth_mixed", mixedCase),
		depthBatchCases("project_bwd_adam_views_depth", newCase),
		depthBatchCases("project_bwd_adam_views_depth_mixed", mixedCase), depthSumCases())
}

// deep is a picture whose depth is blended, too, and gradients of it.
type deep struct {
	t       *trial
	p       *ref.Projection[float32]
	v       *ref.View[float32]
	absgrad bool
	vRender [][4]float32
	vSums   []float32
	// What the kernels wrote.
	out      *raster
	depths   *buffer[float32]
	vSlots   *buffer[layout.ProjectedGrad]
	vBeside  *buffer[[3]float32]
	subgroup uint32
}

// deep makes those of a projection, whose depths become 1 to 6.
func (t *trial) deep(p *ref.Projection[float32], v *ref.View[float32], absgrad bool) *deep {
	for i := range p.DepthKeys {
		p.DepthKeys[i] = math.Float32bits(1 + 5*t.Float32())
	}
	d := &deep{t: t, p: p, v: v, absgrad: absgrad, vRender: t.pixelGrads(v.Width * v.Height),
		subgroup: t.d.Info().Limits.SubgroupSize}
	for range v.Width * v.Height {
		d.vSums = append(d.vSums, float32(3*t.NormFloat64()))
	}
	return d
}

func (d *deep) inverse() []float64 {
	var inverse []float64
	for _, key := range d.p.DepthKeys {
		inverse = append(inverse, 1/float64(math.Float32frombits(key)))
	}
	return inverse
}

// run runs the forward and the backward pass.
func (d *deep) run() error {
	l := d.t.list()
	if l.rasterLanes() <= d.subgroup*d.t.d.Info().Limits.MaxComputeWorkgroupSubgroups {
		l.subgroup = d.subgroup
	}
	d.out = l.rasterize(d.p, d.v, 0, 1, true, nil)
	in, n := &d.out.in, len(d.out.lists.TileIDs)
	start := make([]float32, 2*len(d.vSums)+n/l.bucketSize()*layout.TilePixels)
	for i, x := range d.vSums {
		start[2*i+1] = x
	}
	d.depths = inout(l, "depths", start)
	keys := input(l, "depth_keys", d.p.DepthKeys)
	l.r.Dispatch(&shaders.RasterizeDepth{
		Params: in.Params, TileOffsets: in.TileOffsets, TileOrder: in.TileOrder, SlotFromIsect: in.SlotFromIsect,
		SplatFromSlot: in.SplatFromSlot, Shapes: in.Shapes, Paints: in.Paints, Render: in.Render, LastIds: in.LastIds,
		States: in.States, Touched: in.Touched, TileFromBucket: in.TileFromBucket, DepthKeys: keys,
		Depths: d.depths.Slice, Push: shaders.RasterizeDepthPush(in.Push), Spec: shaders.RasterizeDepthSpec(in.Spec),
		Handed: in.Handed,
	}, vk.Groups(d.v.Grid().Tiles()+3))
	d.vSlots, d.vBeside = output[layout.ProjectedGrad](l, "v_slots", n), output[[3]float32](l, "v_beside_slots", n)
	l.r.Dispatch(&shaders.RasterizeBwdDepth{
		Params: in.Params, TileOffsets: in.TileOffsets, SlotFromIsect: in.SlotFromIsect,
		SplatFromSlot: in.SplatFromSlot, Shapes: in.Shapes, Paints: in.Paints, Render: in.Render, LastIds: in.LastIds,
		States: in.States, Touched: in.Touched, VRender: input(l, "v_render", d.vRender),
		TileFromBucket: in.TileFromBucket, VSlots: vk.Cast[float32](d.vSlots.View), VBesideSlots: d.vBeside.Slice,
		DepthKeys: keys, Depths: d.depths.Slice,
		Spec: shaders.RasterizeBwdDepthSpec{WorkgroupSize: layout.TilePixels / 4, SubgroupSize: d.subgroup,
			Absgrad: d.absgrad, HandRound: l.cpuRaster, BucketSize: uint32(l.bucketSize()), PackedStates: l.packed},
	}, vk.Groups(n/l.bucketSize()+2*len(d.out.lists.TileOffsets)+3))
	return l.run()
}

// checkSums compares the picture, which must be that of rasterize, and the sums.
func (d *deep) checkSums() error {
	if err := d.run(); err != nil {
		return err
	}
	want := image64(d.p, d.v, d.out.lists)
	if err := first(compareImage(d.out.render.got, want), compareLast(d.out.last.got, want),
		compareStates(d.out, d.p, d.v, want)); err != nil {
		return err
	}
	sums := ref.RasterizeDepth(projection64(d.p).Splats, d.inverse(), d.out.lists, ref.ConvertView[float64](d.v),
		d.v.Grid())
	var got []float32
	for i, x := range d.vSums {
		if got = append(got, d.depths.got[2*i]); d.depths.got[2*i+1] != x {
			return fmt.Errorf("binding depths: the gradient of pixel %d was written", i)
		}
	}
	r := ref.PixelCompare(got, sums, 1, 1e-4)
	if r.Outliers > outliers(len(got)) || r.Worst > 0.01 || r.RelNorm > 1e-5 {
		return fmt.Errorf("binding depths: %v", r)
	}
	return nil
}

// checkBackward compares the gradients.
func (d *deep) checkBackward() error {
	if err := d.run(); err != nil {
		return err
	}
	grads, beside := ref.RasterizeBwdDepth(projection64(d.p).Splats, d.inverse(), d.out.lists,
		ref.ConvertView[float64](d.v), d.v.Grid(), pixels64(d.vRender), ref.ConvertSlice[float64](d.vSums))
	var want [2][]float64
	var gotBeside [2][]float32
	for i, x := range beside {
		if d.absgrad {
			want[0] = append(want[0], x[:2]...)
		} else {
			want[0] = append(want[0], 0, 0)
		}
		want[1] = append(want[1], x[2])
		gotBeside[0] = append(gotBeside[0], d.vBeside.got[i][:2]...)
		gotBeside[1] = append(gotBeside[1], d.vBeside.got[i][2])
	}
	packing := d.t.packing(d.p, d.inverse(), d.v, d.out, d.vRender, d.vSums)
	return first(comparePackedGrads("v_slots", d.vSlots.got, grads, 2e-4, packing),
		normWithin("v_beside_slots (absolute)", gotBeside[0], want[0], 2e-4+packedNorm(packing, want[0], 9, 11)),
		normWithin("v_beside_slots (inverse depth)", gotBeside[1], want[1],
			2e-4+packedNorm(packing, want[1], 11, 12)))
}

// checkDepthSubgroups runs in every subgroup size that the device has.
func checkDepthSubgroups(t *trial) error {
	d := t.deep(t.crowd(400, 33, 20, 0.05), t.camera(33, 20), true)
	var one *deep
	return each(subgroupSizes(t.d), func(size uint32) error {
		if size > layout.TilePixels/4 {
			return nil
		}
		now := *d
		now.subgroup = size
		if err := now.run(); err != nil {
			return err
		}
		if one == nil {
			one = &now
		}
		return first(sameBytes("render", now.out.render.got, one.out.render.got),
			sameBytes("depths", now.depths.got, one.depths.got), sameBytes("v_slots", now.vSlots.got, one.vSlots.got),
			sameBytes("v_beside_slots", now.vBeside.got, one.vBeside.got))
	})
}
