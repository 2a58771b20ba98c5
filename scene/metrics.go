package scene

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// errShape says that images and the sizes given for them do not agree.
var errShape = errors.New("sizes do not agree")

// ErrUncounted is the cause of an error about images of which no pixel counts.
var ErrUncounted = errors.New("the mask leaves no pixel to compare")

// checkMask says whether a mask is one for so many pixels.
func checkMask(mask []uint32, pixels int) error {
	if mask != nil && len(mask) != (pixels+31)/32 {
		return fmt.Errorf("scene: compare images: a mask of %d words for %d pixels: %w", len(mask), pixels, errShape)
	}
	return nil
}

// colours are those of a picture, of floats [pixels*3] or of a photo's bytes [pixels*4], which stand for a 255th each.
type colours struct {
	rgb  []float32
	rgba []uint8
}

// byteValues are the values of a photo's bytes: single precision, as FloatRGB and the device have them.
var byteValues = func() (v [256]float64) {
	for i := range v {
		v[i] = float64(float32(i) / 255)
	}
	return v
}()

// read fills out [n*3] with the pixels from first on, zeros for those that do not count.
func (c colours) read(out []float64, first int, mask []uint32) {
	if c.rgb != nil {
		for i, v := range c.rgb[3*first:][:len(out)] {
			out[i] = float64(v)
		}
	} else {
		for i, k := 0, 4*first; i+2 < len(out); i, k = i+3, k+4 {
			p := c.rgba[k : k+4]
			out[i], out[i+1], out[i+2] = byteValues[p[0]], byteValues[p[1]], byteValues[p[2]]
		}
	}
	if mask == nil {
		return
	}
	for i := 0; i < len(out); i += 3 {
		if !counts(mask, first+i/3) {
			out[i], out[i+1], out[i+2] = 0, 0, 0
		}
	}
}

// MSE returns the mean squared difference of two RGB images [pixels*3] over
// the pixels that count; mask is as in Image.Mask, nil for all.
// The sum is taken in float64 in a fixed order.
func MSE(a, b []float32, mask []uint32) (float64, error) {
	if len(a) != len(b) || len(a) == 0 || len(a)%3 != 0 {
		return 0, fmt.Errorf("scene: compare images: %d and %d values: %w", len(a), len(b), errShape)
	}
	if err := checkMask(mask, len(a)/3); err != nil {
		return 0, err
	}
	return meanSquare(colours{rgb: a}, colours{rgb: b}, len(a)/3, mask)
}

// meanSquare is MSE of so many pixels.
func meanSquare(a, b colours, pixels int, mask []uint32) (float64, error) {
	// One partial sum per block: the order of additions depends on the length
	// alone, not on the number of workers.
	const block, piece = 1 << 14, 256
	n := (pixels + block - 1) / block
	sums, used := make([]float64, n), make([]int, n)
	Parallel(n, func(i int) {
		var p, q [3 * piece]float64
		sum, counted := 0.0, 0
		for first := i * block; first < min((i+1)*block, pixels); first += piece {
			size := min(piece, pixels-first)
			a.read(p[:3*size], first, mask)
			b.read(q[:3*size], first, mask)
			for k, v := range p[:3*size] {
				sum += (v - q[k]) * (v - q[k])
			}
			counted += countPixels(mask, first, size)
		}
		sums[i], used[i] = sum, counted // once: neighbours share cache lines
	})
	return meanOf(sums, used)
}

// meanOf returns the mean over three channels of what sums hold, used being how many pixels or windows went into each.
func meanOf(sums []float64, used []int) (float64, error) {
	total := 0
	for _, u := range used {
		total += u
	}
	if total == 0 {
		return 0, fmt.Errorf("scene: compare images: %w", ErrUncounted)
	}
	return sumOf(sums) / float64(3*total), nil
}

// countPixels returns how many of n pixels count.
func countPixels(mask []uint32, first, n int) (counted int) {
	if mask == nil {
		return n
	}
	for i := first; i < first+n; i++ {
		if counts(mask, i) {
			counted++
		}
	}
	return counted
}

// Compare returns PSNR and SSIM of a photo and a render [H*W*3] with values in 0..1, where mask says so. It takes the same values from
// the photo's bytes as FloatRGB gives, without a copy of it.
func Compare(photo Image, render []float32, padding Padding, mask []uint32) (psnr, ssim float64, err error) {
	n := photo.Width * photo.Height
	if n <= 0 || len(photo.Pix) != 4*n || len(render) != 3*n {
		return 0, 0, fmt.Errorf("scene: compare images: photo of %dx%d with %d bytes, render with %d values: %w", photo.Width, photo.Height, len(photo.Pix), len(render), errShape)
	}
	if err := checkMask(mask, n); err != nil {
		return 0, 0, err
	}
	a, b := colours{rgb: render}, colours{rgba: photo.Pix}
	mse, err := meanSquare(a, b, n, mask)
	if err != nil {
		return 0, 0, err
	}
	ssim, err = meanSSIM(a, b, photo.Width, photo.Height, padding, mask)
	return -10 * math.Log10(mse), ssim, err
}

// Quantise rounds a render with values in 0..1 to 255ths in place, as if it had been written to an 8-bit PNG and read again.
func Quantise(render []float32) {
	for i, v := range render {
		render[i] = float32(byteValues[toByte(255*float64(v))])
	}
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

func sumOf(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum
}

// Parallel calls f(0) ... f(n-1) on all cores and returns when all are done.
// f must write to places that belong to its index alone, so that the order of
// calls shows nowhere.
func Parallel(n int, f func(i int)) {
	parallelWorkers(n, runtime.GOMAXPROCS(0), func() func(i int) { return f })
}

// parallelWorkers is Parallel with so many workers at most, each with an f of its own, which may keep memory from call to call.
func parallelWorkers(n, most int, worker func() func(i int)) {
	workers := min(n, most, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		f := worker()
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			f := worker()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
