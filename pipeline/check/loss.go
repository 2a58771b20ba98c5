package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func lossCases() []Case {
	sizes := [][2]int{{1, 1}, {10, 30}, {11, 11}, {16, 16}, {17, 33}, {50, 40}}
	table := func(same bool, check func(*photo) error) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error { return t.photo(s[0], s[1], same).then(check) })
		}
	}
	return []Case{
		newCase("loss", "values, windows inside", table(false, (*photo).checkLoss)),
		newCase("loss", "values, windows beyond the border", table(true, (*photo).checkLoss)),
		newCase("loss", "values, quadratic below a difference", huberTable((*photo).checkLoss)),
		newCase("loss_grad", "gradient, quadratic below a difference", huberTable((*photo).checkGrad)),
		newCase("loss", "masks, quadratic below a difference", huberMasked((*photo).checkMasked)),
		newCase("loss_grad", "masks, quadratic below a difference", huberMasked((*photo).checkMaskedGrad)),
		newCase("loss", "float32 and RGBA8 photos agree",
			func(t *trial) error { return t.photo(50, 40, false).checkFormats(false) }),
		newCase("loss", "picture equal to its photo", func(t *trial) error { return checkPerfect(t, false) }),
		newCase("loss_grad", "gradient, windows inside", table(false, (*photo).checkGrad)),
		newCase("loss_grad", "gradient, windows beyond the border", table(true, (*photo).checkGrad)),
		newCase("loss_grad", "float32 and RGBA8 photos agree",
			func(t *trial) error { return t.photo(50, 40, true).checkFormats(true) }),
		newCase("loss_grad", "picture equal to its photo", func(t *trial) error { return checkPerfect(t, true) }),
		newCase("loss_grad", "L1 alone and SSIM alone", func(t *trial) error {
			return each([]float32{0, 1}, func(lambda float32) error {
				p := t.photo(40, 30, false)
				p.lambda = lambda
				return p.then((*photo).checkGrad)
			})
		}),
	}
}

// huberTable tries thresholds above and below which differences lie, and one that a third of them equal, with windows
// inside and beyond the border.
func huberTable(check func(*photo) error) func(t *trial) error {
	return func(t *trial) error {
		return each([]bool{false, true}, func(same bool) error {
			return first(
				each([]float32{0.05, 1}, func(h float32) error {
					p := t.photo(40, 30, same)
					p.huber = h
					return p.then(check)
				}),
				t.photo(40, 30, same).atHuber(0.25).then(check))
		})
	}
}

// huberMasked is huberTable under masks.
func huberMasked(check func(*photo) error) func(t *trial) error {
	return func(t *trial) error {
		return each([]float64{0.3, 0.95}, func(share float64) error {
			p := t.photo(40, 30, share > 0.5).atHuber(0.25)
			return p.masked(share).then(check)
		})
	}
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
}

