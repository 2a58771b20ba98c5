package check

import (
	"math"
	"slices"
)

// maskCases are photos of which a part counts, and photos whose alpha is compared.
func maskCases() []Case {
	sizes := [][2]int{{1, 1}, {10, 30}, {17, 33}, {50, 40}}
	robust := func(check func(*photo)) func(t *trial) {
		return over(sizes, func(t *trial, s [2]int) {
			eachOf([]int{0, 1}, func(level int) {
				p := newPhoto(t, s[0]<<level, s[1]<<level, level > 0).shrunk(level).masked(0.9)
				p.robust = true
				p.then(check)
			})
		})
	}
	windows := func(same bool) photoCheck {
		return func(check func(*photo)) func(t *trial) {
			return over(sizes, func(t *trial, s [2]int) {
				eachOf([]float64{0, 0.3, 0.95, 1},
					func(share float64) { newPhoto(t, s[0], s[1], same).masked(share).then(check) })
			})
		}
	}
	alpha := func(check func(*photo)) func(t *trial) {
		return func(t *trial) {
			p := newPhoto(t, 50, 40, false)
			p.alphaLoss = 2
			p.then(check)
		}
	}
	const full = "a full mask, and none where photos may have one"
	return slices.Concat(maskedPair("masks, windows inside", windows(false)),
		maskedPair("masks, windows beyond the border", windows(true)), maskedPair("alpha without a mask", alpha),
		maskedPair("outliers", robust),
		lossPair(full, full, checkFullMask, func(p *photo) {
			p.before.counted = p.counted // the variant without masks counts nothing
			p.likeLoss()
		}, (*photo).likeGrad),
		[]Case{newCase("loss", "packed photos", over(sizes, func(t *trial, s [2]int) { checkPacked(t, s, 0) }))})
}

// shrinkCases are photos that are larger than the rendering they are compared with.
func shrinkCases() []Case {
	// Of texels: sides that are no multiples, a single pixel, more than a tile.
	sizes := [][2]int{{7, 9}, {23, 61}, {64, 48}, {83, 101}, {150, 131}}
	smaller := func(change func(*photo)) photoCheck {
		return func(check func(*photo)) func(t *trial) {
			return over([]int{1, 2, 4}, func(t *trial, level int) {
				sizes := sizes
				if level == 4 {
					sizes = [][2]int{{16, 16}, {283, 271}} // no pixel of the others is left
				}
				eachOf(sizes, func(s [2]int) {
					p := newPhoto(t, s[0], s[1], level == 1).shrunk(level)
					change(p)
					p.then(check)
				})
			})
		}
	}
	const name, same = "smaller than the photo", "of the photo's size where others are smaller"
	return slices.Concat(
		lossPair(name, name, smaller(func(*photo) {}), (*photo).checkLoss, (*photo).checkGrad),
		maskedPair(name+", alpha", smaller(func(p *photo) { p.alphaLoss = 2 })),
		maskedPair(name+", masks", smaller(func(p *photo) { p.masked(0.93) })),
		lossPair(same, same, checkUnshrunk, (*photo).likeLoss, (*photo).likeGrad),
		[]Case{newCase("loss", name+", packed", over([]int{1, 2}, func(t *trial, level int) {
			eachOf(sizes, func(s [2]int) { checkPacked(t, s, level) })
		}))})
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
func (p *photo) checkMasked() {
	var pixels, windows, alpha float64
	for _, c := range p.counted {
		pixels, windows, alpha = pixels+float64(c[0]), windows+float64(c[1]), alpha+float64(c[2])
	}
	want := p.want()
	if int(pixels) != want.Counted || int(windows) != want.Windows {
		failf("binding counted: %g pixels and %g windows, want %d and %d", pixels, windows, want.Counted, want.Windows)
	}
	mean := float32(alpha / math.Max(1, pixels))
	near("counted", []float32{mean}, []float64{want.Alpha}, 1e-6, 1e-6)
	p.checkLoss()
}

// checkMaskedGrad requires exact zeros where pixels do not count.
func (p *photo) checkMaskedGrad() {
	for i, v := range p.vRender {
		if !p.counts(i) && v != [4]float32{} {
			failf("binding v_render: [%d]: got %v for a pixel that does not count", i, v)
		}
	}
	want := p.want().VRender
	var colours, alphas []float32
	var wantColours, wantAlphas []float64
	for i, v := range p.vRender {
		colours, alphas = append(colours, v[:3]...), append(alphas, v[3])
		wantColours, wantAlphas = append(wantColours, want[i][:3]...), append(wantAlphas, want[i][3])
	}
	nearNorm("v_render", colours, wantColours, 1e-4)
	near("v_render (alpha)", alphas, wantAlphas, 0, 1e-6)
}

// checkFullMask wants what the variant without masks gives of the variant with them, for a photo without mask and for
// one whose mask holds every pixel.
func checkFullMask(check func(*photo)) func(t *trial) {
	return func(t *trial) {
		p := newPhoto(t, 50, 40, true)
		p.run((*photo).remember)
		p.maskable = true
		p.run(check)
		p.mask = slices.Repeat([]uint32{math.MaxUint32}, (p.width*p.height+31)/32)
		p.run(check)
	}
}

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

// checkPacked wants an opaque photo to give the same bytes in four bytes a texel and in three, with a mask and without,
// with the alpha compared; and what the variant for photos in four bytes alone gives.
func checkPacked(t *trial, size [2]int, level int) {
	eachOf([]float64{1, 0.9}, func(share float64) {
		p := newPhoto(t, size[0], size[1], false).shrunk(level)
		p.opaque()
		if p.alphaLoss = 0.5; share < 1 {
			p = p.masked(share)
		}
		p.run((*photo).remember)
		p.packable = true
		p.run((*photo).likeLoss)
		p.likeGrad()
		p.remember()
		p.packed = true
		p.run(func(p *photo) {
			same("partials", p.partials, p.before.partials)
			same("counted", p.counted, p.before.counted)
			same("v_render", p.vRender, p.before.vRender)
		})
	})
}

// shrunk makes p a photo that is compared at 2^-level of its width and height.
func (p *photo) shrunk(level int) *photo {
	p.level, p.width, p.height = level, p.texelWidth>>level, p.texelHeight>>level
	p.render = p.render[:p.width*p.height]
	p.decode()
	return p
}

// checkUnshrunk wants of the variant for smaller views, where the view is not smaller, what the one without gives: as
// long as masks are read, too.
func checkUnshrunk(check func(*photo)) func(t *trial) {
	return over([]float64{1, 0.5}, func(t *trial, share float64) {
		p := newPhoto(t, 50, 40, true)
		if share < 1 {
			p.masked(share)
		}
		p.run((*photo).remember)
		p.shrinkable = true
		p.run(check)
	})
}
