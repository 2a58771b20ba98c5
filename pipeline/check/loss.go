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

// photoCheck makes the check of a case from what judges a photo's outputs.
type photoCheck func(check func(*photo)) func(t *trial)

// lossPair is a case of loss and one of loss_grad: of values and of gradients.
func lossPair(ofLoss, ofGrad string, check photoCheck, loss, grad func(*photo)) []Case {
	return []Case{newCase("loss", ofLoss, check(loss)), newCase("loss_grad", ofGrad, check(grad))}
}

// maskedPair is one of photos of which a part counts.
func maskedPair(name string, check photoCheck) []Case {
	return lossPair(name, name, check, (*photo).checkMasked, (*photo).checkMaskedGrad)
}

func lossCases() []Case {
	windows := func(same bool) photoCheck {
		return func(check func(*photo)) func(t *trial) {
			return over([][2]int{{1, 1}, {10, 30}, {11, 11}, {16, 16}, {17, 33}, {50, 40}},
				func(t *trial, s [2]int) { newPhoto(t, s[0], s[1], same).then(check) })
		}
	}
	pair := func(name string, check photoCheck) []Case {
		return lossPair("values, "+name, "gradient, "+name, check, (*photo).checkLoss, (*photo).checkGrad)
	}
	return slices.Concat(
		pair("windows inside", windows(false)), pair("windows beyond the border", windows(true)),
		pair("quadratic below a difference", huberTable),
		maskedPair("masks, quadratic below a difference", huberMasked),
		lossPair("float32 and RGBA8 photos agree", "float32 and RGBA8 photos agree", checkFormats,
			(*photo).likeLoss, (*photo).likeGrad),
		lossPair("picture equal to its photo", "picture equal to its photo", checkPerfect, (*photo).checkLoss,
			(*photo).checkNoGrad),
		[]Case{newCase("loss_grad", "L1 alone and SSIM alone", over([]float32{0, 1}, func(t *trial, lambda float32) {
			p := newPhoto(t, 40, 30, false)
			p.lambda = lambda
			p.then((*photo).checkGrad)
		}))})
}

// huberTable tries thresholds above and below which differences lie, and one that a third of them equal, with windows
// inside and beyond the border.
func huberTable(check func(*photo)) func(t *trial) {
	return over([]bool{false, true}, func(t *trial, same bool) {
		eachOf([]float32{0.05, 1}, func(h float32) {
			p := newPhoto(t, 40, 30, same)
			p.huber = h
			p.then(check)
		})
		newPhoto(t, 40, 30, same).atHuber(0.25).then(check)
	})
}

// huberMasked is huberTable under masks.
func huberMasked(check func(*photo)) func(t *trial) {
	return over([]float64{0.3, 0.95}, func(t *trial, share float64) {
		newPhoto(t, 40, 30, share > 0.5).atHuber(0.25).masked(share).then(check)
	})
}

// atHuber gives p a threshold, a power of 2, and a third of its pixels a difference of exactly that.
func (p *photo) atHuber(h float32) *photo {
	p.huber = h
	p.opaque()
	for i := 0; i < len(p.render); i += 3 {
		for ch := range 3 { // a photo of 0 or 1, which 8 bits hold
			p.pix[4*i+ch], p.render[i][ch] = 0, h
			if (i+ch)%2 == 1 {
				p.pix[4*i+ch], p.render[i][ch] = 255, 1-h
			}
		}
	}
	p.decode()
	return p
}

// photo is a rendering and the photo it is compared with.
type photo struct {
	t             *trial
	width, height int
	same          bool
	lambda        float32
	huber         float32
	background    [3]float32
	render        [][4]float32
	pix           []uint8   // RGBA8
	target        []float32 // the same as floats, over the background
	mask          []uint32  // nil: all texels count
	maskable      bool      // the kernels' variant for photos that may have masks
	robust        bool      // the mask is what find_outliers says, and not the photo's
	alphaLoss     float32
	packable      bool // likewise, packed
	// The photo's own size, whose pixels are called texels, where the rendering is smaller: see shrunk.
	texelWidth, texelHeight int
	texels                  []float32 // target of that size
	level                   int
	shrinkable              bool // the kernels' variant for views that may be smaller than their photos
	// What the kernels wrote, with a float32 target if floats, or RGB8 if packed.
	floats   bool
	packed   bool
	partials [][3]float32
	counted  [][3]float32
	vRender  [][4]float32
	before   *photo // with the outputs of another run
}