// photo makes a smooth picture with noise, not clamped, and a photo of which a third is transparent.
func (t *trial) photo(width, height int, same bool) *photo {
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

// decode makes texels and target of pix.
func (p *photo) decode() {
	p.texels = ref.TargetFromRGBA8(p.pix, p.background)
	p.target = ref.Shrink(p.texels, p.texelWidth, p.texelHeight, 3, p.level)
}

// opaque makes the photo opaque.
func (p *photo) opaque() {
	for i := 3; i < len(p.pix); i += 4 {
		p.pix[i] = 255
	}
	p.decode()
}

// then runs the kernels with both formats and checks the outputs of each.
func (p *photo) then(check func(*photo) error) error {
	for _, p.floats = range []bool{false, true} {
		if err := first(p.run(), check(p)); err != nil {
			return fmt.Errorf("float32 photo %v: %w", p.floats, err)
		}
	}
	return nil
}

// inputs makes what the kernels read of p.
func (p *photo) inputs(l *list) (params layout.StepParams, render vk.Slice[[4]float32], target vk.Slice[uint32]) {
	params = paramsOf(&ref.View[float32]{Width: p.width, Height: p.height, Background: p.background})
	params.SsimLambda, params.Huber = p.lambda, p.huber
	if p.same {
		params.SsimSame = 1
	}
	words := wordsOf(p.pix)
	if p.floats {
		words = nil
		for _, x := range p.texels {
			words = append(words, math.Float32bits(x))
		}
	}
	if p.packed {
		params.PhotoFlags, words = layout.PhotoPacked, packedWords(p.pix)
	}
	params.AlphaLoss = p.alphaLoss
	if p.mask != nil && !p.robust {
		params.PhotoFlags |= layout.PhotoMasked
		words = append(words, p.mask...)
	}
	before := []uint32{0x7FC00000, 1, 0xFFFFFFFF} // another photo's
	params.PhotoOffset = uint32(len(before))
	words = append(append(before, words...), 0) // see target.glsl
	params.Level, params.PhotoWidth, params.PhotoHeight = uint32(p.level), uint32(p.texelWidth), uint32(p.texelHeight)
	return params, input(l, "render", p.render), input(l, "target", words)
}

func (p *photo) run() error {
	l := p.t.list()
	params, render, target := p.inputs(l)
	n, tiles := p.width*p.height, int(params.View.TileWidth*params.View.TileHeight)
	in, inliers := input(l, "params", []layout.StepParams{params}), input(l, "inliers", p.inliers())
	maps, partials := output[float32](l, "ssim_maps", 9*n), output[[3]float32](l, "partials", tiles)
	counted, vRender := output[[3]float32](l, "counted", tiles), output[[4]float32](l, "v_render", n)
	masked, alpha, packed, shrunk := p.mask != nil || p.maskable, p.alphaLoss > 0, p.packed || p.packable,
		p.level > 0 || p.shrinkable
	l.r.Dispatch(&shaders.Loss{
		Params: in, Render: render, Target: target, SsimMaps: maps.Slice, Partials: partials.Slice,
		Counted: counted.Slice, Inliers: inliers,
		Spec: shaders.LossSpec{TargetFloat: p.floats, Masked: masked, Alpha: alpha, Packed: packed, Shrunk: shrunk,
			Robust: p.robust},
	}, vk.Groups(tiles+2))
	l.r.Dispatch(&shaders.LossGrad{
		Params: in, Render: render, Target: target, SsimMaps: maps.Slice, VRender: vRender.Slice, Inliers: inliers,
		Spec: shaders.LossGradSpec{TargetFloat: p.floats, Masked: masked, Alpha: alpha, Packed: packed, Shrunk: shrunk,
			Robust: p.robust},
	}, vk.Groups(tiles+2))
	if err := l.run(); err != nil {
		return err
	}
	p.partials, p.vRender, p.counted = partials.got, vRender.got, counted.got
	if !masked && !alpha {
		_, err := counted.written(0)
		return err
	}
	return nil
}

// want is the reference in float64.
func (p *photo) want() *ref.LossResult[float64] {
	render := make([][4]float64, len(p.render))
	for i, c := range p.render {
		copy(render[i][:], ref.ConvertSlice[float64](c[:]))
	}
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
	return ref.Loss(render, ref.ConvertSlice[float64](p.target), p.width, p.height, c)
}

// checkLoss compares the sums over tiles: the loss of colours and squares tile by tile, SSIM in all.
func (p *photo) checkLoss() error {
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
		if err := closeTo("partials", got[:2], want[tile][:2], 768*3e-7, 1e-6); err != nil {
			return fmt.Errorf("tile %d: %w", tile, err)
		}
		ssim += float64(got[2])
	}
	w, h := p.width, p.height
	if !p.same {
		w, h = max(0, w-10), max(0, h-10)
	}
	terms := float64(max(1, 3*w*h))
	// E[x^2] - mu^2 cancels: in flat windows float32 leaves 1e-7 beside SSIM's constant of 9e-4.
	r := p.want()
	return closeTo("partials", []float32{float32(ssim / terms)}, []float64{r.SSIM * float64(3*r.Windows) / terms}, 1e-5,
		0)
}

// colorLoss returns what a difference of colour adds to the loss.
func (p *photo) colorLoss(d float64) float64 {
	h := float64(p.huber)
	if d < h {
		return d * d / (2 * h)
	}
	return d - h/2
}

func (p *photo) checkGrad() error {
	var want []float64
	for _, c := range p.want().VRender {
		want = append(want, c[:]...)
	}
	return normWithin("v_render", floatsOf(p.vRender), want, 1e-4) // as for SSIM's value: cancellation in flat windows
}

// checkFormats requires that both formats of one 8-bit photo give the same values to 1e-6. The photo is opaque, as
// 8-bit targets are.
func (p *photo) checkFormats(grad bool) error {
	p.opaque()
	if err := p.run(); err != nil {
		return err
	}
	partials, vRender := floatsOf(p.partials), floatsOf(p.vRender)
	p.floats = true
	if err := p.run(); err != nil {
		return err
	}
	if grad {
		// Of gradients of size 1 / (3 pixels).
		return closeTo("v_render", floatsOf(p.vRender), vRender, 1e-6/float64(3*p.width*p.height), 1e-4)
	}
	return closeTo("partials", floatsOf(p.partials), partials, 768*1e-6, 0)
}

// checkPerfect compares a picture with itself.
func checkPerfect(t *trial, grad bool) error {
	p := t.photo(40, 30, false)
	p.opaque()
	for i := range p.render {
		copy(p.render[i][:3], p.target[3*i:3*i+3])
	}
	p.floats = true // an 8-bit photo may differ from the picture by a rounding, whose sign is L1's gradient
	if err := p.run(); err != nil {
		return err
	}
	if !grad {
		return p.checkLoss()
	}
	for i, v := range floatsOf(p.vRender) {
		// L1's part is exactly 0; SSIM's is what cancellation leaves of it.
		if !(math.Abs(float64(v)) <= 1e-3/float64(3*p.width*p.height)) {
			return fmt.Errorf("binding v_render: [%d]: got %g, want 0", i, v)
		}
	}
	return nil
}
