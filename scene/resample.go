package scene

import (
	"encoding/binary"
	"math"
)

// The resampling of a photo with a lens. Every pixel of the camera gathers from its footprint in the photo, a box as large as the distance between the
// places of neighbouring pixels:
//
//   - A footprint of one source pixel or less takes the cubic interpolation of Catmull and Rom 1974, which keeps photos sharp where bilinear
//     interpolation blurs all that falls between pixels.
//   - One of two source pixels or more takes the mean over the box, with fractions of pixels at its ends, as resize does: undistortion and reduction happen
//     at once, and nothing aliases.
//   - Between the two the weights are blended.
//
// Colours are weighted by alpha as in resize. All products are rounded by themselves and places to 1/256 pixel, so that processors agree on the bytes.

const (
	phases = 256  // places between two pixels
	blends = 32   // sizes of footprint between 1 and 2 pixels
	whole  = 2048 // sum of the integer weights of an axis: a sum over both axes of 8-bit values, with the overshoot of cubic weights, fits 32 bits
)

// axisTable holds the weights of four pixels in a row, by size of footprint and phase: a pixel at phase p of pixel i takes i-1 ... i+2.
var axisTable = makeAxisTable()

func makeAxisTable() *[blends + 1][phases][4]int32 {
	var table [blends + 1][phases][4]int32
	for b := range table {
		size := 1 + float64(b)/blends
		for p := range phases {
			t := float64(p) / phases
			w := cubicWeights(t)
			for k := range w {
				// Pixel k covers k-1.5 ... k-0.5 where the place is t.
				lo, hi := max(float64(k)-1.5, t-size/2), min(float64(k)-0.5, t+size/2)
				box := max(hi-lo, 0) / size
				w[k] = (2-size)*w[k] + (size-1)*box
			}
			wholeWeights(table[b][p][:], w[:])
		}
	}
	return &table
}

// wholeWeights rounds weights that add up to 1 to integers that add up to whole.
func wholeWeights(dst []int32, src []float64) {
	sum, done := 0.0, int32(0)
	for i, w := range src {
		sum += w
		dst[i] = int32(math.Floor(sum*whole+0.5)) - done // what rounding took from one weight goes to the next
		done += dst[i]
	}
}

// cubicWeights are those of Catmull and Rom for pixels -1, 0, 1, 2.
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
	img    *Image
	period bool // the photo goes on at the other side
	opaque bool
	across footprintTaps // of footprints that are not small
	down   footprintTaps
	patch  [64]uint8 // 4 x 4 pixels gathered at the photo's edges
}

// undistort returns the photo as the camera sees it. The mask says which pixels have a source; counts, if not nil, says which of the photo's pixels count.
func undistort(img Image, cam *Camera, counts *maskFile) (Image, error) {
	s, err := newSampler(cam, img.Width, img.Height)
	if err != nil {
		return Image{}, err
	}
	r := &resampler{img: &img, period: s.period > 0, opaque: opaque(img.Pix)}
	out := Image{Width: cam.Width, Height: cam.Height, Pix: make([]uint8, 4*cam.Width*cam.Height)}
	mask := newMask(cam.Width, cam.Height)
	p := newPlacer(s, r.opaque)
	for y := range out.Height {
		row, line := out.Pix[4*y*out.Width:4*(y+1)*out.Width], p.places(y)
		for x := range out.Width {
			at := &line[x]
			dst := row[4*x : 4*x+4 : 4*x+4]
			if !at.ok {
				dst[3] = 255 // black, and left out
				mask.drop(y*out.Width + x)
				continue
			}
			if counts != nil && !counts.at(at.x/float64(img.Width), at.y/float64(img.Height)) {
				mask.drop(y*out.Width + x)
			}
			r.pixel(dst, at)
		}
	}
	out.Mask = mask.words
	return out, nil
}

// opaque says whether every pixel is.
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
	if at.small {
		r.small(dst, at)
		return
	}
	r.across.set(at.x, at.sx, r.img.Width)
	r.down.set(at.y, at.sy, r.img.Height)
	if r.opaque && len(r.across.weights) <= maxWhole && len(r.down.weights) <= maxWhole {
		r.large(dst)
	} else {
		r.general(dst)
	}
}

// phase splits a place of at least -1 into the pixel before it, counted by centres, and how far behind that it lies.
func phase(x float64) (first, p int) {
	q := int(float64(x*phases)+(0.5-phases/2+2*phases)) - 2*phases // positive, so that int rounds down
	return q >> 8, q & (phases - 1)
}

// blend gives the row of axisTable for a size of footprint.
func blend(size float64) int {
	return int(min(max(size-1, 0), 1)*blends + 0.5)
}

// Four channels at once: a pixel becomes two words, red with blue and green with alpha, the first of each in the lower half. Halves are signed sums, so
// the upper one is read after the lower one has been taken away.
func spread(p []uint8) (rb, ga uint64) {
	v := uint64(binary.LittleEndian.Uint32(p))
	return v&0xff | v<<16&(0xff<<32), v>>8&0xff | v<<8&(0xff<<32)
}

