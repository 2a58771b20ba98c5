package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func exposureCases() []Case {
	sizes := [][2]int{{1, 1}, {16, 16}, {17, 1}, {50, 40}, {16 * 257, 3}}
	all := func(check func(*exposed) error) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error { return check(t.exposed(s[0], s[1])) })
		}
	}
	return []Case{
		newCase("expose", "sizes", all((*exposed).checkExpose)),
		newCase("expose", "the identity keeps every bit", func(t *trial) error {
			e := t.exposed(50, 40)
			e.table[e.id].Affine = [12]float32{0: 1, 5: 1, 10: 1}
			if err := e.run(false, nil, 0); err != nil {
				return err
			}
			return sameBytes("exposed", e.out, e.render)
		}),
		newCase("expose_bwd", "sizes", all((*exposed).checkBwd)),
		newCase("exposure_adam", "sizes", all(func(e *exposed) error { return e.checkAdam(1, 0) })),
		newCase("exposure_adam", "first steps and late ones", func(t *trial) error {
			return each([]int{1, 2, 3, 100, 30000},
				func(step int) error { return t.exposed(50, 40).checkAdam(step, 0) })
		}),
		newCase("exposure_adam", "a failed unit changes nothing", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedSplats},
				func(f uint32) error { return t.exposed(50, 40).checkAdam(7, f) })
		}),
		newCase("exposure_adam", "another device steps the map", func(t *trial) error {
			e := t.exposed(50, 40)
			if err := e.run(true, &layout.StepParams{LrExposure: -1, ExposureReg: 0.3}, 0); err != nil {
				return err
			}
			return sameBytes("exposures", e.after, e.table)
		}),
		newCase("exposure_adam", "a gradient of zeros at the identity moves nothing", checkStill),
	}
}

// exposed is a rendering, gradients of its mapped colours, and a table of colour maps of which one is the photo's.
type exposed struct {
	t             *trial
	width, height int
	id            int
	table         []layout.Exposure
	render        [][4]float32
	vExposed      [][4]float32
	// What the kernels wrote.
	out     [][4]float32
	vRender [][4]float32
	vAffine [][4]float32 // [tiles][3]
	after   []layout.Exposure
}

func (t *trial) exposed(width, height int) *exposed {
	e := &exposed{t: t, width: width, height: height, id: 2, table: make([]layout.Exposure, 5)}
	for i := range e.table {
		x := &e.table[i]
		for k := range x.Affine {
			x.Affine[k] = float32(0.2 * t.NormFloat64())
			if k%5 == 0 {
				x.Affine[k]++
			}
			// Second moments of at least 0.5 make the step a smooth function of the gradient.
			x.M[k], x.V[k] = float32(t.NormFloat64()), float32(0.5+t.Float64())
		}
	}
	for range width * height {
		var c, g [4]float32
		for k := range c {
			c[k], g[k] = t.Float32(), float32(t.NormFloat64()/float64(width*height))
		}
		e.render, e.vExposed = append(e.render, c), append(e.vExposed, g)
	}
	return e
}

// run runs the passes of exposure; exposure_adam only with params of the optimiser, which it completes.
func (e *exposed) run(adam bool, p *layout.StepParams, failed uint32) error {
	l := e.t.list()
	params := paramsOf(&ref.View[float32]{Width: e.width, Height: e.height})
	params.ViewId = uint32(e.id)
	if p != nil {
		params.LrExposure, params.ExposureReg = p.LrExposure, p.ExposureReg
	}
	n, tiles := e.width*e.height, int(params.View.TileWidth*params.View.TileHeight)
	in, table := input(l, "params", []layout.StepParams{params}), inout(l, "exposures", e.table)
	render := input(l, "render", e.render)
	out, vRender := output[[4]float32](l, "exposed", n), output[[4]float32](l, "v_render", n)
	vAffine := output[[4]float32](l, "v_affine", 3*tiles)
	l.r.Dispatch(&shaders.Expose{Params: in, Exposures: table.Slice, Render: render, Exposed: out.Slice},
		vk.Groups(tiles+2))
	l.r.Dispatch(&shaders.ExposeBwd{
		Params: in, Exposures: table.Slice, Render: render, VExposed: input(l, "v_exposed", e.vExposed),
		VRender: vRender.Slice, VAffine: vAffine.Slice,
	}, vk.Groups(tiles+2))
	if adam {
		counters := make([]uint32, layout.NCounters)
		counters[layout.Failed] = failed
		l.r.Dispatch(&shaders.ExposureAdam{
			Params: in, Counters: input(l, "counters", counters), VAffine: vAffine.Slice, Exposures: table.Slice,
		}, vk.Groups(1))
	}
	if err := l.run(); err != nil {
		return err
	}
	e.out, e.vRender, e.vAffine, e.after = out.got, vRender.got, vAffine.got, table.got
	return nil
}

