package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func appearanceCases() []Case {
	sizes := [][2]int{{1, 1}, {16, 16}, {17, 1}, {50, 40}, {16 * 257, 3}}
	all := func(check func(*looks) error) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error { return check(t.looks(s[0], s[1], 5)) })
		}
	}
	parts := func(check func(*looks) error) func(t *trial) error {
		return func(t *trial) error {
			return each([]int{0, 1, 2, 3}, func(bits int) error {
				l := t.looks(50, 40, 5)
				l.camera.WhiteBalance, l.camera.Vignetting = bits&1 != 0, bits&2 != 0
				return check(l)
			})
		}
	}
	photos := func(check func(*looks) error) func(t *trial) error {
		return func(t *trial) error {
			return each([]int{1, 2, 255, 256, 257, 600}, func(n int) error { return check(t.looks(17, 9, n)) })
		}
	}
	return []Case{
		newCase("find_appearance", "numbers of photos", photos((*looks).checkFind)),
		newCase("apply_appearance", "sizes", all((*looks).checkApply)),
		newCase("apply_appearance", "parts", parts((*looks).checkApply)),
		newCase("apply_appearance", "exposure of one photo alone keeps every bit", checkAlone),
		newCase("apply_appearance", "black and negative pixels", checkDark),
		newCase("apply_appearance_bwd", "sizes", all((*looks).checkBwd)),
		newCase("apply_appearance_bwd", "parts", parts((*looks).checkBwd)),
		newCase("appearance_adam", "sizes", all(func(l *looks) error { return l.checkAdam(1, 0) })),
		newCase("appearance_adam", "parts", parts(func(l *looks) error { return l.checkAdam(9, 0) })),
		newCase("appearance_adam", "first steps and late ones", func(t *trial) error {
			return each([]int{1, 2, 3, 100, 30000},
				func(step int) error { return t.looks(50, 40, 5).checkAdam(step, 0) })
		}),
		newCase("appearance_adam", "a failed unit changes nothing", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedSplats},
				func(f uint32) error { return t.looks(50, 40, 5).checkAdam(7, f) })
		}),
		newCase("appearance_adam", "another device steps the photo", func(t *trial) error {
			l := t.looks(50, 40, 5)
			l.rates.Photo = -1
			if err := l.run(true, 0); err != nil {
				return err
			}
			return sameBytes("appearances", l.after, l.table)
		}),
		newCase("appearance_adam", "a gradient of zeros at none moves nothing", checkStill),
	}
}

// looks is a rendering, gradients of what a camera made of it, and a table of appearances of which one is the photo's.
type looks struct {
	t      *trial
	camera ref.Camera
	id     int
	rates  ref.AppearanceRates
	reg    float32
	adam   ref.AdamConfig
	table  []layout.Appearance
	render [][4]float32
	vSeen  [][4]float32
	// What the kernels wrote.
	found       []layout.Correction
	out         [][4]float32
	vRender     [][4]float32
	vCorrection [][4]float32 // [tiles][7]
	after       []layout.Appearance
}

// looks makes those of n photos, three of four by one camera.
func (t *trial) looks(width, height, n int) *looks {
	l := &looks{t: t, camera: ref.Camera{Width: width, Height: height, WhiteBalance: true, Vignetting: true}, id: n / 2,
		rates: ref.AppearanceRates{Photo: 0.02, Vignetting: 0.01}, reg: 0.3,
		adam: ref.AdamConfig{Beta1: 0.5, Beta2: 0.97, Eps: layout.AdamEps}, table: make([]layout.Appearance, n)}
	for i := range l.table {
		x := &l.table[i]
		x.Camera = float32(i % 4 / 3)
		for k := range x.Own {
			x.Own[k] = float32(0.4 * t.NormFloat64())
			if k >= layout.Vignetting {
				x.Own[k] *= float32(1 / math.Sqrt(float64(n)))
			}
			// Second moments of at least 0.5 make the step a smooth function of the gradient.
			x.M[k], x.V[k] = float32(t.NormFloat64()), float32(0.5+t.Float64())
		}
		x.Bias2 = float32(t.Float64())
	}
	for range width * height {
		var c, g [4]float32
		for k := range c {
			c[k], g[k] = 0.05+t.Float32(), float32(t.NormFloat64()/float64(width*height))
		}
		l.render, l.vSeen = append(l.render, c), append(l.vSeen, g)
	}
	return l
}

