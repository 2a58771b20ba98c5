package photo

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

// The resampling of a photo with a lens. Every pixel of the camera gathers from its footprint in the photo, a box as
// large as the distance between the places of neighbouring pixels, but no smaller than a source pixel. Along an axis
// the sum over the box is the difference of the running sum of the source pixels at its two ends, and the running sum
// is interpolated between the borders of pixels. So undistortion and reduction are one step: a footprint that covers
// whole pixels gets their mean, as from resize, and nothing aliases or is blurred twice.
//
// For perspective lenses the running sum is interpolated linearly: a footprint of one pixel is bilinear interpolation,
// as COLMAP and OpenCV undistort, and scores compare with those of captures that were undistorted by them
// (bench/README.md has what a cubic does there). Fisheyes and panoramas, whose pixels are spread most, get the cubic of
// Catmull and Rom 1974, which is sharper.
//
// Colours are weighted by alpha as in resize. Weights are whole numbers, sizes of footprints are rounded to 1/32 pixel
// and places to 1/256, so that processors agree on the bytes.

const (
	phases    = 256 // places between two pixels
	sizeSteps = 32  // sizes of footprint to a pixel
	maxTable  = 8   // largest size with a table of weights
	// sizes below are taken for 1: what could alias is little, and two or four pixels in a row are enough
	sharp = 1.1
	// sum of the weights of an axis: a sum over both axes of 8-bit values, with the overshoot of cubic weights, fits 32
	// bits
	whole = 2048
)

// axisWeights are the weights along an axis for a size of footprint, at every phase of its lower end within a pixel. If
// that is pixel i, the weights are those of i-ahead, i-ahead+1, ...
type axisWeights struct {
	half  float64 // of the size
	ahead int     // pixels before that of the lower end
	n     int     // weights
	all   []int32 // [phases][n]
}

// axisTables holds the weights, linear and cubic, by size, made when they are first needed.
var axisTables [2][(maxTable-1)*sizeSteps + 1]atomic.Pointer[axisWeights]

// weightsFor gives the weights of a size of footprint, nil for one that is too large for a table.
func weightsFor(size float64, cubic bool) *axisWeights {
	tables, ahead := &axisTables[0], 0
	if cubic {
		tables, ahead = &axisTables[1], 1
	}
	level := 0
	if size >= sharp {
		level = int((min(size, 2*maxTable)-1)*sizeSteps + 0.5)
	}
	if level >= len(tables) {
		return nil
	}
	if t := tables[level].Load(); t != nil {
		return t
	}
	size = 1 + float64(level)/sizeSteps
	t := &axisWeights{half: size / 2, ahead: ahead, n: int(math.Ceil(size)) + 1 + 2*ahead}
	weights := make([]float64, t.n)
	for p := range phases {
		boxWeights(weights, float64(ahead)+float64(p)/phases, size, cubic)
		t.all = appendWhole(t.all, weights)
	}
	tables[level].Store(t)
	return t
}

// at gives the first pixel and the weights for a footprint with its middle at x >= -1.
func (t *axisWeights) at(x float64) (first int, weights []int32) {
	const ahead = 2 * maxTable * phases // keeps the number positive, so that int rounds down
	q := int((x-t.half)*phases+(ahead+0.5)) - ahead
	p := q & (phases - 1)
	return q>>8 - t.ahead, t.all[p*t.n : (p+1)*t.n]
}

// boxWeights sets the weights of pixels 0, 1, ... for a footprint from lo on, which is 1 or more for the cubic.
func boxWeights(dst []float64, lo, size float64, cubic bool) {
	for i := range dst {
		dst[i] = (share(lo+size, i, cubic) - share(lo, i, cubic)) / size
	}
}

// share is how much of pixel i the interpolated running sum has at x: 1 for pixels well before x, 0 for those well
// behind.
func share(x float64, i int, cubic bool) float64 {
	if !cubic {
		return min(max(x-float64(i), 0), 1)
	}
	before := int(math.Floor(x))
	w := cubicWeights(x - float64(before)) // of the running sum at the borders before-1 ... before+2
	sum := 0.0
	for k := 3; k >= 0 && before-1+k > i; k-- {
		sum += w[k]
	}
	return sum
}

// appendWhole rounds weights that add up to 1 to integers that add up to whole.
func appendWhole(dst []int32, weights []float64) []int32 {
	sum, done := 0.0, int32(0)
	for _, w := range weights {
		sum += w
		next := int32(math.Floor(sum*whole+0.5)) - done // what rounding took from one weight goes to the next
		done += next
		dst = append(dst, next)
	}
	return dst
}

