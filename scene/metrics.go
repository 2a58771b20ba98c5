package scene

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Padding says which windows an SSIM averages over.
type Padding int

const (
	// PaddingValid averages over the pixels whose 11x11 window lies inside the
	// image, as gsplat's loss does.
	PaddingValid Padding = iota
	// PaddingSame averages over every pixel; what a window reaches outside the
	// image counts as zero, as in INRIA's code.
	PaddingSame
)

// String returns "valid" or "same".
func (p Padding) String() string {
	if p == PaddingSame {
		return "same"
	}
	return "valid"
}

// Constants of Wang et al. 2004, "Image Quality Assessment: From Error
// Visibility to Structural Similarity", for values in 0..1.
const (
	ssimWindow = 11
	ssimRadius = ssimWindow / 2
	ssimSigma  = 1.5
	ssimC1     = 0.01 * 0.01
	ssimC2     = 0.03 * 0.03
)

// errShape says that images and the sizes given for them do not agree.
var errShape = errors.New("sizes do not agree")

// errUncounted refuses images of which no pixel counts.
var errUncounted = errors.New("the mask leaves no pixel to compare")

// checkMask says whether a mask is one for so many pixels.
func checkMask(mask []uint32, pixels int) error {
	if mask != nil && len(mask) != (pixels+31)/32 {
		return fmt.Errorf("scene: compare images: a mask of %d words for %d pixels: %w", len(mask), pixels, errShape)
	}
	return nil
}

// MSE returns the mean squared difference of two RGB images [pixels*3] over
// the pixels that count; mask is as in Image.Mask, nil for all.
// The sum is taken in float64 in a fixed order.
func MSE(a, b []float32, mask []uint32) (float64, error) {
	if len(a) != len(b) || len(a) == 0 {
		return 0, fmt.Errorf("scene: compare images: %d and %d values: %w", len(a), len(b), errShape)
	}
	if err := checkMask(mask, (len(a)+2)/3); err != nil {
		return 0, err
	}
	// One partial sum per block: the order of additions depends on the length
	// alone, not on the number of workers.
	const block = 1 << 14
	n := (len(a) + block - 1) / block
	sums, used := make([]float64, n), make([]int, n)
	parallel(n, func(i int) {
		hi := min((i+1)*block, len(a))
		var sum float64
		for j := i * block; j < hi; j++ {
			if !counts(mask, j/3) {
				continue
			}
			d := float64(a[j]) - float64(b[j])
			sum += d * d
			used[i]++
		}
		sums[i] = sum
	})
	total := 0
	for _, u := range used {
		total += u
	}
	if total == 0 {
		return 0, fmt.Errorf("scene: compare images: %w", errUncounted)
	}
	return sumOf(sums) / float64(total), nil
}

// PSNR returns 10*log10(1/MSE) in decibels of two RGB images with values in 0..1 over the pixels that count.
// Equal images give +Inf. Nothing is clamped.
func PSNR(a, b []float32, mask []uint32) (float64, error) {
	mse, err := MSE(a, b, mask)
	if err != nil {
		return 0, err
	}
	return -10 * math.Log10(mse), nil
}