// run runs the passes of appearance, appearance_adam only where asked for.
func (l *looks) run(adam bool, failed uint32) error {
	list := l.t.list()
	params := paramsOf(&ref.View[float32]{Width: l.camera.Width, Height: l.camera.Height})
	params.ViewId, params.VignettingReg = uint32(l.id), l.reg
	params.LrAppearance, params.LrVignetting = float32(l.rates.Photo), float32(l.rates.Vignetting)
	params.AppearanceBeta1, params.AppearanceBeta2 = float32(l.adam.Beta1), float32(l.adam.Beta2)
	params.Exposure = 1
	params.WhiteBalance, params.Vignetting = layout.Bit(l.camera.WhiteBalance), layout.Bit(l.camera.Vignetting)
	n, tiles := len(l.render), int(params.View.TileWidth*params.View.TileHeight)
	in, table := input(list, "params", []layout.StepParams{params}), inout(list, "appearances", l.table)
	render, found := input(list, "render", l.render), output[layout.Correction](list, "correction", 1)
	out, vRender := output[[4]float32](list, "seen", n), output[[4]float32](list, "v_render", n)
	vCorrection := output[[4]float32](list, "v_correction", 7*tiles)
	list.r.Dispatch(&shaders.FindAppearance{Params: in, Appearances: table.Slice, Correction: found.Slice,
		Push: shaders.FindAppearancePush{NViews: uint32(len(l.table))}}, vk.Groups(1))
	list.r.Dispatch(&shaders.ApplyAppearance{Params: in, Correction: found.Slice, Render: render, Seen: out.Slice},
		vk.Groups(tiles+2))
	list.r.Dispatch(&shaders.ApplyAppearanceBwd{
		Params: in, Correction: found.Slice, Render: render, VSeen: input(list, "v_seen", l.vSeen),
		VRender: vRender.Slice, VCorrection: vCorrection.Slice,
	}, vk.Groups(tiles+2))
	if adam {
		counters := make([]uint32, layout.NCounters)
		counters[layout.Failed] = failed
		list.r.Dispatch(&shaders.AppearanceAdam{
			Params: in, Counters: input(list, "counters", counters), Correction: found.Slice,
			VCorrection: vCorrection.Slice, Appearances: table.Slice,
		}, vk.Groups(1))
	}
	if err := list.run(); err != nil {
		return err
	}
	l.found, l.out, l.vRender, l.vCorrection, l.after = found.got, out.got, vRender.got, vCorrection.got, table.got
	return nil
}

// numbers64 converts 24 numbers.
func numbers64(x *[layout.AppearanceNumbers]float32) *ref.Appearance[float64] {
	return (*ref.Appearance[float64])(ref.ConvertSlice[float64](x[:]))
}

