package jpeg

// The blocks of progressive frames: each scan adds a band of coefficients, or one bit to them. Coefficients stay as
// stored, neither in rows nor dequantised.

func (s *jpegScan) firstDC(r *entropyData, c *jpegComponent, b *[64]int16) error {
	size, ok := r.symbol(c.dc)
	if !ok {
		return errCode
	}
	c.last += r.value(uint(size))
	b[0] = int16(c.last << s.shift)
	return nil
}

func (s *jpegScan) refineDC(r *entropyData, _ *jpegComponent, b *[64]int16) error {
	b[0] |= int16(r.take(1) << s.shift)
	return nil
}

func (s *jpegScan) firstAC(r *entropyData, c *jpegComponent, b *[64]int16) error {
	if s.skip > 0 {
		s.skip--
		return nil
	}
	for k := s.first; k <= s.last; k++ {
		symbol, ok := r.symbol(c.ac)
		if !ok {
			return errCode
		}
		run, size := int(symbol>>4), uint(symbol&15)
		if size == 0 && run < 15 {
			s.skip = 1<<run + int(r.take(uint(run))) - 1
			return nil
		}
		k += run
		if size == 0 {
			continue // 16 zeros
		}
		if k > 63 {
			return errRun
		}
		b[k] = int16(r.value(size) << s.shift)
	}
	return nil
}

func (s *jpegScan) refineAC(r *entropyData, c *jpegComponent, b *[64]int16) error {
	k := s.first
	for ; s.skip == 0 && k <= s.last; k++ {
		symbol, ok := r.symbol(c.ac)
		if !ok {
			return errCode
		}
		run, size := int(symbol>>4), symbol&15
		fresh := int16(0) // the coefficient behind the run
		switch {
		case size > 0:
			if fresh = int16(-1) << s.shift; r.take(1) == 1 {
				fresh = 1 << s.shift
			}
		case run < 15:
			s.skip = 1<<run + int(r.take(uint(run)))
		}
		if s.skip > 0 {
			break
		}
		if k = s.refine(r, b, k, run); k > s.last {
			if fresh != 0 {
				return errRun
			}
			break
		}
		if fresh != 0 {
			b[k] = fresh
		}
	}
	if s.skip > 0 {
		s.refine(r, b, k, 64)
		s.skip--
	}
	return nil
}

// refine adds a bit to the coefficients from the k-th on that are not zero, up to the zero behind run others, and
// returns the place of that.
func (s *jpegScan) refine(r *entropyData, b *[64]int16, k, run int) int {
	for ; k <= s.last; k++ {
		v := b[k]
		if v == 0 {
			if run == 0 {
				break
			}
			run--
			continue
		}
		if r.take(1) == 0 || v>>s.shift&1 != 0 {
			continue
		}
		if v > 0 {
			b[k] += 1 << s.shift
		} else {
			b[k] -= 1 << s.shift
		}
	}
	return k
}

// transform turns the coefficients of a progressive frame into samples.
func (c *jpegComponent) transform() {
	stride := 8 * c.wide
	for i := range c.coefs {
		coefs := &c.coefs[i]
		last := 63
		for last > 0 && coefs[last] == 0 {
			last--
		}
		var block [64]int16
		for k := range last + 1 {
			block[zigzag[k]] = coefs[k] * c.quant[k]
		}
		idct(c.pix[8*(i/c.wide*stride+i%c.wide):], stride, &block, last)
	}
	c.coefs = nil
}
