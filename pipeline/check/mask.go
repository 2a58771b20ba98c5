package check

import (
	"fmt"
	"math"
)

// maskCases are photos of which a part counts, and photos whose alpha is compared.
func maskCases() []Case {
	sizes := [][2]int{{1, 1}, {10, 30}, {17, 33}, {50, 40}}
	outliers := func(check func(*photo) error) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return each([]int{0, 1}, func(level int) error {
					p := t.photo(s[0]<<level, s[1]<<level, level > 0).shrunk(level).masked(0.9)
					p.robust = true
					return p.then(check)
				})
			})
		}
	}
	table := func(same bool, check func(*photo) error) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return each([]float64{0, 0.3, 0.95, 1}, func(share float64) error {
					return t.photo(s[0], s[1], same).masked(share).then(check)
				})
			})
		}
	}
	return []Case{
		newCase("loss", "masks, windows inside", table(false, (*photo).checkMasked)),
		newCase("loss", "masks, windows beyond the border", table(true, (*photo).checkMasked)),
		newCase("loss", "a full mask, and none where photos may have one",
			func(t *trial) error { return checkFullMask(t, false) }),
		newCase("loss", "alpha without a mask",
			func(t *trial) error { return t.alphaPhoto().then((*photo).checkMasked) }),
		newCase("loss", "packed photos",
			func(t *trial) error { return each(sizes, func(s [2]int) error { return checkPacked(t, s, 0) }) }),
		newCase("loss", "outliers", outliers((*photo).checkMasked)),
		newCase("loss_grad", "outliers", outliers((*photo).checkMaskedGrad)),
		newCase("loss_grad", "masks, windows inside", table(false, (*photo).checkMaskedGrad)),
		newCase("loss_grad", "masks, windows beyond the border", table(true, (*photo).checkMaskedGrad)),
		newCase("loss_grad", "a full mask, and none where photos may have one",
			func(t *trial) error { return checkFullMask(t, true) }),
		newCase("loss_grad", "alpha without a mask",
			func(t *trial) error { return t.alphaPhoto().then((*photo).checkMaskedGrad) }),
	}
}

// masked gives p a random mask with share of its texels, and an alpha loss. What does not count holds numbers that
// would show.
func (p *photo) masked(share float64) *photo {
	n := p.texelWidth * p.texelHeight
	p.mask, p.alphaLoss = make([]uint32, (n+31)/32), 0.5
	for i := range n {
		if p.t.Float64() < share {
			p.mask[i/32] |= 1 << (i % 32)
		}
	}
	for i := range p.render {
		if !p.counts(i) {
			p.render[i] = [4]float32{1e3, -1e3, float32(math.Inf(1)), 7}
		}
	}
	return p
}

// alphaPhoto is a photo without mask whose alpha is compared.
func (t *trial) alphaPhoto() *photo {
	p := t.photo(50, 40, false)
	p.alphaLoss = 2
	return p
}

// counts reports whether pixel i counts: all of its texels do.
func (p *photo) counts(i int) bool {
	side := 1 << p.level
	for k := range side * side {
		texel := (i/p.width*side+k/side)*p.texelWidth + i%p.width*side + k%side
		if p.mask != nil && p.mask[texel/32]>>(texel%32)&1 == 0 {
			return false
		}
	}
	return true
}

// checkMasked compares the sums, and the numbers of pixels and windows that count, which are exact.
func (p *photo) checkMasked() error {
	var pixels, windows, alpha float64
	for _, c := range p.counted {
		pixels, windows, alpha = pixels+float64(c[0]), windows+float64(c[1]), alpha+float64(c[2])
	}
	want := p.want()
	if int(pixels) != want.Counted || int(windows) != want.Windows {
		return fmt.Errorf("binding counted: %g pixels and %g windows, want %d and %d", pixels, windows, want.Counted,
			want.Windows)
	}
	mean := float32(alpha / math.Max(1, pixels))
	return first(closeTo("counted", []float32{mean}, []float64{want.Alpha}, 1e-6, 1e-6), p.checkLoss())
}

