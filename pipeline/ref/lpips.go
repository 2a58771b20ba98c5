package ref

import "math"

// twin: lpips_input lpips_conv lpips_pool lpips_distance

// Maps are feature maps: [C][Height][Width].
type Maps[T Real] struct {
	C, Height, Width int
	Data             []T
}

func NewMaps[T Real](c, height, width int) Maps[T] {
	return Maps[T]{c, height, width, make([]T, c*height*width)}
}

// At returns a value, 0 beyond the border.
func (m *Maps[T]) At(c, y, x int) T {
	if y < 0 || y >= m.Height || x < 0 || x >= m.Width {
		return 0
	}
	return m.Data[(c*m.Height+y)*m.Width+x]
}

// LPIPSGain and LPIPSOffset make colours of -1..1 what the networks were trained on: the shift and scale of lpips 0.1.
// Colours of 0..1 that are to be doubled and lowered by 1 before are given with normalize.
func LPIPSGain[T Real](normalize bool) (gain, offset [3]T) {
	shift, scale := [3]float64{-0.030, -0.088, -0.188}, [3]float64{0.458, 0.448, 0.450}
	for k := range 3 {
		gain[k], offset[k] = T(1/scale[k]), T(-shift[k]/scale[k])
		if normalize {
			gain[k], offset[k] = T(2/scale[k]), T((-1-shift[k])/scale[k])
		}
	}
	return gain, offset
}

// LPIPSInput makes maps of a picture [height][width][3].
func LPIPSInput[T Real](picture []T, width, height int, gain, offset [3]T) Maps[T] {
	m := NewMaps[T](3, height, width)
	for i, c := range picture {
		k := i % 3
		m.Data[k*width*height+i/3] = c*gain[k] + offset[k]
	}
	return m
}

// Convolve returns max(0, in * kernels + biases), with zeros beyond the border. kernels is [out][C][side][side].
func Convolve[T Real](in Maps[T], kernels, biases []T, side, stride, pad int) Maps[T] {
	out := NewMaps[T](len(biases), (in.Height+2*pad-side)/stride+1, (in.Width+2*pad-side)/stride+1)
	for o := range out.C {
		plane := out.Data[o*out.Height*out.Width:][:out.Height*out.Width]
		for k, w := range kernels[o*in.C*side*side:][:in.C*side*side] {
			c, dy, dx := k/side/side, k/side%side-pad, k%side-pad
			for y := range out.Height {
				for x := range out.Width {
					plane[y*out.Width+x] += w * in.At(c, y*stride+dy, x*stride+dx)
				}
			}
		}
		for p := range plane {
			plane[p] = max(plane[p]+biases[o], 0)
		}
	}
	return out
}

// MaxPool returns the largest value of each window that lies inside.
func MaxPool[T Real](in Maps[T], side, stride int) Maps[T] {
	out := NewMaps[T](in.C, (in.Height-side)/stride+1, (in.Width-side)/stride+1)
	for i := range out.Data {
		c, y, x := i/out.Width/out.Height, i/out.Width%out.Height*stride, i%out.Width*stride
		most := in.At(c, y, x)
		for k := range side * side {
			most = max(most, in.At(c, y+k/side, x+k%side))
		}
		out.Data[i] = most
	}
	return out
}

// LPIPSDistance returns for each row the sum over its pixels and channels of the weighted squares of what the features
// differ by, once they are divided by their lengths over the channels.
func LPIPSDistance[T Real](a, b Maps[T], weights []T) []T {
	rows := make([]T, a.Height)
	length := func(m *Maps[T], y, x int) T {
		var sum float64
		for c := range m.C {
			sum += float64(m.At(c, y, x) * m.At(c, y, x))
		}
		return T(math.Sqrt(sum)) + 1e-10
	}
	for y := range rows {
		for x := range a.Width {
			la, lb := length(&a, y, x), length(&b, y, x)
			for c, w := range weights {
				d := a.At(c, y, x)/la - b.At(c, y, x)/lb
				rows[y] += w * d * d
			}
		}
	}
	return rows
}
