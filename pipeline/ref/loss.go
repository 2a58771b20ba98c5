package ref

import "math"

// twin: loss loss_grad

// SSIM (Wang et al. 2004) with an 11x11 Gaussian window of sigma 1.5 on images of range [0, 1].
const (
	SSIMRadius = 5
	ssimSigma  = 1.5
	ssimC1     = 0.01 * 0.01
	ssimC2     = 0.03 * 0.03
)

// LossConfig says how a rendering is compared with its photo.
type LossConfig[T Real] struct {
	Lambda T    // weight of 1 - SSIM; 1 - Lambda is that of L1
	Huber  T    // below it, differences count by their square in L1 (Huber 1964); 0: none do
	Same   bool // average the windows of all pixels, zero beyond the border; otherwise only windows inside the image
	// Which pixels count: bit i%32 of word i/32 for pixel i; nil: all. A window counts if its middle does; inside it,
	// pixels that do not are 0 in both.
	Mask      []uint32
	AlphaLoss T   // weight of the mean |alpha - photo's alpha|
	Alpha     []T // [P] of the photo; nil: 1
}

// counts reports whether pixel p counts.
func (c *LossConfig[T]) counts(p int) bool { return c.Mask == nil || c.Mask[p/32]>>(p%32)&1 == 1 }

// LossResult is the value of the loss, its parts, and its gradient. The parts are means over what counts; in the loss
// they are sums over what counts, divided by the number of all pixels or windows, so that a pixel weighs the same in
// every photo.
type LossResult[T Real] struct {
	Loss, L1, SSIM T      // L1 with Huber
	MSE            T      // mean squared error of the rendering as it is, unclamped
	Alpha          T      // mean |alpha - photo's alpha|, where it is weighed
	Counted        int    // pixels that count
	Windows        int    // SSIM windows that count, of one channel
	VRender        [][4]T // [P] dL/d(r, g, b, alpha); the last is 0 without alpha loss
}

// Loss is (1 - lambda) mean|x - y| + lambda (1 - mean SSIM) of the unclamped rendering x [P] and the photo y [P*3].
// Where no window lies inside the image, SSIM is 0 and has no gradient. The gradient of |x - y| is 0 where x = y.
// With a threshold h in Huber, |x - y| becomes (x - y)² / 2h below h and |x - y| - h/2 from h on, whose slope is 1.
func Loss[T Real](render [][4]T, target []T, width, height int, c LossConfig[T]) *LossResult[T] {
	n := width * height
	r := &LossResult[T]{VRender: make([][4]T, n)}
	var l1, mse, ssim float64
	s := ssimPlane[T]{width: width, height: height, same: c.Same, weights: ssimWeights[T](), config: &c}
	x, y := make([]T, n), make([]T, n)
	for ch := range 3 {
		for p := range n {
			x[p], y[p] = 0, 0
			if c.counts(p) {
				x[p], y[p] = render[p][ch], target[3*p+ch]
			}
		}
		sum, grad := s.compare(x, y)
		ssim += sum
		for p := range n {
			d := x[p] - y[p]
			value, slope := c.difference(d)
			l1 += float64(value)
			mse += float64(d * d)
			if c.counts(p) {
				r.VRender[p][ch] = (1-c.Lambda)*slope/T(3*n) - c.Lambda*grad[p]/T(s.terms())
			}
		}
	}
	r.countPixels(&s, n)
	values, windows := float64(max(1, 3*r.Counted)), float64(max(1, 3*r.Windows))
	r.L1, r.MSE, r.SSIM = T(l1/values), T(mse/values), T(ssim/windows)
	r.Loss = (1-c.Lambda)*T(l1/float64(max(1, 3*n))) + c.Lambda*T((float64(3*r.Windows)-ssim)/float64(s.terms()))
	if c.Mask == nil && r.Windows == 0 {
		r.Loss += c.Lambda // SSIM is 0
	}
	r.alphaLoss(render, &c)
	return r
}

// difference returns what a difference d of colour adds to the loss, and its slope.
func (c *LossConfig[T]) difference(d T) (value, slope T) {
	if a := abs(d); a < c.Huber {
		return a * a / (2 * c.Huber), d / c.Huber
	}
	return abs(d) - c.Huber/2, sign(d)
}

// countPixels sets the numbers of pixels and windows that count.
func (r *LossResult[T]) countPixels(s *ssimPlane[T], n int) {
	for p := range n {
		if s.config.counts(p) {
			r.Counted++
		}
		if s.counts(p%s.width, p/s.width) {
			r.Windows++
		}
	}
}

// alphaLoss adds the weighted difference in alpha, which is 1 less the rendering's transmittance.
func (r *LossResult[T]) alphaLoss(render [][4]T, c *LossConfig[T]) {
	if c.AlphaLoss == 0 {
		return
	}
	var sum float64
	n := T(len(render))
	for p := range render {
		if !c.counts(p) {
			continue
		}
		d := 1 - render[p][3]
		if c.Alpha == nil {
			d--
		} else {
			d -= c.Alpha[p]
		}
		sum += float64(abs(d))
		r.VRender[p][3] = c.AlphaLoss * sign(d) / n
	}
	r.Alpha = T(sum / float64(max(1, r.Counted)))
	r.Loss += c.AlphaLoss * T(sum) / n
}