// appearance returns the photo's in float64.
func (l *looks) appearance() *ref.Appearance[float64] {
	own, cameras := make([]ref.Appearance[float64], len(l.table)), make([]int, len(l.table))
	for i := range l.table {
		own[i], cameras[i] = *numbers64(&l.table[i].Own), int(l.table[i].Camera)
	}
	a := ref.FindAppearance(own, cameras, l.id)
	return &a
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

func (l *looks) checkFind() error {
	if err := l.run(false, 0); err != nil {
		return err
	}
	a, got := l.appearance(), l.found[0]
	m, _ := a.Colour(0)
	var colour []float64
	for k := range 9 {
		colour = append(colour, m[k%3][k/3])
	}
	return first(
		closeTo("correction.own", got.Own[:], a[:], 1e-6, 1e-6),
		closeTo("correction.gain", []float32{got.Gain}, []float64{math.Exp2(a[0])}, 0, 1e-5),
		closeTo("correction.colour", got.Colour[:], colour, 1e-5, 1e-5),
	)
}

func (l *looks) checkApply() error {
	if err := l.run(false, 0); err != nil {
		return err
	}
	want := ref.ApplyAppearance(pixels64(l.render), l.appearance(), l.camera)
	return closeTo("seen", floatsOf(l.out), flat64(want), 1e-5, 1e-5)
}

// checkAlone has one photo: its exposure is the mean, and it says nothing.
func checkAlone(t *trial) error {
	l := t.looks(50, 40, 1)
	l.camera.WhiteBalance, l.camera.Vignetting = false, false
	if err := l.run(false, 0); err != nil {
		return err
	}
	return sameBytes("seen", l.out, l.render)
}

// checkDark has pixels without a chromaticity among others: white balance leaves them as they are.
func checkDark(t *trial) error {
	l := t.looks(50, 40, 5)
	for p := range l.render {
		if p%3 == 0 {
			l.render[p] = [4]float32{-0.3 * float32(p%2), 0, 0, 1}
		}
	}
	return first(l.checkApply(), l.checkBwd())
}

func (l *looks) checkBwd() error {
	if err := l.run(false, 0); err != nil {
		return err
	}
	render, vSeen := pixels64(l.render), pixels64(l.vSeen)
	vRender, _ := ref.ApplyAppearanceBwd(render, vSeen, l.appearance(), l.camera)
	if err := normWithin("v_render", floatsOf(l.vRender), flat64(vRender), 1e-5); err != nil {
		return err
	}
	for i, g := range l.vRender {
		if g[3] != l.vSeen[i][3] {
			return fmt.Errorf("v_render: alpha of pixel %d is %g, want %g", i, g[3], l.vSeen[i][3])
		}
	}
	return nil
}

// checkAdam takes the photo from step-1 steps to step.
func (l *looks) checkAdam(step int, failed uint32) error {
	x := &l.table[l.id]
	x.Bias1 = float32(1 - math.Pow(l.adam.Beta1, float64(step-1)))
	x.Bias2 = float32(1 - math.Pow(l.adam.Beta2, float64(step-1)))
	if step == 1 {
		x.M, x.V = [layout.AppearanceNumbers]float32{}, [layout.AppearanceNumbers]float32{}
	}
	if err := l.run(true, failed); err != nil {
		return err
	}
	if failed != 0 {
		return sameBytes("appearances", l.after, l.table)
	}
	for i := range l.table {
		if i != l.id {
			if err := sameBytes("appearances", l.after[i:i+1], l.table[i:i+1]); err != nil {
				return fmt.Errorf("row %d, which is of another photo: %w", i, err)
			}
		}
	}
	a, own, m, v := l.appearance(), numbers64(&x.Own), numbers64(&x.M), numbers64(&x.V)
	_, grad := ref.ApplyAppearanceBwd(pixels64(l.render), pixels64(l.vSeen), a, l.camera)
	ref.AppearanceAdam(own, m, v, a, &grad, l.camera, l.rates, float64(l.reg), l.adam, step, l.others())
	got := l.after[l.id]
	if step == 1 {
		// Adam's first step has the gradient's sign, which rounding decides where the gradient is next to 0.
		for k, g := range m {
			if math.Abs(g) < 1e-6 {
				own[k] = float64(got.Own[k])
			}
		}
	}
	return first(
		closeTo("appearances.m", got.M[:], m[:], 1e-5, 1e-5), closeTo("appearances.v", got.V[:], v[:], 1e-5, 1e-5),
		closeTo("appearances.own", got.Own[:], own[:], 1e-5, 1e-5),
		closeTo("appearances.bias1", []float32{got.Bias1}, []float64{1 - math.Pow(l.adam.Beta1, float64(step))}, 0,
			1e-4),
		closeTo("appearances.bias2", []float32{got.Bias2}, []float64{1 - math.Pow(l.adam.Beta2, float64(step))}, 0,
			1e-4),
	)
}

// others sums what the other photos of the photo's camera have.
func (l *looks) others() *ref.Seconds[float64] {
	s := &ref.Seconds[float64]{}
	for i := range l.table {
		x := &l.table[i]
		if i == l.id || x.Camera != l.table[l.id].Camera {
			continue
		}
		s.Bias += float64(x.Bias2)
		for k := range x.V {
			s.V[k] += float64(x.V[k])
		}
	}
	return s
}

// checkStill trains a photo that has nothing to learn.
func checkStill(t *trial) error {
	l := t.looks(20, 20, 5)
	clear(l.vSeen)
	for i := range l.table {
		l.table[i].Own = [layout.AppearanceNumbers]float32{}
	}
	l.table[l.id].M, l.table[l.id].V = l.table[0].Own, l.table[0].Own
	if err := l.run(true, 0); err != nil {
		return err
	}
	return equal("appearances.own", l.after[l.id].Own[:], l.table[l.id].Own[:])
}
