package main

import (
	"encoding/binary"
	"image"
	"image/color"

	"vksplat/internal/philox"
)

// enlarge makes a photo of width x height pixels of one that is k times smaller: linear between the middles of its
// pixels, colours at half resolution as in the files of cameras.
func enlarge(small *image.RGBA, k, width, height int) *image.YCbCr {
	w, h := small.Rect.Dx(), small.Rect.Dy()
	var planes [3][]uint8
	for c := range planes {
		planes[c] = make([]uint8, w*h)
	}
	for i := range w * h {
		p := small.Pix[4*i:]
		planes[0][i], planes[1][i], planes[2][i] = color.RGBToYCbCr(p[0], p[1], p[2])
	}
	out := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	stretch(out.Y, out.YStride, planes[0], w, h, 2*k)
	stretch(out.Cb, out.CStride, planes[1], w, h, k)
	stretch(out.Cr, out.CStride, planes[2], w, h, k)
	return out
}

// stretch enlarges a plane of w x h samples by twice/2 into dst. Weights are in 256ths.
func stretch(dst []uint8, stride int, src []uint8, w, h, twice int) {
	x0, x1, wx := weights(stride, w, twice)
	rows := len(dst) / stride
	y0, y1, wy := weights(rows, h, twice)
	for y := range rows {
		above, below, down := src[y0[y]*w:][:w], src[y1[y]*w:][:w], wy[y]
		line := dst[y*stride:][:stride]
		for x := range line {
			a, b, right := x0[x], x1[x], wx[x]
			top := uint32(above[a])*(256-right) + uint32(above[b])*right
			bottom := uint32(below[a])*(256-right) + uint32(below[b])*right
			line[x] = uint8((top*(256-down) + bottom*down + 1<<15) >> 16)
		}
	}
}

// weights gives, for n samples of an axis that has size samples and is enlarged by twice/2, the two samples beside each
// and the weight of the second.
func weights(n, size, twice int) (first, second []int, weight []uint32) {
	first, second, weight = make([]int, n), make([]int, n), make([]uint32, n)
	for i := range n {
		// Sample i of the large axis has its middle at (i+1/2) 2/twice - 1/2 of the small one.
		at := max((2*i+1)*256/twice-128, 0)
		first[i] = min(at/256, size-1)
		second[i] = min(first[i]+1, size-1)
		weight[i] = uint32(at % 256)
	}
	return first, second, weight
}

// noise is a stream of random words (splitmix64: Steele, Lea and Flood 2014).
type noise uint64

func newNoise(seed uint64, i int) noise {
	words := philox.Block([4]uint32{uint32(i), 0, 0, 0}, philox.Key(seed))
	return noise(uint64(words[0])<<32 | uint64(words[1]))
}

func (n *noise) next() uint64 {
	*n += 0x9e3779b97f4a7c15
	z := uint64(*n)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform is a number between 0 and 1, and neither.
func (n *noise) uniform() float64 { return (float64(n.next()>>12) + 0.5) / (1 << 52) }

// add adds noise of at most most to every sample: the sum of two uniform numbers, as smooth as the noise of a sensor is
// to an encoder.
func (n *noise) add(plane []uint8, most int) {
	if most == 0 {
		return
	}
	var table [256]int16 // by the sum of two numbers of 0 to 127
	for i := range table {
		table[i] = int16((i - 127) * most / 127)
	}
	var bits [8]byte
	for i := range plane {
		if i%4 == 0 {
			binary.LittleEndian.PutUint64(bits[:], n.next())
		}
		sum := bits[2*(i%4)]>>1 + bits[2*(i%4)+1]>>1
		plane[i] = uint8(min(max(int16(plane[i])+table[sum], 0), 255))
	}
}