// newPhoto makes a smooth picture with noise, not clamped, and a photo of which a third is transparent.
func newPhoto(t *trial, width, height int, same bool) *photo {
	p := &photo{t: t, width: width, height: height, texelWidth: width, texelHeight: height, same: same, lambda: 0.2,
		background: [3]float32{0.1, 0.6, 0.3}}
	for i := range width * height {
		x, y := float64(i%width), float64(i/width)
		var c [4]float32
		for ch := range 4 {
			s := 0.5 + 0.4*math.Sin(x/5+float64(ch))*math.Cos(y/7)
			p.pix = append(p.pix, uint8(255*s))
			c[ch] = float32(s + 0.15*t.NormFloat64())
		}
		if t.IntN(3) > 0 {
			p.pix[4*i+3] = 255
		}
		p.render = append(p.render, c)
	}
	p.decode()
	return p
}

func (p *photo) decode() {
	p.texels = ref.TargetFromRGBA8(p.pix, p.background)
	p.target = ref.Shrink(p.texels, p.texelWidth, p.texelHeight, 3, p.level)
}

func (p *photo) opaque() {
	for i := 3; i < len(p.pix); i += 4 {
		p.pix[i] = 255
	}
	p.decode()
}

// then runs the kernels with both formats and checks the outputs of each.
func (p *photo) then(check func(*photo)) {
	for _, p.floats = range []bool{false, true} {
		during(fmt.Sprintf("float32 photo %v", p.floats), func() { p.run(check) })
	}
}

func (p *photo) inputs() (params layout.StepParams, render vk.Slice[[4]float32], target vk.Slice[uint32]) {
	params = paramsOf(&ref.View[float32]{Width: p.width, Height: p.height, Background: p.background})
	params.SsimLambda, params.Huber, params.SsimSame = p.lambda, p.huber, layout.Bit(p.same)
	params.AlphaLoss = p.alphaLoss
	params.Level, params.PhotoWidth, params.PhotoHeight = uint32(p.level), uint32(p.texelWidth), uint32(p.texelHeight)
	words := wordsOf(p.pix)
	if p.floats {
		words = wordsOf32(p.texels)
	}
	if p.packed {
		params.PhotoFlags, words = layout.PhotoPacked, packedWords(p.pix)
	}
	if p.mask != nil && !p.robust {
		params.PhotoFlags |= layout.PhotoMasked
		words = append(words, p.mask...)
	}
	before := []uint32{0x7FC00000, 1, 0xFFFFFFFF} // another photo's
	params.PhotoOffset = uint32(len(before))
	return params, in(p.t, p.render...), in(p.t, append(append(before, words...), 0)...) // see target.glsl
}

// run runs the kernels, and checks what they wrote.
func (p *photo) run(check func(*photo)) {
	t := p.t
	params, render, target := p.inputs()
	n, tiles := p.width*p.height, int(params.View.TileWidth*params.View.TileHeight)
	step, inliers, maps := in(t, params), in(t, p.inliers()...), scratch[float32](t, 9*n)
	partials, counted := out[[3]float32](t, tiles), out[[3]float32](t, tiles)
	vRender := out[[4]float32](t, n)
	pass := &shaders.Loss{Params: step, Render: render, Target: target, SsimMaps: maps, Partials: partials,
		Counted: counted, Inliers: inliers, Spec: shaders.LossSpec{TargetFloat: p.floats,
			Masked: p.mask != nil || p.maskable, Alpha: p.alphaLoss > 0, Packed: p.packed || p.packable,
			Shrunk: p.level > 0 || p.shrinkable, Robust: p.robust}}
	t.dispatch(pass, vk.Groups(tiles+2))
	t.dispatch(vk.Derive(pass, func(p *shaders.LossGrad) { p.VRender = vRender }), vk.Groups(tiles+2))
	t.run()
	if !pass.Spec.Masked && !pass.Spec.Alpha {
		head(t, counted, 0)
	}
	p.partials, p.vRender, p.counted = got(t, partials), got(t, vRender), got(t, counted)
	check(p)
}

