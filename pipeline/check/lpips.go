package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func lpipsCases() []Case {
	return []Case{
		newCase("lpips_input", "sizes", func(t *trial) error {
			return each([][2]int{{1, 1}, {255, 1}, {16, 16}, {257, 3}, {37, 29}},
				func(s [2]int) error { return checkLPIPSInput(t, s[0], s[1], 0, s[1]) })
		}),
		newCase("lpips_input", "rows of a band", func(t *trial) error { return checkLPIPSInput(t, 19, 7, 12, 9) }),
		newCase("lpips_conv", "kernels, strides, borders", func(t *trial) error {
			return each([]conv{
				{side: 1, stride: 1, width: 9, height: 5}, {side: 3, stride: 1, pad: 1, width: 17, height: 13},
				{side: 3, stride: 1, width: 17, height: 13},
				{side: 5, stride: 1, pad: 2, width: 11, height: 6},
				{side: 11, stride: 4, pad: 2, width: 41, height: 35},
				{side: 3, stride: 2, pad: 1, width: 10, height: 8},
				{side: 3, stride: 1, pad: 1, width: 1, height: 1}, {side: 5, stride: 1, pad: 2, width: 2, height: 1},
			}, func(c conv) error { return c.fill(t, 3, 5).check(t) })
		}),
		newCase("lpips_conv", "channels around tiles and terms", func(t *trial) error {
			return each([][2]int{{1, 1}, {1, 63}, {2, 64}, {5, 65}, {16, 130}, {17, 4}}, func(n [2]int) error {
				return (&conv{side: 3, stride: 1, pad: 1, width: 7, height: 5}).fill(t, n[0], n[1]).check(t)
			})
		}),
		newCase("lpips_conv", "pixels around tiles", func(t *trial) error {
			return each([][2]int{{127, 1}, {128, 1}, {129, 1}, {1, 129}, {16, 8}, {51, 5}}, func(s [2]int) error {
				return (&conv{side: 3, stride: 1, pad: 1, width: s[0], height: s[1]}).fill(t, 4, 8).check(t)
			})
		}),
		newCase("lpips_conv", "bands give the same bytes", checkConvBands),
		newCase("lpips_conv", "workgroups of either size give the same bytes", func(t *trial) error {
			c := (&conv{side: 3, stride: 1, pad: 1, width: 29, height: 9}).fill(t, 7, 70)
			large, err := c.run(t, 0, 9, 0, 9, 9, 9)
			if err != nil {
				return err
			}
			c.lanes = 32
			small, err := c.run(t, 0, 9, 0, 9, 9, 9)
			return first(err, sameBytes("convolved", small, large), c.check(t))
		}),
		newCase("lpips_pool", "windows", func(t *trial) error {
			return each([][4]int{{2, 2, 8, 6}, {2, 2, 9, 7}, {3, 2, 8, 7}, {3, 2, 9, 8}, {3, 2, 3, 3}, {2, 2, 2, 2},
				{2, 2, 520, 2}}, func(s [4]int) error {
				return checkPool(t, s[0], s[1], s[2], s[3], 5)
			})
		}),
		newCase("lpips_distance", "sizes", func(t *trial) error {
			return each([][3]int{{1, 1, 1}, {64, 16, 3}, {7, 255, 2}, {5, 256, 1}, {3, 257, 2}, {200, 2, 2}},
				func(s [3]int) error {
					return checkLPIPSDistance(t, s[0], s[1], s[2], false)
				})
		}),
		newCase("lpips_distance", "equal features are 0 apart",
			func(t *trial) error { return checkLPIPSDistance(t, 64, 20, 4, true) }),
	}
}

// ringOf lays rows [first, end) of maps out as in memory; what is not of them is NaN.
func ringOf(m ref.Maps[float32], first, end, ring int) []float32 {
	out := make([]float32, ring*m.C*m.Width)
	for i := range out {
		out[i] = float32(math.NaN())
	}
	for y := first; y < end; y++ {
		for c := range m.C {
			copy(out[(y%ring*m.C+c)*m.Width:][:m.Width], m.Data[(c*m.Height+y)*m.Width:][:m.Width])
		}
	}
	return out
}

// bandOf returns rows [first, end) of what is in memory as ringOf lays it out: [rows][C][width].
func bandOf[T any](ring []T, first, end, row int) (out []T) {
	for y := first; y < end; y++ {
		out = append(out, ring[y%(len(ring)/row)*row:][:row]...)
	}
	return out
}

// wantRows is bandOf the reference.
func wantRows(m ref.Maps[float64], first, end int) (out []float64) {
	for y := first; y < end; y++ {
		for c := range m.C {
			out = append(out, m.Data[(c*m.Height+y)*m.Width:][:m.Width]...)
		}
	}
	return out
}