// cubicWeights are those of Catmull and Rom for samples at -1, 0, 1, 2 and a place t in 0..1.
func cubicWeights(t float64) [4]float64 {
	return [4]float64{
		t * (-0.5 + t*(1-0.5*t)),
		1 + t*t*(-2.5+1.5*t),
		t * (0.5 + t*(2-1.5*t)),
		t * t * (-0.5 + 0.5*t),
	}
}

// resampler makes pictures of cameras with a lens from their photos.
type resampler struct {
	img    *scene.Image
	period bool // the photo goes on at the other side
	opaque bool
	across taps // of pixels that need weights in floating point
	down   taps
	patch  [64]uint8 // 4 x 4 pixels gathered at the photo's edges
}

// undistort returns the photo as the camera sees it. The mask says which pixels have a source; file, if not nil, says
// which of the photo's pixels count.
func undistort(img scene.Image, cam *scene.Camera, file *maskFile) (scene.Image, error) {
	s, err := newSampler(cam, img.Width, img.Height)
	if err != nil {
		return scene.Image{}, err
	}
	r := &resampler{img: &img, period: s.period > 0, opaque: opaque(img.Pix)}
	out := scene.Image{Width: cam.Width, Height: cam.Height, Pix: pixelpool.New(4 * cam.Width * cam.Height)}
	mask := NewMask(cam.Width, cam.Height)
	p := newPlacer(s)
	for y := range out.Height {
		row, line := out.Pix[4*y*out.Width:4*(y+1)*out.Width], p.places(y)
		for x := range out.Width {
			at := &line[x]
			dst := row[4*x : 4*x+4 : 4*x+4]
			if !at.ok {
				dst[3] = 255 // black, and left out
				mask.Drop(y*out.Width + x)
				continue
			}
			if file != nil && !file.at(at.x/float64(img.Width), at.y/float64(img.Height)) {
				mask.Drop(y*out.Width + x)
			}
			r.pixel(dst, at)
		}
	}
	out.Mask = mask.Words
	return out, nil
}

func opaque(pix []uint8) bool {
	for i := 3; i < len(pix); i += 4 {
		if pix[i] != 255 {
			return false
		}
	}
	return true
}

// pixel writes the mean over a footprint.
func (r *resampler) pixel(dst []uint8, at *footprint) {
	if !r.opaque || at.across == nil || at.down == nil {
		r.across.set(at.x, at.sx, at.across, r.img.Width)
		r.down.set(at.y, at.sy, at.down, r.img.Height)
		r.general(dst)
		return
	}
	x, wx := at.across.at(at.x)
	y, wy := at.down.at(at.y)
	switch {
	case len(wx) == 2 && len(wy) == 2:
		r.bilinear(dst, x, y, (*[2]int32)(wx), (*[2]int32)(wy))
	case len(wx) == 4 && len(wy) == 4:
		r.bicubic(dst, x, y, (*[4]int32)(wx), (*[4]int32)(wy))
	default:
		r.large(dst, x, y, wx, wy)
	}
}

// spreadPixel takes an opaque pixel apart for sums of several channels at once: red in the lower half of the first word
// and blue in the upper one; green alone, times 256. Sums are signed, so blue is read after red has been taken away.
func spreadPixel(p []uint8) (rb, g uint64) {
	v := uint64(binary.LittleEndian.Uint32(p))
	return v&0xff | v<<16&(0xff<<32), v & 0xff00
}

// store rounds the sums of a pixel.
func store(dst []uint8, rb, g uint64) {
	red := int32(rb)
	blue := int32((rb - uint64(int64(red))) >> 32)
	dst[0], dst[1], dst[2], dst[3] = round22(red), round22(int32(int64(g)>>8)), round22(blue), 255
}

// round22 divides by whole * whole.
func round22(sum int32) uint8 { return jpeg.Clamp8((sum + whole*whole/2) >> 22) }

// square gives n x n pixels from (x, y) on: the slice with them, its bytes a row, and where they begin.
func (r *resampler) square(x, y, n int) (pix []uint8, stride, start int) {
	w, h := r.img.Width, r.img.Height
	if x >= 0 && y >= 0 && x+n <= w && y+n <= h {
		return r.img.Pix, 4 * w, 4 * (w*y + x)
	}
	for i := range n * n {
		copy(r.patch[4*i:][:4], r.source(x+i%n, y+i/n))
	}
	return r.patch[:], 4 * n, 0
}