// checkMaskedGrad requires exact zeros where pixels do not count.
func (p *photo) checkMaskedGrad() error {
	for i, v := range p.vRender {
		if !p.counts(i) && v != [4]float32{} {
			return fmt.Errorf("binding v_render: [%d]: got %v for a pixel that does not count", i, v)
		}
	}
	want := p.want().VRender
	var colours, alphas []float32
	var wantColours, wantAlphas []float64
	for i, v := range p.vRender {
		colours, alphas = append(colours, v[:3]...), append(alphas, v[3])
		wantColours, wantAlphas = append(wantColours, want[i][:3]...), append(wantAlphas, want[i][3])
	}
	return first(normWithin("v_render", colours, wantColours, 1e-4),
		closeTo("v_render (alpha)", alphas, wantAlphas, 0, 1e-6))
}

// checkFullMask requires what the variant without masks gives of the variant with them, for a photo without mask and
// for one whose mask holds every pixel.
func checkFullMask(t *trial, grad bool) error {
	p := t.photo(50, 40, true)
	if err := p.run(); err != nil {
		return err
	}
	partials, vRender := floatsOf(p.partials), floatsOf(p.vRender)
	return each([]int{0, (p.width*p.height + 31) / 32}, func(words int) error {
		p.maskable, p.mask = true, nil
		if words > 0 {
			p.mask = make([]uint32, words)
			for i := range p.mask {
				p.mask[i] = math.MaxUint32
			}
		}
		if err := p.run(); err != nil {
			return err
		}
		if grad {
			return closeTo("v_render", floatsOf(p.vRender), vRender, 1e-6/float64(3*p.width*p.height), 1e-4)
		}
		// compilers may contract the variants in their own ways
		return closeTo("partials", floatsOf(p.partials), partials, 768*3e-7, 1e-6)
	})
}

// packedWords returns the words of RGB8 pixels.
func packedWords(rgba []uint8) []uint32 {
	words := make([]uint32, (3*len(rgba)/4+3)/4)
	at := 0
	for i, b := range rgba {
		if i%4 < 3 {
			words[at/4] |= uint32(b) << (8 * (at % 4))
			at++
		}
	}
	return words
}

// checkPacked requires that an opaque photo gives the same bytes in four bytes a texel and in three, with a mask and
// without, with the alpha compared; and what the variant for photos in four bytes alone gives.
func checkPacked(t *trial, size [2]int, level int) error {
	for _, share := range []float64{1, 0.9} {
		p := t.photo(size[0], size[1], false).shrunk(level)
		p.opaque()
		if p.alphaLoss = 0.5; share < 1 {
			p = p.masked(share)
		}
		if err := p.run(); err != nil {
			return err
		}
		plain := *p
		p.packable = true
		if err := p.run(); err != nil {
			return err
		}
		wide := *p
		p.packed = true
		if err := p.run(); err != nil {
			return err
		}
		// Compilers may contract the variants in their own ways.
		err := first(sameBytes("partials", floatsOf(p.partials), floatsOf(wide.partials)),
			sameBytes("counted", floatsOf(p.counted), floatsOf(wide.counted)),
			sameBytes("v_render", floatsOf(p.vRender), floatsOf(wide.vRender)),
			closeTo("partials", floatsOf(p.partials), floatsOf(plain.partials), 768*3e-7, 1e-6),
			closeTo("counted", floatsOf(p.counted), floatsOf(plain.counted), 0, 1e-6),
			closeTo("v_render", floatsOf(p.vRender), floatsOf(plain.vRender), 1e-6/float64(3*p.width*p.height), 1e-4))
		if err != nil {
			return fmt.Errorf("%dx%d, level %d, a share of %g: %w", size[0], size[1], level, share, err)
		}
	}
	return nil
}