// store rounds the sums of an opaque pixel.
func store(dst []uint8, rb, ga uint64) {
	const half = whole * whole / 2
	red := int32(rb)
	blue := int32((rb - uint64(int64(red))) >> 32)
	dst[0], dst[1], dst[2], dst[3] = clamp8((red+half)/(2*half)), clamp8((int32(ga)+half)/(2*half)), clamp8((blue+half)/(2*half)), 255
}

// small mixes 4 x 4 opaque pixels.
func (r *resampler) small(dst []uint8, at *footprint) {
	x, px := phase(at.x)
	y, py := phase(at.y)
	wx, wy := &at.across[px], &at.down[py]
	pix, stride := r.img.Pix, 4*r.img.Width
	start := stride*(y-1) + 4*(x-1)
	if x < 1 || y < 1 || x+2 >= r.img.Width || y+2 >= r.img.Height {
		r.gather(x, y)
		pix, stride, start = r.patch[:], 16, 0
	}
	w0, w1, w2, w3 := uint64(int64(wx[0])), uint64(int64(wx[1])), uint64(int64(wx[2])), uint64(int64(wx[3]))
	var rb, ga uint64
	for _, w := range wy {
		p := pix[start : start+16 : start+16]
		start += stride
		rb0, ga0 := spread(p[0:4])
		rb1, ga1 := spread(p[4:8])
		rb2, ga2 := spread(p[8:12])
		rb3, ga3 := spread(p[12:16])
		v := uint64(int64(w))
		rb += v * (w0*rb0 + w1*rb1 + w2*rb2 + w3*rb3)
		ga += v * (w0*ga0 + w1*ga1 + w2*ga2 + w3*ga3)
	}
	store(dst, rb, ga)
}

// gather copies the 4 x 4 pixels from (x-1, y-1) on.
func (r *resampler) gather(x, y int) {
	for j := range 4 {
		for i := range 4 {
			copy(r.patch[16*j+4*i:][:4], r.source(x-1+i, y-1+j))
		}
	}
}

// source gives a pixel of the photo. Beyond its edges are those at the edges, or, sideways in a panorama, those of the other side.
func (r *resampler) source(x, y int) []uint8 {
	w := r.img.Width
	if r.period {
		x = ((x % w) + w) % w
	}
	x, y = min(max(x, 0), w-1), min(max(y, 0), r.img.Height-1)
	return r.img.Pix[4*(y*w+x):][:4]
}

// maxWhole is the number of taps up to which integer weights are fine enough.
const maxWhole = 16

// footprintTaps are the weights along one axis of a footprint that is not small: of pixels first, first+1, ...
type footprintTaps struct {
	first   int
	weights []float64
	whole   []int32
}

// set finds the taps for a footprint of a size at a place of a side of n pixels.
func (t *footprintTaps) set(x, size float64, n int) {
	t.weights = t.weights[:0]
	if size < 2 {
		first, p := phase(x)
		t.first = first - 1
		t.whole = append(t.whole[:0], axisTable[blend(size)][p][:]...)
		for _, w := range t.whole {
			t.weights = append(t.weights, float64(w)/whole)
		}
		return
	}
	x = math.Floor(x*phases+0.5) / phases
	size = math.Floor(min(size, float64(n))*phases+0.5) / phases // at the poles of a panorama a pixel sees all around
	lo, hi := x-size/2, x+size/2
	t.first = int(math.Floor(lo))
	for k := t.first; float64(k) < hi; k++ {
		t.weights = append(t.weights, (min(hi, float64(k+1))-max(lo, float64(k)))/size)
	}
	t.whole = append(t.whole[:0], make([]int32, len(t.weights))...)
	wholeWeights(t.whole, t.weights)
}

// large mixes the opaque pixels of the taps.
func (r *resampler) large(dst []uint8) {
	x, y, n := r.across.first, r.down.first, len(r.across.whole)
	inside := x >= 0 && y >= 0 && x+n <= r.img.Width && y+len(r.down.whole) <= r.img.Height
	var rb, ga uint64
	for j, wy := range r.down.whole {
		var lineRB, lineGA uint64
		if inside {
			row := r.img.Pix[4*((y+j)*r.img.Width+x):][:4*n]
			for i, wx := range r.across.whole {
				p, q := spread(row[4*i : 4*i+4])
				lineRB += uint64(int64(wx)) * p
				lineGA += uint64(int64(wx)) * q
			}
		} else {
			for i, wx := range r.across.whole {
				p, q := spread(r.source(x+i, y+j))
				lineRB += uint64(int64(wx)) * p
				lineGA += uint64(int64(wx)) * q
			}
		}
		rb += uint64(int64(wy)) * lineRB
		ga += uint64(int64(wy)) * lineGA
	}
	store(dst, rb, ga)
}

// general mixes the pixels of the taps, whatever their alpha and number.
func (r *resampler) general(dst []uint8) {
	var sum [4]float32
	for j, wy := range r.down.weights {
		var line [4]float32
		for i, w := range r.across.weights {
			p, wx := r.source(r.across.first+i, r.down.first+j), float32(w)
			a := float32(p[3]) / 255
			for c := range 3 {
				line[c] += float32(wx * float32(a*float32(p[c])))
			}
			line[3] += float32(wx * float32(p[3]))
		}
		for c := range sum {
			sum[c] += float32(float32(wy) * line[c])
		}
	}
	unpremultiply(dst, sum[:])
}