func maps64(m ref.Maps[float32]) ref.Maps[float64] {
	return ref.Maps[float64]{C: m.C, Height: m.Height, Width: m.Width, Data: ref.ConvertSlice[float64](m.Data)}
}

// maps makes features of either sign.
func (t *trial) maps(c, height, width int) ref.Maps[float32] {
	m := ref.NewMaps[float32](c, height, width)
	for i := range m.Data {
		m.Data[i] = float32(t.NormFloat64())
	}
	return m
}

// bandRows says which rows of layer 1 of two are made.
func bandRows(first, count int) []layout.MapRows {
	return []layout.MapRows{{First: 1 << 30, Count: 1 << 30}, {First: uint32(first), Count: uint32(count)}}
}

func checkLPIPSInput(t *trial, width, height, first, ring int) error {
	l := t.list()
	picture := make([]float32, 3*width*height)
	for i := range picture {
		picture[i] = t.Float32()
	}
	gain, offset := ref.LPIPSGain[float32](true)
	out := output[float32](l, "features", ring*3*width)
	l.r.Dispatch(&shaders.LpipsInput{
		MapRows: input(l, "map_rows", []layout.MapRows{{First: uint32(first), Count: uint32(height)}}),
		Picture: vk.Cast[[3]float32](input(l, "picture", picture).View), Features: out.Slice,
		Push: shaders.LpipsInputPush{Gain: gain, Offset: offset, Width: uint32(width), Ring: uint32(ring)},
	}, vk.Items(width*height+300, 256))
	if err := l.run(); err != nil {
		return err
	}
	gain64, offset64 := ref.LPIPSGain[float64](true)
	want := ref.LPIPSInput(ref.ConvertSlice[float64](picture), width, height, gain64, offset64)
	// A product and a sum of size 5.
	return closeTo("features", bandOf(out.got, first, first+height, 3*width), wantRows(want, 0, height), 2e-6, 0)
}

// conv is a convolution of random features with random kernels.
type conv struct {
	side, stride, pad, width, height int
	in                               ref.Maps[float32]
	kernels, biases                  []float32
	lanes                            uint32 // of a workgroup; 0: 256
}

func (c conv) String() string {
	return fmt.Sprintf("%dx%d pixels, kernel %d, stride %d, padding %d", c.width, c.height, c.side, c.stride, c.pad)
}

func (c conv) fill(t *trial, channels, out int) *conv {
	c.in = t.maps(channels, c.height, c.width)
	c.kernels, c.biases = t.maps(out*channels, c.side, c.side).Data, t.maps(1, 1, out).Data
	return &c
}

func (c *conv) rows(in int) int { return (in+2*c.pad-c.side)/c.stride + 1 }

// run makes rows [first, first+count) of the output; the input's rows [from, to) alone are there. The rest of either
// buffer must stay as it was.
func (c *conv) run(t *trial, first, count, from, to, ring, outRing int) ([]float32, error) {
	l := t.list()
	terms, n, width := len(c.kernels)/len(c.biases), len(c.biases), c.rows(c.width)
	turned := make([]float32, len(c.kernels))
	for i, w := range c.kernels {
		turned[i%terms*n+i/terms] = w
	}
	out := output[float32](l, "convolved", outRing*n*width)
	l.r.Dispatch(&shaders.LpipsConv{
		MapRows:  input(l, "map_rows", bandRows(first, count)),
		Features: input(l, "features", ringOf(c.in, from, to, ring)),
		Weights:  input(l, "weights", turned), Biases: input(l, "biases", c.biases), Convolved: out.Slice,
		Push: shaders.LpipsConvPush{Layer: 1, Width: uint32(c.width), Height: uint32(c.height),
			Channels: uint32(c.in.C), Ring: uint32(ring),
			OutWidth: uint32(width), OutChannels: uint32(n), OutRing: uint32(outRing)},
		Spec: shaders.LpipsConvSpec{WorkgroupSize: c.lanes, Side: uint32(c.side), Stride: uint32(c.stride),
			Pad: uint32(c.pad)},
	}, vk.Groups3((count*width+127)/128+1, (n+63)/64, 1))
	if err := l.run(); err != nil {
		return nil, err
	}
	return bandOf(out.got, first, first+count, n*width), nil
}

// want is the reference in float64.
func (c *conv) want() ref.Maps[float64] {
	return ref.Convolve(maps64(c.in), ref.ConvertSlice[float64](c.kernels), ref.ConvertSlice[float64](c.biases), c.side,
		c.stride, c.pad)
}

func (c *conv) check(t *trial) error {
	rows := c.rows(c.height)
	got, err := c.run(t, 0, rows, 0, c.height, max(c.height, c.side), rows)
	if err != nil {
		return err
	}
	terms := float64(len(c.kernels)/len(c.biases) + 1)
	// Rounding of each of the sum's terms, which are of size 1 and whose sum is of size sqrt(terms).
	return closeTo("convolved", got, wantRows(c.want(), 0, rows), 6e-8*terms*math.Sqrt(terms)+1e-6, 1e-6)
}