// sign is 0 at 0.
func sign[T Real](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// ssimWeights returns the window along one axis, normalised.
func ssimWeights[T Real]() (w [2*SSIMRadius + 1]T) {
	var sum float64
	g := func(k int) float64 {
		return math.Exp(-float64((k-SSIMRadius)*(k-SSIMRadius)) / (2 * ssimSigma * ssimSigma))
	}
	for k := range w {
		sum += g(k)
	}
	for k := range w {
		w[k] = T(g(k) / sum)
	}
	return w
}

type ssimPlane[T Real] struct {
	width, height int
	same          bool
	weights       [2*SSIMRadius + 1]T
	config        *LossConfig[T]
}

// terms is the number of windows and channels that the mean runs over, at least 1.
func (s *ssimPlane[T]) terms() int {
	w, h := s.width, s.height
	if !s.same {
		w, h = max(0, w-2*SSIMRadius), max(0, h-2*SSIMRadius)
	}
	return max(1, 3*w*h)
}

// counts reports whether the window around (x, y) is averaged.
func (s *ssimPlane[T]) counts(x, y int) bool {
	if !s.config.counts(y*s.width + x) {
		return false
	}
	return s.same || x >= SSIMRadius && y >= SSIMRadius && x < s.width-SSIMRadius && y < s.height-SSIMRadius
}

// blur convolves a plane with the window, zero beyond the border.
func (s *ssimPlane[T]) blur(in []T) []T {
	rows, out := make([]T, len(in)), make([]T, len(in))
	for y := range s.height {
		for x := range s.width {
			for k := max(0, SSIMRadius-x); k < min(len(s.weights), s.width-x+SSIMRadius); k++ {
				rows[y*s.width+x] += s.weights[k] * in[y*s.width+x+k-SSIMRadius]
			}
		}
	}
	for y := range s.height {
		for k := max(0, SSIMRadius-y); k < min(len(s.weights), s.height-y+SSIMRadius); k++ {
			from := (y + k - SSIMRadius) * s.width
			for x := range s.width {
				out[y*s.width+x] += s.weights[k] * rows[from+x]
			}
		}
	}
	return out
}

func product[T Real](a, b []T) []T {
	c := make([]T, len(a))
	for i := range c {
		c[i] = a[i] * b[i]
	}
	return c
}

// compare returns the sum of SSIM over the windows that count and its gradient by x.
func (s *ssimPlane[T]) compare(x, y []T) (sum float64, grad []T) {
	muX, muY := s.blur(x), s.blur(y)
	xx, yy, xy := s.blur(product(x, x)), s.blur(product(y, y)), s.blur(product(x, y))
	vMu, vXX, vXY := make([]T, len(x)), make([]T, len(x)), make([]T, len(x))
	for p := range x {
		if !s.counts(p%s.width, p/s.width) {
			continue
		}
		mx, my := muX[p], muY[p]
		a1, a2 := 2*mx*my+ssimC1, 2*(xy[p]-mx*my)+ssimC2
		b1, b2 := mx*mx+my*my+ssimC1, (xx[p]-mx*mx)+(yy[p]-my*my)+ssimC2
		ssim := a1 * a2 / (b1 * b2)
		sum += float64(ssim)
		// Partial derivatives by the blurred quantities, the variances depending on mx too.
		vXX[p] = -ssim / b2
		vXY[p] = 2 * a1 / (b1 * b2)
		vMu[p] = 2*my*a2/(b1*b2) - 2*mx*ssim/b1 - 2*mx*vXX[p] - my*vXY[p]
	}
	// The window is symmetric: the transposed blur is the blur.
	gMu, gXX, gXY := s.blur(vMu), s.blur(vXX), s.blur(vXY)
	for p := range gMu {
		gMu[p] += 2*x[p]*gXX[p] + y[p]*gXY[p]
	}
	return sum, gMu
}

// Shrink returns a photo with the given channels at 2^-level of its width and height, rounded down: the means of its
// texels.
func Shrink[T Real](photo []T, width, height, channels, level int) []T {
	w, h, side := width>>level, height>>level, 1<<level
	small := make([]T, channels*w*h)
	for i := range small {
		x, y, sum := i/channels%w, i/channels/w, T(0)
		for dy := range side {
			for dx := range side {
				sum += photo[channels*((y*side+dy)*width+x*side+dx)+i%channels]
			}
		}
		small[i] = sum / T(side*side)
	}
	return small
}

// ShrinkMask returns the mask of a photo that Shrink makes of one of width x height: pixels count whose texels all do.
// The mask nil stays.
func ShrinkMask(mask []uint32, width, height, level int) []uint32 {
	if mask == nil {
		return nil
	}
	bits := make([]float32, width*height)
	for i := range bits {
		bits[i] = float32(mask[i/32] >> (i % 32) & 1)
	}
	small := make([]uint32, ((width>>level)*(height>>level)+31)/32)
	for i, share := range Shrink(bits, width, height, 1, level) {
		if share == 1 {
			small[i/32] |= 1 << (i % 32)
		}
	}
	return small
}

// TargetFromRGBA8 decodes a photo, 4 bytes a pixel with straight alpha, over the background. [P*3]
func TargetFromRGBA8[T Real](pix []uint8, background [3]T) []T {
	target := make([]T, len(pix)/4*3)
	for p := range len(pix) / 4 {
		a := T(pix[4*p+3]) / 255
		for ch, bg := range background {
			c := T(pix[4*p+ch]) / 255
			if pix[4*p+3] != 255 {
				c = c*a + bg*(1-a)
			}
			target[3*p+ch] = c
		}
	}
	return target
}
