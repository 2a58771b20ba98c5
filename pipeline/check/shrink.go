package check

// shrinkCases are photos that are larger than the rendering they are compared with.
func shrinkCases() []Case {
	// Of texels: sides that are no multiples, a single pixel, more than a tile.
	sizes := [][2]int{{7, 9}, {23, 61}, {64, 48}, {83, 101}, {150, 131}}
	table := func(change func(*photo), check func(*photo) error) func(t *trial) error {
		return func(t *trial) error {
			return each([]int{1, 2, 4}, func(level int) error {
				sizes := sizes
				if level == 4 {
					sizes = [][2]int{{16, 16}, {283, 271}} // no pixel of the others is left
				}
				return each(sizes, func(s [2]int) error {
					p := t.photo(s[0], s[1], level == 1).shrunk(level)
					change(p)
					return p.then(check)
				})
			})
		}
	}
	plain := func(*photo) {}
	alpha := func(p *photo) { p.alphaLoss = 2 }
	masks := func(p *photo) { p.masked(0.93) }
	return []Case{
		newCase("loss", "smaller than the photo", table(plain, (*photo).checkLoss)),
		newCase("loss", "smaller than the photo, alpha", table(alpha, (*photo).checkMasked)),
		newCase("loss", "smaller than the photo, masks", table(masks, (*photo).checkMasked)),
		newCase("loss", "smaller than the photo, packed", func(t *trial) error {
			return each([]int{1, 2},
				func(level int) error { return each(sizes, func(s [2]int) error { return checkPacked(t, s, level) }) })
		}),
		newCase("loss", "of the photo's size where others are smaller",
			func(t *trial) error { return checkUnshrunk(t, false) }),
		newCase("loss_grad", "smaller than the photo", table(plain, (*photo).checkGrad)),
		newCase("loss_grad", "smaller than the photo, alpha", table(alpha, (*photo).checkMaskedGrad)),
		newCase("loss_grad", "smaller than the photo, masks", table(masks, (*photo).checkMaskedGrad)),
		newCase("loss_grad", "of the photo's size where others are smaller",
			func(t *trial) error { return checkUnshrunk(t, true) }),
	}
}

// shrunk makes p a photo that is compared at 2^-level of its width and height.
func (p *photo) shrunk(level int) *photo {
	p.level, p.width, p.height = level, p.texelWidth>>level, p.texelHeight>>level
	p.render = p.render[:p.width*p.height]
	p.decode()
	return p
}

// checkUnshrunk requires of the variant for smaller views, where the view is not smaller, what the one without gives:
// as long as masks are read, too.
func checkUnshrunk(t *trial, grad bool) error {
	return each([]float64{1, 0.5}, func(share float64) error {
		p := t.photo(50, 40, true)
		if share < 1 {
			p.masked(share)
		}
		if err := p.run(); err != nil {
			return err
		}
		partials, counted, vRender := floatsOf(p.partials), p.counted, floatsOf(p.vRender)
		p.shrinkable = true
		if err := p.run(); err != nil {
			return err
		}
		if grad {
			return closeTo("v_render", floatsOf(p.vRender), vRender, 1e-6/float64(3*p.width*p.height), 1e-4)
		}
		// Compilers may contract the variants in their own ways.
		if share < 1 {
			if err := closeTo("counted", floatsOf(p.counted), floatsOf(counted), 0, 1e-6); err != nil {
				return err
			}
		}
		return closeTo("partials", floatsOf(p.partials), partials, 768*3e-7, 1e-6)
	})
}