// checkConvBands makes an output whole, and then in bands of rows with no more in memory than they need.
func checkConvBands(t *trial) error {
	return each([]conv{
		{side: 3, stride: 1, pad: 1, width: 33, height: 40}, {side: 11, stride: 4, pad: 2, width: 47, height: 90},
		{side: 5, stride: 1, pad: 2, width: 20, height: 21},
	}, func(c conv) error {
		c = *c.fill(t, 6, 20)
		rows := c.rows(c.height)
		whole, err := c.run(t, 0, rows, 0, c.height, c.height, rows)
		if err != nil {
			return err
		}
		row := len(whole) / rows
		for _, count := range []int{1, 4, 7} {
			for first := 0; first < rows; first += count {
				n := min(count, rows-first)
				from, to := max(0, first*c.stride-c.pad), min(c.height, (first+n-1)*c.stride-c.pad+c.side)
				got, err := c.run(t, first, n, from, to, max(to-from, c.side), n+1)
				if err == nil {
					err = sameBytes("convolved", got, whole[first*row:(first+n)*row])
				}
				if err != nil {
					return fmt.Errorf("rows %d to %d: %w", first, first+n, err)
				}
			}
		}
		return nil
	})
}

// checkPool pools in two bands, the second with a ring that wraps.
func checkPool(t *trial, side, stride, width, height, channels int) error {
	in := t.maps(channels, height, width)
	want := ref.MaxPool(maps64(in), side, stride)
	for first := 0; first < want.Height; first += max(1, want.Height/2) {
		count := min(max(1, want.Height/2), want.Height-first)
		from, to := first*stride, (first+count-1)*stride+side
		l := t.list()
		out := output[float32](l, "pooled", (count+1)*channels*want.Width)
		l.r.Dispatch(&shaders.LpipsPool{
			MapRows:  input(l, "map_rows", bandRows(first, count)),
			Features: input(l, "features", ringOf(in, from, to, to-from)), Pooled: out.Slice,
			Push: shaders.LpipsPoolPush{Layer: 1, Channels: uint32(channels), Width: uint32(width),
				Ring: uint32(to - from), OutWidth: uint32(want.Width), OutRing: uint32(count + 1)},
			Spec: shaders.LpipsPoolSpec{Side: uint32(side), Stride: uint32(stride)},
		}, vk.Items(count*channels*want.Width+300, 256))
		if err := l.run(); err != nil {
			return err
		}
		if err := closeTo("pooled", bandOf(out.got, first, first+count, channels*want.Width),
			wantRows(want, first, first+count), 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkLPIPSDistance compares features of which one pixel has none in either picture.
func checkLPIPSDistance(t *trial, channels, width, height int, same bool) error {
	a, b := t.maps(channels, height, width), t.maps(channels, height, width)
	weights := t.maps(1, 1, channels).Data
	for i, w := range weights {
		weights[i] = w * w
	}
	if same {
		b = a
	} else if width > 1 {
		for c := range channels {
			a.Data[c*height*width+1], b.Data[c*height*width+1] = 0, 0
		}
	}
	l := t.list()
	const first, before = 6, 3 // rows of the maps in front of the band, numbers in front of the layer's sums
	sums := output[float32](l, "row_sums", before+first+height)
	shifted := func(m ref.Maps[float32]) []float32 { // rows as if there were some before
		plain, row := ringOf(m, 0, height, height), channels*width
		out := make([]float32, len(plain))
		for y := range height {
			copy(out[(y+first)%height*row:][:row], plain[y*row:][:row])
		}
		return out
	}
	l.r.Dispatch(&shaders.LpipsDistance{
		MapRows: input(l, "map_rows", bandRows(first, height)), FeaturesX: input(l, "features_x", shifted(a)),
		FeaturesY:      input(l, "features_y", shifted(b)),
		ChannelWeights: input(l, "channel_weights", weights), RowSums: sums.Slice,
		Push: shaders.LpipsDistancePush{Layer: 1, Channels: uint32(channels), Width: uint32(width),
			Ring: uint32(height), FirstSum: before},
	}, vk.Groups(height+2))
	if err := l.run(); err != nil {
		return err
	}
	want := ref.LPIPSDistance(maps64(a), maps64(b), ref.ConvertSlice[float64](weights))
	if same {
		return sameBytes("row_sums", sums.got[before+first:], make([]float32, height))
	}
	// Sums of positive numbers; lengths and quotients are a few units in the last place off.
	return closeTo("row_sums", sums.got[before+first:], want, 1e-6, 2e-5)
}
