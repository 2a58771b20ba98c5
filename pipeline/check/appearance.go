package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func appearanceCases() []Case {
	all := func(check func(*looks)) func(t *trial) {
		return over([][2]int{{1, 1}, {16, 16}, {17, 1}, {50, 40}, {16 * 257, 3}},
			func(t *trial, s [2]int) { check(newLooks(t, s[0], s[1], 5)) })
	}
	parts := func(check func(*looks)) func(t *trial) {
		return over([]int{0, 1, 2, 3}, func(t *trial, bits int) {
			l := newLooks(t, 50, 40, 5)
			l.camera.WhiteBalance, l.camera.Vignetting = bits&1 != 0, bits&2 != 0
			check(l)
		})
	}
	return slices.Concat(casesOf("find_appearance", table{
		{"numbers of photos", over([]int{1, 2, 255, 256, 257, 600},
			func(t *trial, n int) { newLooks(t, 17, 9, n).checkFind() })},
	}), casesOf("apply_appearance", table{
		{"sizes", all((*looks).checkApply)}, {"parts", parts((*looks).checkApply)},
		{"exposure of one photo alone keeps every bit", checkAlone},
		{"black and negative pixels", checkDark},
	}), casesOf("apply_appearance_bwd", table{
		{"sizes", all((*looks).checkBwd)}, {"parts", parts((*looks).checkBwd)},
	}), casesOf("appearance_adam", table{
		{"sizes", all(func(l *looks) { l.checkAdam(1, 0) })}, {"parts", parts(func(l *looks) { l.checkAdam(9, 0) })},
		{"first steps and late ones", over([]int{1, 2, 3, 100, 30000},
			func(t *trial, step int) { newLooks(t, 50, 40, 5).checkAdam(step, 0) })},
		{"a failed unit changes nothing", over([]uint32{layout.FailedIsects, layout.FailedSplats},
			func(t *trial, f uint32) { newLooks(t, 50, 40, 5).checkAdam(7, f) })},
		{"another device steps the photo", func(t *trial) {
			l := newLooks(t, 50, 40, 5)
			l.rates.Photo = -1
			l.run(true, 0)
			same("appearances", l.after, l.table)
		}},
		{"a gradient of zeros at none moves nothing", checkStill},
	}))
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
	found   []layout.Correction
	out     [][4]float32
	vRender [][4]float32
	after   []layout.Appearance
}