// SSIM returns the mean structural similarity of two RGB images [height*width*3]
// with values in 0..1: 11x11 Gaussian window of sigma 1.5, per channel, moments
// in float64. Valid padding needs at least 11x11 pixels. With a mask, as in
// Image.Mask, pixels that do not count are zero in both images, and a window
// counts when its middle does.
func SSIM(a, b []float32, width, height int, padding Padding, mask []uint32) (float64, error) {
	if width <= 0 || height <= 0 || len(a) != 3*width*height || len(b) != len(a) {
		return 0, fmt.Errorf("scene: compare images: %d and %d values for %dx%d pixels: %w", len(a), len(b), width, height, errShape)
	}
	if err := checkMask(mask, width*height); err != nil {
		return 0, err
	}
	margin := 0
	if padding == PaddingValid {
		margin = ssimRadius
		if width < ssimWindow || height < ssimWindow {
			return 0, fmt.Errorf("scene: compare images: %dx%d pixels hold no %dx%d window: %w", width, height, ssimWindow, ssimWindow, errShape)
		}
	}
	rows := height - 2*margin
	sums, used := make([]float64, rows), make([]int, rows)
	window := ssimKernel()
	a, b = masked(a, mask), masked(b, mask)
	parallel(rows, func(i int) {
		r := ssimRow{a: a, b: b, width: width, height: height, window: &window, mask: mask}
		sums[i], used[i] = r.sum(i+margin, margin)
	})
	windows := 0
	for _, u := range used {
		windows += u
	}
	if windows == 0 {
		return 0, fmt.Errorf("scene: compare images: %w", errUncounted)
	}
	return sumOf(sums) / float64(3*windows), nil
}

// masked returns an RGB image with zeros where pixels do not count.
func masked(rgb []float32, mask []uint32) []float32 {
	if mask == nil {
		return rgb
	}
	out := make([]float32, len(rgb))
	for i, v := range rgb {
		if counts(mask, i/3) {
			out[i] = v
		}
	}
	return out
}

// ssimKernel returns the normalised one-dimensional window.
func ssimKernel() [ssimWindow]float64 {
	var w [ssimWindow]float64
	var sum float64
	for i := range w {
		d := float64(i - ssimRadius)
		w[i] = math.Exp(-d * d / (2 * ssimSigma * ssimSigma))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// ssimRow computes rows of the SSIM map of one pair of images.
type ssimRow struct {
	a, b          []float32
	width, height int
	window        *[ssimWindow]float64
	mask          []uint32 // as in Image.Mask
}

// moments are the window's means of a, b, a*a, b*b and a*b.
type moments [5]float64

// sum returns the sum of the SSIM map over row y, all channels, columns
// margin..width-margin that count, and the number of these columns.
func (r *ssimRow) sum(y, margin int) (total float64, n int) {
	column := r.vertical(y)
	for x := margin; x < r.width-margin; x++ {
		if !counts(r.mask, y*r.width+x) {
			continue
		}
		n++
		lo, hi := max(0, x-ssimRadius), min(r.width-1, x+ssimRadius)
		for c := range 3 {
			var m moments
			for t := lo; t <= hi; t++ {
				w, v := r.window[t-x+ssimRadius], &column[3*t+c]
				for k := range m {
					m[k] += w * v[k]
				}
			}
			total += m.ssim()
		}
	}
	return total, n
}

// vertical filters along columns: one set of moments per column and channel.
func (r *ssimRow) vertical(y int) []moments {
	out := make([]moments, 3*r.width)
	lo, hi := max(0, y-ssimRadius), min(r.height-1, y+ssimRadius)
	for t := lo; t <= hi; t++ {
		w := r.window[t-y+ssimRadius]
		rowA := r.a[3*t*r.width : 3*(t+1)*r.width]
		rowB := r.b[3*t*r.width : 3*(t+1)*r.width]
		for i := range out {
			p, q := float64(rowA[i]), float64(rowB[i])
			m := &out[i]
			m[0] += w * p
			m[1] += w * q
			m[2] += w * p * p
			m[3] += w * q * q
			m[4] += w * p * q
		}
	}
	return out
}

// ssim is equation 13 of Wang et al. 2004.
func (m *moments) ssim() float64 {
	varA := m[2] - m[0]*m[0]
	varB := m[3] - m[1]*m[1]
	cov := m[4] - m[0]*m[1]
	return (2*m[0]*m[1] + ssimC1) * (2*cov + ssimC2) /
		((m[0]*m[0] + m[1]*m[1] + ssimC1) * (varA + varB + ssimC2))
}

func sumOf(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum
}

// parallel calls f(0) ... f(n-1) on all cores and returns when all are done.
// f must write to places that belong to its index alone, so that the order of
// calls shows nowhere.
func parallel(n int, f func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