// bilinear mixes 2 x 2 opaque pixels from (x, y) on. Its weights are not negative.
func (r *resampler) bilinear(dst []uint8, x, y int, wx, wy *[2]int32) {
	pix, stride, start := r.square(x, y, 2)
	w0, w1 := uint64(wx[0]), uint64(wx[1])
	var rb, g uint64
	for _, w := range wy {
		p := pix[start : start+8 : start+8]
		start += stride
		rb0, g0 := spreadPixel(p[0:4])
		rb1, g1 := spreadPixel(p[4:8])
		rb += uint64(w) * (w0*rb0 + w1*rb1)
		g += uint64(w) * (w0*g0 + w1*g1)
	}
	store(dst, rb, g)
}

// bicubic mixes 4 x 4 opaque pixels from (x, y) on.
func (r *resampler) bicubic(dst []uint8, x, y int, wx, wy *[4]int32) {
	pix, stride, start := r.square(x, y, 4)
	w0, w1, w2, w3 := uint64(int64(wx[0])), uint64(int64(wx[1])), uint64(int64(wx[2])), uint64(int64(wx[3]))
	var rb, g uint64
	for _, w := range wy {
		p := pix[start : start+16 : start+16]
		start += stride
		rb0, g0 := spreadPixel(p[0:4])
		rb1, g1 := spreadPixel(p[4:8])
		rb2, g2 := spreadPixel(p[8:12])
		rb3, g3 := spreadPixel(p[12:16])
		v := uint64(int64(w))
		rb += v * (w0*rb0 + w1*rb1 + w2*rb2 + w3*rb3)
		g += v * (w0*g0 + w1*g1 + w2*g2 + w3*g3)
	}
	store(dst, rb, g)
}

// source gives a pixel of the photo. Beyond its edges are those at the edges, or, sideways in a panorama, those of the
// other side.
func (r *resampler) source(x, y int) []uint8 {
	w := r.img.Width
	if r.period {
		x = ((x % w) + w) % w
	}
	x, y = min(max(x, 0), w-1), min(max(y, 0), r.img.Height-1)
	return r.img.Pix[4*(y*w+x):][:4]
}

// large mixes opaque pixels from (x, y) on.
func (r *resampler) large(dst []uint8, x, y int, wx, wy []int32) {
	n := len(wx)
	inside := x >= 0 && y >= 0 && x+n <= r.img.Width && y+len(wy) <= r.img.Height
	var rb, g uint64
	for j, v := range wy {
		var lineRB, lineG uint64
		if inside {
			row := r.img.Pix[4*((y+j)*r.img.Width+x):][:4*n]
			for i, w := range wx {
				p, q := spreadPixel(row[4*i : 4*i+4])
				lineRB += uint64(int64(w)) * p
				lineG += uint64(int64(w)) * q
			}
		} else {
			for i, w := range wx {
				p, q := spreadPixel(r.source(x+i, y+j))
				lineRB += uint64(int64(w)) * p
				lineG += uint64(int64(w)) * q
			}
		}
		rb += uint64(int64(v)) * lineRB
		g += uint64(int64(v)) * lineG
	}
	store(dst, rb, g)
}

// set finds the taps for a footprint on a side of n pixels: from the table for its size, or, for the wide ones near the
// poles of a panorama, as a plain box with fractions of pixels at its ends.
func (t *taps) set(x, size float64, table *axisWeights, n int) {
	t.weights = t.weights[:0]
	if table != nil {
		var weights []int32
		t.first, weights = table.at(x)
		for _, w := range weights {
			t.weights = append(t.weights, float32(w)/whole)
		}
		return
	}
	x = math.Floor(x*phases+0.5) / phases
	size = math.Floor(min(size, float64(n))*sizeSteps+0.5) / sizeSteps // at the poles a pixel sees all around
	lo, hi := x-size/2, x+size/2
	t.first = int(math.Floor(lo))
	for k := t.first; float64(k) < hi; k++ {
		t.weights = append(t.weights, float32((min(hi, float64(k+1))-max(lo, float64(k)))/size))
	}
}

// general mixes the pixels of the taps, whatever their alpha and number.
func (r *resampler) general(dst []uint8) {
	var sum [4]float32
	for j, wy := range r.down.weights {
		var line [4]float32
		for i, wx := range r.across.weights {
			p := r.source(r.across.first+i, r.down.first+j)
			a := float32(p[3]) / 255
			for c := range 3 {
				line[c] += float32(wx * float32(a*float32(p[c])))
			}
			line[3] += float32(wx * float32(p[3]))
		}
		for c := range sum {
			sum[c] += float32(wy * line[c])
		}
	}
	unpremultiply(dst, sum[:])
}