// newLooks makes those of n photos, three of four by one camera.
func newLooks(t *trial, width, height, n int) *looks {
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
func (l *looks) run(adam bool, failed uint32) {
	t := l.t
	params := paramsOf(&ref.View[float32]{Width: l.camera.Width, Height: l.camera.Height})
	params.ViewId, params.VignettingReg = uint32(l.id), l.reg
	params.LrAppearance, params.LrVignetting = float32(l.rates.Photo), float32(l.rates.Vignetting)
	params.AppearanceBeta1, params.AppearanceBeta2 = float32(l.adam.Beta1), float32(l.adam.Beta2)
	params.Exposure = 1
	params.WhiteBalance, params.Vignetting = layout.Bit(l.camera.WhiteBalance), layout.Bit(l.camera.Vignetting)
	n, tiles := len(l.render), int(params.View.TileWidth*params.View.TileHeight)
	step, table, render := in(t, params), scratchOf(t, l.table), in(t, l.render...)
	found, seen := out[layout.Correction](t, 1), out[[4]float32](t, n)
	vRender, vCorrection := out[[4]float32](t, n), scratch[[4]float32](t, 7*tiles)
	t.dispatch(&shaders.FindAppearance{Params: step, Appearances: table, Correction: found,
		Push: shaders.FindAppearancePush{NViews: uint32(len(l.table))}}, vk.Groups(1))
	t.dispatch(&shaders.ApplyAppearance{Params: step, Correction: found, Render: render, Seen: seen},
		vk.Groups(tiles+2))
	t.dispatch(&shaders.ApplyAppearanceBwd{Params: step, Correction: found, Render: render, VSeen: in(t, l.vSeen...),
		VRender: vRender, VCorrection: vCorrection}, vk.Groups(tiles+2))
	if adam {
		t.dispatch(&shaders.AppearanceAdam{Params: step, Counters: in(t, with(make([]uint32, layout.NCounters),
			layout.Failed, failed)...), Correction: found, VCorrection: vCorrection, Appearances: table}, vk.Groups(1))
	}
	t.run()
	l.found, l.out, l.vRender, l.after = got(t, found), got(t, seen), got(t, vRender), got(t, table)
}

func numbers64(x *[layout.AppearanceNumbers]float32) *ref.Appearance[float64] {
	return (*ref.Appearance[float64])(ref.ConvertSlice[float64](x[:]))
}

func (l *looks) appearance() *ref.Appearance[float64] {
	own, cameras := make([]ref.Appearance[float64], len(l.table)), make([]int, len(l.table))
	for i := range l.table {
		own[i], cameras[i] = *numbers64(&l.table[i].Own), int(l.table[i].Camera)
	}
	a := ref.FindAppearance(own, cameras, l.id)
	return &a
}

func (l *looks) checkFind() {
	l.run(false, 0)
	a, c := l.appearance(), l.found[0]
	m, _ := a.Colour(0)
	var colour []float64
	for k := range 9 {
		colour = append(colour, m[k%3][k/3])
	}
	near("correction.own", c.Own[:], a[:], 1e-6, 1e-6)
	near("correction.gain", []float32{c.Gain}, []float64{math.Exp2(a[0])}, 0, 1e-5)
	near("correction.colour", c.Colour[:], colour, 1e-5, 1e-5)
}

func (l *looks) checkApply() {
	l.run(false, 0)
	want := ref.ApplyAppearance(pixels64(l.render), l.appearance(), l.camera)
	near("seen", floatsOf(l.out), flat64(want), 1e-5, 1e-5)
}

// checkAlone has one photo: its exposure is the mean, and it says nothing.
func checkAlone(t *trial) {
	l := newLooks(t, 50, 40, 1)
	l.camera.WhiteBalance, l.camera.Vignetting = false, false
	l.run(false, 0)
	same("seen", l.out, l.render)
}

// checkDark has pixels without a chromaticity among others: white balance leaves them as they are.
func checkDark(t *trial) {
	l := newLooks(t, 50, 40, 5)
	for p := 0; p < len(l.render); p += 3 {
		l.render[p] = [4]float32{-0.3 * float32(p%2), 0, 0, 1}
	}
	l.checkApply()
	l.checkBwd()
}

func (l *looks) checkBwd() {
	l.run(false, 0)
	vRender, _ := ref.ApplyAppearanceBwd(pixels64(l.render), pixels64(l.vSeen), l.appearance(), l.camera)
	nearNorm("v_render", floatsOf(l.vRender), flat64(vRender), 1e-5)
	for i, g := range l.vRender {
		if g[3] != l.vSeen[i][3] {
			failf("binding v_render: alpha of pixel %d is %g, want %g", i, g[3], l.vSeen[i][3])
		}
	}
}

// checkAdam takes the photo from step-1 steps to step.
func (l *looks) checkAdam(step int, failed uint32) {
	x := &l.table[l.id]
	x.Bias1 = float32(1 - math.Pow(l.adam.Beta1, float64(step-1)))
	x.Bias2 = float32(1 - math.Pow(l.adam.Beta2, float64(step-1)))
	if step == 1 {
		x.M, x.V = [layout.AppearanceNumbers]float32{}, [layout.AppearanceNumbers]float32{}
	}
	l.run(true, failed)
	if sameRows("appearances", l.after, l.table, l.id, failed != 0); failed != 0 {
		return
	}
	a, own, m, v := l.appearance(), numbers64(&x.Own), numbers64(&x.M), numbers64(&x.V)
	_, grad := ref.ApplyAppearanceBwd(pixels64(l.render), pixels64(l.vSeen), a, l.camera)
	ref.AppearanceAdam(own, m, v, a, &grad, l.camera, l.rates, float64(l.reg), l.adam, step, l.others())
	is := l.after[l.id]
	if step == 1 {
		// Adam's first step has the gradient's sign, which rounding decides where the gradient is next to 0.
		for k, g := range m {
			if math.Abs(g) < 1e-6 {
				own[k] = float64(is.Own[k])
			}
		}
	}
	near("appearances.m", is.M[:], m[:], 1e-5, 1e-5)
	near("appearances.v", is.V[:], v[:], 1e-5, 1e-5)
	near("appearances.own", is.Own[:], own[:], 1e-5, 1e-5)
	nearBiases("appearances", is.Bias1, is.Bias2, l.adam.Beta1, l.adam.Beta2, step)
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
func checkStill(t *trial) {
	l := newLooks(t, 20, 20, 5)
	clear(l.vSeen)
	for i := range l.table {
		l.table[i].Own = [layout.AppearanceNumbers]float32{}
	}
	l.table[l.id].M, l.table[l.id].V = l.table[0].Own, l.table[0].Own
	l.run(true, 0)
	near("appearances.own", l.after[l.id].Own[:], l.table[l.id].Own[:], 0, 0)
}