func (p *photo) want() *ref.LossResult[float64] {
	c := ref.LossConfig[float64]{Lambda: float64(p.lambda), Huber: float64(p.huber), Same: p.same,
		AlphaLoss: float64(p.alphaLoss)}
	c.Mask = ref.ShrinkMask(p.mask, p.texelWidth, p.texelHeight, p.level)
	if !p.floats {
		var texels []float64
		for i := 3; i < len(p.pix); i += 4 {
			texels = append(texels, float64(p.pix[i])/255)
		}
		c.Alpha = ref.Shrink(texels, p.texelWidth, p.texelHeight, 1, p.level)
	}
	return ref.Loss(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, c)
}

// checkLoss compares the sums over tiles: the loss of colours and squares tile by tile, SSIM in all.
func (p *photo) checkLoss() {
	cols := (p.width + 15) / 16
	want := make([][3]float64, len(p.partials))
	for i := range p.render {
		if !p.counts(i) {
			continue
		}
		s := &want[i/p.width/16*cols+i%p.width/16]
		for ch := range 3 {
			d := float64(p.render[i][ch]) - float64(p.target[3*i+ch])
			s[0] += p.colorLoss(math.Abs(d))
			s[1] += d * d
		}
	}
	ssim := 0.0
	for tile, got := range p.partials {
		// 768 values, each of 1 at most and right to 2^-24, summed by a tree; 8-bit photos are right to 2^-23 more.
		near(fmt.Sprintf("partials of tile %d", tile), got[:2], want[tile][:2], 768*3e-7, 1e-6)
		ssim += float64(got[2])
	}
	w, h := p.width, p.height
	if !p.same {
		w, h = max(0, w-10), max(0, h-10)
	}
	terms := float64(max(1, 3*w*h))
	// E[x^2] - mu^2 cancels: in flat windows float32 leaves 1e-7 beside SSIM's constant of 9e-4.
	r := p.want()
	near("partials", []float32{float32(ssim / terms)}, []float64{r.SSIM * float64(3*r.Windows) / terms}, 1e-5, 0)
}

func (p *photo) colorLoss(d float64) float64 {
	h := float64(p.huber)
	if d < h {
		return d * d / (2 * h)
	}
	return d - h/2
}

func (p *photo) checkGrad() {
	// As for SSIM's value: cancellation in flat windows.
	nearNorm("v_render", floatsOf(p.vRender), flat64(p.want().VRender), 1e-4)
}

// checkNoGrad wants no gradient: L1's part is exactly 0, SSIM's is what cancellation leaves of it.
func (p *photo) checkNoGrad() {
	near("v_render", floatsOf(p.vRender), make([]float32, 4*len(p.vRender)), 1e-3/float64(3*p.width*p.height), 0)
}

// likeLoss wants what another variant of the kernels, or another format, made of the same photo. Compilers may contract
// variants in their own ways, and 8-bit photos are right to 1e-6.
func (p *photo) likeLoss() {
	abs, rel := 768*3e-7, 1e-6
	if p.floats != p.before.floats {
		abs, rel = 768*1e-6, 0
	}
	near("partials", floatsOf(p.partials), floatsOf(p.before.partials), abs, rel)
	near("counted", floatsOf(p.counted), floatsOf(p.before.counted), 0, 1e-6)
}

func (p *photo) likeGrad() { // gradients are of size 1 / (3 pixels)
	near("v_render", floatsOf(p.vRender), floatsOf(p.before.vRender), 1e-6/float64(3*p.width*p.height), 1e-4)
}

// remember keeps the outputs, for likeLoss and likeGrad.
func (p *photo) remember() {
	before := *p
	p.before = &before
}

// checkFormats compares both formats of one 8-bit photo, which is opaque, as 8-bit targets are.
func checkFormats(check func(*photo)) func(t *trial) {
	return over([]bool{false, true}, func(t *trial, same bool) {
		p := newPhoto(t, 50, 40, same)
		p.opaque()
		p.run((*photo).remember)
		p.floats = true
		p.run(check)
	})
}

func checkPerfect(check func(*photo)) func(t *trial) {
	return func(t *trial) {
		p := newPhoto(t, 40, 30, false)
		p.opaque()
		for i := range p.render {
			copy(p.render[i][:3], p.target[3*i:3*i+3])
		}
		p.floats = true // an 8-bit photo may differ from the picture by a rounding, whose sign is L1's gradient
		p.run(check)
	}
}
