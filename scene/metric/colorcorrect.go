package metric

import (
	"fmt"
	"math"

	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// A photo's exposure and white balance are no part of a scene's geometry: cc_ metrics are taken after the rendering's
// colours have been brought to its photo's by a map fitted to the pair. Both maps are those that gsplat's trainer
// offers, under its names; the quadratic one is from RawNeRF (Mildenhall et al. 2022) and multinerf.

// Ways of fitting colours, for CorrectColors.
const (
	// ColorAffine is gain and offset for each channel: photo -> rendering is fitted, and its inverse applied to the
	// rendering. Fitted this way round, noise of the rendering does not flatten its contrast.
	ColorAffine = "affine"
	// ColorQuadratic is, for each channel, a polynomial of second degree in all three, fitted over pixels that are
	// saturated neither before nor after.
	ColorQuadratic = "quadratic"
)

// CorrectColors returns the rendering [H*W*3], with values in 0..1, after the colour map that brings it closest to the
// photo over the pixels that count in mask, clamped to 0..1. All pixels are mapped.
func CorrectColors(how string, photo scene.Image, render []float32, mask []uint32) ([]float32, error) {
	n := photo.Width * photo.Height
	if n <= 0 || len(photo.Pix) != 4*n || len(render) != 3*n {
		return nil, fmt.Errorf("correct colours: photo of %dx%d with %d bytes, render with %d values: %w", photo.Width,
			photo.Height, len(photo.Pix), len(render), scene.ErrShape)
	}
	if err := checkMask(mask, n); err != nil {
		return nil, err
	}
	if countPixels(mask, 0, n) == 0 {
		return nil, fmt.Errorf("correct colours: %w", ErrUncounted)
	}
	switch how {
	case ColorAffine:
		return correctAffine(photo, render, mask), nil
	case ColorQuadratic:
		return correctQuadratic(photo, render, mask), nil
	}
	return nil, fmt.Errorf("correct colours: %q is neither %s nor %s", how, ColorAffine, ColorQuadratic)
}

// colorBlock is how many pixels are summed up on one core. The order of additions depends on the number of pixels
// alone.
const colorBlock = 1 << 14

// sumPixels adds up what each pixel that counts adds to a sum of N numbers.
func sumPixels[N any](pixels int, mask []uint32, add func(sum *N, pixel int), join func(sum, part *N)) (total N) {
	parts := make([]N, (pixels+colorBlock-1)/colorBlock)
	parallel.For(len(parts), func(b int) {
		var sum N
		for i := b * colorBlock; i < min((b+1)*colorBlock, pixels); i++ {
			if photo.Counts(mask, i) {
				add(&sum, i)
			}
		}
		parts[b] = sum
	})
	for i := range parts {
		join(&total, &parts[i])
	}
	return total
}

// Bounds that gsplat has for what it divides by.
const (
	leastVariance = 1e-8
	leastGain     = 1e-8
)

// affineSums are the moments of one channel about centres.
type affineSums [3]struct{ n, x, y, xx, xy float64 }

func correctAffine(photo scene.Image, render []float32, mask []uint32) []float32 {
	const centre = 0.5 // of all colours, so that the moments do not cancel
	s := sumPixels(photo.Width*photo.Height, mask, func(s *affineSums, i int) {
		for c := range s {
			x, y := scene.ByteValues[photo.Pix[4*i+c]]-centre, float64(render[3*i+c])-centre
			s[c].n++
			s[c].x += x
			s[c].y += y
			s[c].xx += x * x
			s[c].xy += x * y
		}
	}, func(s, part *affineSums) {
		for c, p := range part {
			s[c].n, s[c].x, s[c].y, s[c].xx, s[c].xy = s[c].n+p.n, s[c].x+p.x, s[c].y+p.y, s[c].xx+p.xx, s[c].xy+p.xy
		}
	})
	var gain, offset [3]float64 // photo -> rendering
	for c, p := range s {
		x, y := p.x/p.n, p.y/p.n
		gain[c] = (p.xy/p.n - x*y) / max(p.xx/p.n-x*x, leastVariance)
		offset[c] = y + centre - gain[c]*(x+centre)
		if math.Abs(gain[c]) < leastGain {
			gain[c] = 1
		}
	}
	out := make([]float32, len(render))
	for i := range out {
		out[i] = float32(min(max((float64(render[i])-offset[i%3])/gain[i%3], 0), 1))
	}
	return out
}

// Constants of multinerf's color_correct.
const (
	quadraticRounds = 5          // fits, each of what the one before made
	saturated       = 0.5 / 255. // as far from 0 or 1 as a value may be and be taken for saturated
)

// nQuadratic is the number of coefficients of a channel: six products, three colours and a constant.
const nQuadratic = 10

// quadraticSums are the normal equations of the three channels. The channels differ in the pixels that are saturated.
type quadraticSums [3]struct {
	a    [nQuadratic][nQuadratic]float64 // lower triangle
	b    [nQuadratic]float64
	used bool // of at least one pixel
}

func unsaturated(v float64) bool { return v >= saturated && v <= 1-saturated }

// terms are the monomials of a colour. They are of the colour less a half: those span the same polynomials and are far
// better conditioned.
func terms(rgb []float32) (t [nQuadratic]float64) {
	r, g, b := float64(rgb[0])-0.5, float64(rgb[1])-0.5, float64(rgb[2])-0.5
	return [nQuadratic]float64{r * r, r * g, r * b, g * g, g * b, b * b, r, g, b, 1}
}

func correctQuadratic(photo scene.Image, render []float32, mask []uint32) []float32 {
	n := photo.Width * photo.Height
	now := make([]float32, len(render))
	copy(now, render)
	for range quadraticRounds {
		s := sumPixels(n, mask, func(s *quadraticSums, i int) {
			t := terms(now[3*i : 3*i+3])
			for c := range s {
				y := scene.ByteValues[photo.Pix[4*i+c]]
				if unsaturated(float64(render[3*i+c])) && unsaturated(float64(now[3*i+c])) && unsaturated(y) {
					s.add(c, &t, y)
				}
			}
		}, (*quadraticSums).join)
		var warp [3][nQuadratic]float64
		for c := range warp {
			warp[c] = solveSymmetric(s[c].a, s[c].b)
		}
		parallel.For((n+colorBlock-1)/colorBlock, func(b int) {
			for i := b * colorBlock; i < min((b+1)*colorBlock, n); i++ {
				t := terms(now[3*i : 3*i+3])
				for c := range 3 {
					if s[c].used { // else every pixel is saturated, and there is nothing to go by
						now[3*i+c] = float32(min(max(warpedColour(&warp[c], &t), 0), 1))
					}
				}
			}
		})
	}
	return now
}

func (s *quadraticSums) add(c int, t *[nQuadratic]float64, y float64) {
	e := &s[c]
	e.used = true
	for i := range t {
		e.b[i] += t[i] * y
		for j := range i + 1 {
			e.a[i][j] += t[i] * t[j]
		}
	}
}

func (s *quadraticSums) join(part *quadraticSums) {
	for c := range s {
		s[c].used = s[c].used || part[c].used
		for i := range s[c].b {
			s[c].b[i] += part[c].b[i]
			for j := range i + 1 {
				s[c].a[i][j] += part[c].a[i][j]
			}
		}
	}
}

// warpedColour is the value of a polynomial at a colour that has these terms.
func warpedColour(coefficients, t *[nQuadratic]float64) (sum float64) {
	for i := range t {
		sum += coefficients[i] * t[i]
	}
	return sum
}

// flatTerm is the share of a term's square that must be left, once what the terms before it say is taken out, for the
// term to be looked at. Gray pictures have equal channels: their terms repeat each other.
const flatTerm = 1e-11

// solveSymmetric solves a x = b for a symmetric, positive semidefinite matrix given by its lower triangle, by
// Cholesky's decomposition with the largest pivot first. Where the matrix is singular, the terms that add nothing get
// the coefficient 0.
func solveSymmetric(a [nQuadratic][nQuadratic]float64, b [nQuadratic]float64) (x [nQuadratic]float64) {
	const n = nQuadratic
	var scale [n]float64
	for i := range n {
		if a[i][i] > 0 {
			scale[i] = 1 / math.Sqrt(a[i][i])
		}
	}
	for i := range n {
		for j := range i + 1 {
			a[i][j] *= scale[i] * scale[j]
			a[j][i] = a[i][j]
		}
		b[i] *= scale[i]
	}
	var order [n]int
	for i := range order {
		order[i] = i
	}
	rank := n
	for k := range n { // eliminate, in place
		best := k
		for i := k + 1; i < n; i++ {
			if a[order[i]][order[i]] > a[order[best]][order[best]] {
				best = i
			}
		}
		order[k], order[best] = order[best], order[k]
		p := order[k]
		if !(a[p][p] > flatTerm) {
			rank = k
			break
		}
		for _, i := range order[k+1:] {
			f := a[i][p] / a[p][p]
			for _, j := range order[k+1:] {
				a[i][j] -= f * a[p][j]
			}
			b[i] -= f * b[p]
		}
	}
	for k := rank - 1; k >= 0; k-- {
		p := order[k]
		sum := b[p]
		for _, j := range order[k+1 : rank] {
			sum -= a[p][j] * x[j]
		}
		x[p] = sum / a[p][p]
	}
	for i := range x {
		x[i] *= scale[i]
	}
	return x
}
