package photo

import (
	"math"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

// taps are the weights of one output sample: inputs first, first+1, ... The weights add up to 1.
type taps struct {
	first   int
	weights []float32
}

// resize returns img at another size: each axis is reduced by an area filter (a box as wide as the output sample, with
// fractions of pixels at its ends) and enlarged by linear interpolation. Colours are weighted by alpha, so that what
// hides under transparent pixels does not bleed. An image that has the size already is returned as it is.
func resize(img scene.Image, width, height int) scene.Image {
	if img.Width == width && img.Height == height {
		return img
	}
	across, down := axisTaps(img.Width, width), axisTaps(img.Height, height)
	out := scene.Image{Width: width, Height: height, Pix: pixelpool.New(4 * width * height)}
	source := make([]float32, 4*img.Width)
	// The last two source rows at the new width: two output rows share at most two.
	rows := [2][]float32{make([]float32, 4*width), make([]float32, 4*width)}
	at := [2]int{-1, -1}
	sum := make([]float32, 4*width)
	for y, t := range down {
		clear(sum)
		for k, w := range t.weights {
			sy := t.first + k
			row := rows[sy&1]
			if at[sy&1] != sy {
				premultiply(source, img.Pix[4*img.Width*sy:])
				shrinkRow(row, source, across)
				at[sy&1] = sy
			}
			for i, v := range row {
				sum[i] += float32(w * v) // the conversion forbids fused multiply-add: equal bytes on every processor
			}
		}
		unpremultiply(out.Pix[4*width*y:4*width*(y+1)], sum)
	}
	return out
}

// axisTaps returns the taps that turn n samples into m.
func axisTaps(n, m int) []taps {
	out := make([]taps, m)
	step := float64(n) / float64(m)
	for i := range out {
		if m >= n {
			out[i] = linearTaps((float64(i)+0.5)*step-0.5, n)
		} else {
			out[i] = boxTaps(float64(i)*step, float64(i+1)*step, n)
		}
	}
	return out
}

// linearTaps interpolates at x, in samples from the centre of the first.
func linearTaps(x float64, n int) taps {
	x = min(max(x, 0), float64(n-1))
	first := min(int(x), max(n-2, 0))
	f := x - float64(first)
	if f == 0 {
		return taps{first, []float32{1}}
	}
	return taps{first, []float32{float32(1 - f), float32(f)}}
}

// boxTaps covers lo..hi, in samples from the edge of the first.
func boxTaps(lo, hi float64, n int) taps {
	first, last := int(lo), min(int(math.Ceil(hi)), n)
	t := taps{first, make([]float32, 0, last-first)}
	for s := first; s < last; s++ {
		cover := min(hi, float64(s+1)) - max(lo, float64(s))
		t.weights = append(t.weights, float32(max(cover, 0)/(hi-lo)))
	}
	return t
}

// premultiply converts a row of RGBA to colour times alpha and alpha, each 0..255.
func premultiply(dst []float32, src []uint8) {
	for i := 0; i < len(dst); i += 4 {
		p := src[i : i+4 : i+4]
		a := float32(p[3]) / 255
		dst[i], dst[i+1], dst[i+2], dst[i+3] = a*float32(p[0]), a*float32(p[1]), a*float32(p[2]), float32(p[3])
	}
}

// unpremultiply rounds a row back to RGBA with straight alpha.
func unpremultiply(dst []uint8, src []float32) {
	for i := 0; i < len(dst); i += 4 {
		a := src[i+3]
		if a < 0.5 {
			continue // rounds to transparent: no colour
		}
		scale := 255 / a
		for c := range 3 {
			dst[i+c] = round8(src[i+c] * scale)
		}
		dst[i+3] = round8(a)
	}
}

func round8(x float32) uint8 { return uint8(min(max(x, 0), 255) + 0.5) }

// shrinkRow applies the taps to a row of RGBA.
func shrinkRow(dst, src []float32, across []taps) {
	for x, t := range across {
		var r, g, b, a float32
		for k, w := range t.weights {
			p := src[4*(t.first+k):][:4]
			r += float32(w * p[0])
			g += float32(w * p[1])
			b += float32(w * p[2])
			a += float32(w * p[3])
		}
		copy(dst[4*x:], []float32{r, g, b, a})
	}
}