// affine returns the photo's map in float64.
func (e *exposed) affine() *ref.Affine[float64] {
	return (*ref.Affine[float64])(ref.ConvertSlice[float64](e.table[e.id].Affine[:]))
}

func pixels64(x [][4]float32) [][4]float64 {
	out := make([][4]float64, len(x))
	for i := range x {
		copy(out[i][:], ref.ConvertSlice[float64](x[i][:]))
	}
	return out
}

func flat64(x [][4]float64) (out []float64) {
	for i := range x {
		out = append(out, x[i][:]...)
	}
	return out
}

func (e *exposed) checkExpose() error {
	if err := e.run(false, nil, 0); err != nil {
		return err
	}
	// Four products of size 2 at most.
	return closeTo("exposed", floatsOf(e.out), flat64(ref.Expose(pixels64(e.render), e.affine())), 1e-6, 0)
}

func (e *exposed) checkBwd() error {
	if err := e.run(false, nil, 0); err != nil {
		return err
	}
	vRender, vAffine := ref.ExposeBwd(pixels64(e.render), pixels64(e.vExposed), e.affine())
	if err := normWithin("v_render", floatsOf(e.vRender), flat64(vRender), 1e-6); err != nil {
		return err
	}
	var sum [12]float32
	for i, x := range floatsOf(e.vAffine) {
		sum[i%12] += x
	}
	// Sums of numbers of either sign, of size 1 / P.
	return closeTo("v_affine", sum[:], vAffine[:], 1e-5, 1e-5)
}

// checkAdam takes the photo's map from step-1 steps to step.
func (e *exposed) checkAdam(step int, failed uint32) error {
	p := layout.StepParams{LrExposure: 0.02, ExposureReg: 0.3}
	x := &e.table[e.id]
	x.Bias1 = float32(1 - math.Pow(layout.AdamBeta1, float64(step-1)))
	x.Bias2 = float32(1 - math.Pow(layout.AdamBeta2, float64(step-1)))
	if step == 1 {
		x.M, x.V = [12]float32{}, [12]float32{}
		// Adam's first step has the gradient's sign: far from 0, so that the sign is certain.
		for i := range e.vExposed {
			for k := range 3 {
				e.vExposed[i][k] = (1 + e.t.Float32()) / float32(e.width*e.height)
			}
		}
		for k := range x.Affine {
			x.Affine[k] = max(x.Affine[k], 0)
		}
	}
	if err := e.run(true, &p, failed); err != nil {
		return err
	}
	if failed != 0 {
		return sameBytes("exposures", e.after, e.table)
	}
	for i := range e.table {
		if i != e.id {
			if err := sameBytes("exposures", e.after[i:i+1], e.table[i:i+1]); err != nil {
				return fmt.Errorf("map %d, which is of another photo: %w", i, err)
			}
		}
	}
	a := e.affine()
	m, v := (*ref.Affine[float64])(ref.ConvertSlice[float64](x.M[:])),
		(*ref.Affine[float64])(ref.ConvertSlice[float64](x.V[:]))
	_, grad := ref.ExposeBwd(pixels64(e.render), pixels64(e.vExposed), a)
	ref.ExposureAdam(a, m, v, &grad, float64(p.LrExposure), float64(p.ExposureReg), ref.DefaultAdam, step)
	got := e.after[e.id]
	return first(
		closeTo("exposures.m", got.M[:], m[:], 1e-5, 1e-5), closeTo("exposures.v", got.V[:], v[:], 1e-5, 1e-5),
		closeTo("exposures.affine", got.Affine[:], a[:], 1e-5, 1e-5),
		closeTo("exposures.bias1", []float32{got.Bias1}, []float64{1 - math.Pow(layout.AdamBeta1, float64(step))}, 0,
			1e-4),
		closeTo("exposures.bias2", []float32{got.Bias2}, []float64{1 - math.Pow(layout.AdamBeta2, float64(step))}, 0,
			1e-4),
	)
}

// checkStill trains a map that has nothing to learn.
func checkStill(t *trial) error {
	e := t.exposed(20, 20)
	clear(e.vExposed)
	e.table[e.id] = layout.Exposure{Affine: [12]float32{0: 1, 5: 1, 10: 1}}
	if err := e.run(true, &layout.StepParams{LrExposure: 0.02, ExposureReg: 0.3}, 0); err != nil {
		return err
	}
	return equal("exposures.affine", e.after[e.id].Affine[:], e.table[e.id].Affine[:])
}
