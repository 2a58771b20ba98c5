package ref

import "math"

// twin: find_outliers track_errors

// Bins of a history of errors, and one pixel of so many by so many is counted in a step.
const (
	ErrorBins   = 1024
	errorStride = 4
	errorDecay  = 0.95
	squareSide  = 8
	drawRobust  = 10
)

// Outliers says which pixels count beside those that differ little from their photo.
type Outliers[T Real] struct {
	Threshold T        // errors below it are low; 0: all are
	Keep      float32  // share of the others that count anyway
	Mask      []uint32 // as in LossConfig
	Step, ID  uint32   // of the step and its photo, and the seed: what is drawn depends on them
	Seed      [2]uint32
}

// FindOutliers returns which pixels count, as bits like those of a mask, and how many of the pixels that are looked at
// in this step have an error in each bin.
func FindOutliers[T Real](render [][4]T, target []T, width, height int, c *Outliers[T]) (counts, errors []uint32) {
	n := width * height
	counts, errors = make([]uint32, (n+31)/32), make([]uint32, ErrorBins)
	g := knownPixels{width: width, height: height, mask: c.Mask}
	low, near := make([]bool, n), make([]bool, n)
	for p, e := range OutlierErrors(render, target, width, height, c.Mask) {
		low[p] = g.has(p) && (c.Threshold == 0 || !(e >= c.Threshold))
		x, y := uint32(p%width)+c.Step, uint32(p/width)+c.Step/errorStride
		if g.has(p) && x%errorStride == 0 && y%errorStride == 0 {
			errors[ErrorBin(float64(e))]++
		}
	}
	for p := range n {
		all, some := g.count(low, p%width-1, p/width-1, 3)
		near[p] = g.has(p) && 2*some > all
	}
	for p := range n {
		x, y := p%width, p/width
		all, some := g.count(near, x&^(squareSide-1)-squareSide/2, y&^(squareSide-1)-squareSide/2, 2*squareSide)
		ok := low[p] || near[p] || 5*some > 3*all
		if !ok && c.Keep > 0 {
			r := Philox([4]uint32{uint32(p), c.Step, drawRobust, c.ID}, c.Seed)[0]
			ok = float32(r>>8)*(1.0/(1<<24)) < c.Keep
		}
		if g.has(p) && ok {
			counts[p/32] |= 1 << (p % 32)
		}
	}
	return counts, errors
}

// OutlierErrors returns how far the rendering x [P] is from the photo y [P*3] around each pixel that the mask leaves, 0
// at others: for each channel the absolute value of the mean of x - y over those of 3x3 pixels that it leaves; and of
// these the mean.
func OutlierErrors[T Real](render [][4]T, target []T, width, height int, mask []uint32) []T {
	g, errors := knownPixels{width: width, height: height, mask: mask}, make([]T, width*height)
	for p := range errors {
		if !g.has(p) {
			continue
		}
		var sum [3]T
		n := T(0)
		g.each(p%width-1, p/width-1, 3, func(q int) {
			n++
			for ch := range sum {
				sum[ch] += render[q][ch] - target[3*q+ch]
			}
		})
		errors[p] = (abs(sum[0]) + abs(sum[1]) + abs(sum[2])) / (3 * n)
	}
	return errors
}

// ErrorBin returns the bin of an error: they are equally wide in its root.
func ErrorBin(e float64) int { return min(int(min(math.Sqrt(e), 1)*ErrorBins), ErrorBins-1) }

// knownPixels are the pixels of a picture that a mask leaves.
type knownPixels struct {
	width, height int
	mask          []uint32 // nil: all
}

func (g *knownPixels) has(p int) bool { return g.mask == nil || g.mask[p/32]>>(p%32)&1 == 1 }

// each calls f for those of a square.
func (g *knownPixels) each(x, y, side int, f func(p int)) {
	for j := max(0, y); j < min(g.height, y+side); j++ {
		for i := max(0, x); i < min(g.width, x+side); i++ {
			if p := j*g.width + i; g.has(p) {
				f(p)
			}
		}
	}
}

// count returns how many pixels of a square are known, and of how many of these a flag is set.
func (g *knownPixels) count(flags []bool, x, y, side int) (known, set int) {
	g.each(x, y, side, func(p int) {
		known++
		if flags[p] {
			set++
		}
	})
	return known, set
}

// TrackErrors takes a step's errors into their history, and returns the threshold below which share of them is; 0 where
// all are, or nothing is known.
func TrackErrors[T Real](history []T, errors []uint32, share T) (threshold T) {
	var total T
	for i, n := range errors {
		history[i] = errorDecay*history[i] + T(n)
		total += history[i]
	}
	want, below := share*total, T(0)
	for i, n := range history {
		if below <= want && want < below+n {
			root := (T(i) + (want-below)/n) / ErrorBins
			return root * root
		}
		below += n
	}
	return 0
}
