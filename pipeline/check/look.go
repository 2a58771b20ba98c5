package check

import (
	"errors"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func lookCases() []Case {
	return []Case{
		newCase("look", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, 3000}, func(n int) error { return checkLooks(t, n, n) })
		}),
		newCase("look", "fewer splats than there is room for", func(t *trial) error { return checkLooks(t, 700, 300) }),
	}
}

// checkLooks has room for n splats, of which some are there.
func checkLooks(t *trial, n, active int) error {
	return each([]ref.Look{ref.LookColor, ref.LookDepth, ref.LookCenters, ref.LookEllipsoids},
		func(look ref.Look) error { return checkLook(t, look, n, active) })
}

func checkLook(t *trial, look ref.Look, n, active int) error {
	l := t.list()
	p := t.ellipses(n, 70, 50)
	p.DepthKeys = make([]uint32, n)
	depths := make([]float32, n)
	for i := range p.DepthKeys {
		p.DepthKeys[i], depths[i] = layout.Culled, float32(math.Exp(20*t.Float64()-10))
		if t.IntN(3) > 0 {
			p.DepthKeys[i] = math.Float32bits(depths[i])
		}
	}
	params := paramsOf(t.camera(70, 50))
	params.Look = uint32(look)
	counters := make([]uint32, layout.NCounters)
	counters[layout.NActive] = uint32(active)
	shapes, paints := inout(l, "shapes", shapesOf(p)), inout(l, "paints", paintsOf(p.Splats))
	l.r.Dispatch(&shaders.Look{Params: input(l, "params", []layout.StepParams{params}),
		Counters: input(l, "counters", counters), DepthKeys: input(l, "depth_keys", p.DepthKeys),
		Shapes: shapes.Slice, Paints: paints.Slice}, vk.Items(n, 256))
	if err := l.run(); err != nil {
		return err
	}
	for i := active; i < n; i++ {
		p.DepthKeys[i] = layout.Culled // those that are not there stay as they are
	}
	p.Look(look, depths)
	out := projectionOf(shapes.got, paints.got, p.DepthKeys)
	for i, want := range p.Splats {
		got := out.Splats[i]
		same := got.Mean2D == want.Mean2D && got.Color == want.Color && got.Opacity == want.Opacity &&
			near3(got.Conic, want.Conic) && near3(out.Extents[i], p.Extents[i])
		if !same {
			return errors.Join(equal("shapes and paints", out.Splats[i:i+1], p.Splats[i:i+1]),
				equal("shapes", out.Extents[i:i+1], p.Extents[i:i+1]))
		}
	}
	return nil
}

// near3 allows for roots and logarithms, whose last bits differ.
func near3(got, want [3]float32) bool {
	for k, w := range want {
		if d := math.Abs(float64(got[k] - w)); !(d <= 2e-5*math.Abs(float64(w))) {
			return false
		}
	}
	return true
}
