package metric

import (
	"errors"
	"fmt"
	"math"

	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// ErrUncounted is the cause of an error about images of which no pixel counts.
var ErrUncounted = errors.New("the mask leaves no pixel to compare")

func checkMask(mask []uint32, pixels int) error {
	if mask != nil && len(mask) != (pixels+31)/32 {
		return fmt.Errorf("compare images: a mask of %d words for %d pixels: %w", len(mask), pixels, scene.ErrShape)
	}
	return nil
}

// colours are those of a picture, of floats [pixels*3] or of a photo's bytes [pixels*4], which stand for a 255th each.
type colours struct {
	rgb  []float32
	rgba []uint8
}

// read fills out [n*3] with the pixels from first on, zeros for those that do not count.
func (c colours) read(out []float64, first int, mask []uint32) {
	if c.rgb != nil {
		for i, v := range c.rgb[3*first:][:len(out)] {
			out[i] = float64(v)
		}
	} else {
		for i, k := 0, 4*first; i+2 < len(out); i, k = i+3, k+4 {
			p := c.rgba[k : k+4]
			out[i], out[i+1], out[i+2] = scene.ByteValues[p[0]], scene.ByteValues[p[1]], scene.ByteValues[p[2]]
		}
	}
	if mask == nil {
		return
	}
	for i := 0; i < len(out); i += 3 {
		if !photo.Counts(mask, first+i/3) {
			out[i], out[i+1], out[i+2] = 0, 0, 0
		}
	}
}

// meanSquare returns the mean squared difference of n pixels over those that count. The sum is taken in float64 in a
// fixed order.
func meanSquare(a, b colours, pixels int, mask []uint32) (float64, error) {
	// One partial sum per block: the order of additions depends on the length
	// alone, not on the number of workers.
	const block, piece = 1 << 14, 256
	n := (pixels + block - 1) / block
	sums, used := make([]float64, n), make([]int, n)
	parallel.For(n, func(i int) {
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
		return 0, fmt.Errorf("compare images: %w", ErrUncounted)
	}
	return sumOf(sums) / float64(3*total), nil
}

func countPixels(mask []uint32, first, n int) (counted int) {
	if mask == nil {
		return n
	}
	for i := first; i < first+n; i++ {
		if photo.Counts(mask, i) {
			counted++
		}
	}
	return counted
}

// Compare returns PSNR and SSIM of a photo and a render [H*W*3] with values in 0..1, where mask says so. It takes the
// same values from the photo's bytes as FloatRGB gives, without a copy of it.
func Compare(photo scene.Image, render []float32, padding Padding, mask []uint32) (psnr, ssim float64, err error) {
	n := photo.Width * photo.Height
	if n <= 0 || len(photo.Pix) != 4*n || len(render) != 3*n {
		return 0, 0, fmt.Errorf("compare images: photo of %dx%d with %d bytes, render with %d values: %w", photo.Width,
			photo.Height, len(photo.Pix), len(render), scene.ErrShape)
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

// Quantise rounds a render with values in 0..1 to 255ths in place, as if it had been written to an 8-bit PNG and read
// again.
func Quantise(render []float32) {
	for i, v := range render {
		render[i] = float32(scene.ByteValues[scene.ToByte(255*float64(v))])
	}
}

func sumOf(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum
}
