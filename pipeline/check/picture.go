package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pictureCases are those of the kernels that make pictures to look at.
func pictureCases() []Case {
	return append([]Case{
		newCase("pack", "sizes", over([]int{0, 1, 255, 256, 257, 5000}, func(t *trial, n int) {
			pixels := make([][4]float32, n)
			for i := range pixels {
				for k := range 4 {
					pixels[i][k] = 1.4*t.Float32() - 0.2
				}
			}
			checkPack(t, pixels)
		})),
		newCase("pack", "poison", func(t *trial) {
			var pixels [][4]float32
			inf := float32(math.Inf(1))
			for _, x := range []float32{0, nan, inf, -inf, 1e-40, -1e-40, 1, 255.5 / 255, 1.0 / 510, math.MaxFloat32} {
				pixels = append(pixels, [4]float32{x, 0.5, 1, 0.25}, [4]float32{0.1, x, 0.9, x},
					[4]float32{0.2, 0.3, x, 1})
			}
			checkPack(t, pixels)
		}),
		newCase("look", "sizes",
			over([]int{0, 1, 255, 256, 257, 3000}, func(t *trial, n int) { checkLooks(t, n, n) })),
		newCase("look", "fewer splats than there is room for", func(t *trial) { checkLooks(t, 700, 300) }),
	}, shapedCases("rasterize", table{{"a band alone gives the same bytes", checkRasterAlone}})...)
}

func checkPack(t *trial, pixels [][4]float32) {
	t.dispatch(&shaders.Pack{Render: in(t, pixels...), Push: shaders.PackPush{N: uint32(len(pixels))},
		PackedPixels: out[uint32](t, len(pixels), func(b *binding) { comparePacked(b.words, pixels) }),
	}, vk.Items(len(pixels)+300, 256))
	t.run()
}

// comparePacked takes either byte where float32 cannot tell on which side of a half a value lies.
func comparePacked(got []uint32, pixels [][4]float32) {
	for i, x := range got {
		wide := ref.ConvertSlice[float64](pixels[i][:])
		want := ref.Pack([4]float64(wide))
		for k := range 4 {
			a, b := int(x>>(8*k)&255), int(want>>(8*k)&255)
			exact := 255 * wide[k]
			if k == 3 {
				exact = 255 * (1 - wide[3])
			}
			if a != b && !(max(a-b, b-a) == 1 && math.Abs(exact-math.Floor(exact)-0.5) < 1e-4) {
				failf("binding packed_pixels: byte %d of pixel %d is %d, want %d of %v", k, i, a, b, wide[k])
			}
		}
	}
}

// checkRasterAlone compares bands that are drawn each into memory of its own with the same variant of the kernel in one
// band.
func checkRasterAlone(t *trial) {
	const width, height, bands = 70, 90, 3
	p, v := t.ellipses(300, width, height), t.camera(width, height)
	t.alone = true
	draw := func(band, bands int) (pixels [][4]float32, first int) {
		r := t.rasterize(p, v, band, bands, false, nil)
		t.run()
		r.nothingKept()
		g := v.Grid().Band(band, bands)
		first = g.RowFirst * layout.TileSize * width
		return head(t, r.in.Render, min(height, g.RowEnd*layout.TileSize)*width-first), first
	}
	whole, _ := draw(0, 1)
	compareImage(whole, image64(p, v, ref.NewLists(p, v.Grid())))
	for band := range bands {
		part, first := draw(band, bands)
		same("render", part, whole[first:first+len(part)])
	}
	t.alone = false
}

func checkLooks(t *trial, n, active int) {
	eachOf([]ref.Look{ref.LookColor, ref.LookDepth, ref.LookCenters, ref.LookEllipsoids},
		func(look ref.Look) { checkLook(t, look, n, active) })
}

func checkLook(t *trial, look ref.Look, n, active int) {
	p := t.ellipses(n, 70, 50)
	p.DepthKeys = make([]uint32, n)
	depths := make([]float32, n)
	for i := range p.DepthKeys {
		p.DepthKeys[i], depths[i] = layout.Culled, float32(math.Exp(20*t.Float64()-10))
		if t.IntN(3) > 0 {
			p.DepthKeys[i] = math.Float32bits(depths[i])
		}
	}
	params := paramsOf(t.camera(70, 50))
	params.Look = uint32(look)
	keys := in(t, p.DepthKeys...)
	shapes, paints := scratchOf(t, shapesOf(p)), scratchOf(t, paintsOf(p.Splats))
	t.dispatch(&shaders.Look{Params: in(t, params), Counters: in(t, with(make([]uint32, layout.NCounters),
		layout.NActive, uint32(active))...), DepthKeys: keys, Shapes: shapes, Paints: paints}, vk.Items(n, 256))
	t.run()
	for i := active; i < n; i++ {
		p.DepthKeys[i] = layout.Culled // those that are not there stay as they are
	}
	p.Look(look, depths)
	is := projectionOf(got(t, shapes), got(t, paints), p.DepthKeys)
	for i, want := range p.Splats {
		s := is.Splats[i]
		same("shapes", s.Mean2D[:], want.Mean2D[:])
		same("paints", append(s.Color[:], s.Opacity), append(want.Color[:], want.Opacity))
		// Roots and logarithms, whose last bits differ.
		near("shapes", append(s.Conic[:], is.Extents[i][:]...), append(want.Conic[:], p.Extents[i][:]...), 0, 2e-5)
	}
}

func lpipsCases() []Case {
	square := conv{side: 3, stride: 1, pad: 1}
	check := func(c conv, width, height, in, out int) func(t *trial) {
		c.width, c.height = width, height
		return func(t *trial) { c.fill(t, in, out).check(t) }
	}
	return slices.Concat(casesOf("lpips_input", table{
		{"sizes", over([][2]int{{1, 1}, {255, 1}, {16, 16}, {257, 3}, {37, 29}},
			func(t *trial, s [2]int) { checkLPIPSInput(t, s[0], s[1], 0, s[1]) })},
		{"rows of a band", func(t *trial) { checkLPIPSInput(t, 19, 7, 12, 9) }},
	}), casesOf("lpips_conv", table{
		{"kernels, strides, borders", over([]conv{
			{side: 1, stride: 1, width: 9, height: 5}, {side: 3, stride: 1, pad: 1, width: 17, height: 13},
			{side: 3, stride: 1, width: 17, height: 13}, {side: 5, stride: 1, pad: 2, width: 11, height: 6},
			{side: 11, stride: 4, pad: 2, width: 41, height: 35}, {side: 3, stride: 2, pad: 1, width: 10, height: 8},
			{side: 3, stride: 1, pad: 1, width: 1, height: 1}, {side: 5, stride: 1, pad: 2, width: 2, height: 1},
		}, func(t *trial, c conv) { c.fill(t, 3, 5).check(t) })},
		{"channels around tiles and terms", over([][2]int{{1, 1}, {1, 63}, {2, 64}, {5, 65}, {16, 130}, {17, 4}},
			func(t *trial, n [2]int) { check(square, 7, 5, n[0], n[1])(t) })},
		{"pixels around tiles", over([][2]int{{127, 1}, {128, 1}, {129, 1}, {1, 129}, {16, 8}, {51, 5}},
			func(t *trial, s [2]int) { check(square, s[0], s[1], 4, 8)(t) })},
		{"bands give the same bytes", over([]conv{
			{side: 3, stride: 1, pad: 1, width: 33, height: 40}, {side: 11, stride: 4, pad: 2, width: 47, height: 90},
			{side: 5, stride: 1, pad: 2, width: 20, height: 21},
		}, checkConvBands)},
		{"workgroups of either size give the same bytes", func(t *trial) {
			c := (&conv{side: 3, stride: 1, pad: 1, width: 29, height: 9}).fill(t, 7, 70)
			large := c.run(t, 0, 9, 0, 9, 9, 9)
			c.lanes = 32
			same("convolved", c.run(t, 0, 9, 0, 9, 9, 9), large)
			c.check(t)
		}},
	}), casesOf("lpips_pool", table{
		{"windows", over([][4]int{{2, 2, 8, 6}, {2, 2, 9, 7}, {3, 2, 8, 7}, {3, 2, 9, 8}, {3, 2, 3, 3}, {2, 2, 2, 2},
			{2, 2, 520, 2}}, func(t *trial, s [4]int) { checkPool(t, s[0], s[1], s[2], s[3], 5) })},
	}), casesOf("lpips_distance", table{
		{"sizes", over([][3]int{{1, 1, 1}, {64, 16, 3}, {7, 255, 2}, {5, 256, 1}, {3, 257, 2}, {200, 2, 2}},
			func(t *trial, s [3]int) { checkLPIPSDistance(t, s[0], s[1], s[2], false) })},
		{"equal features are 0 apart", func(t *trial) { checkLPIPSDistance(t, 64, 20, 4, true) }},
	}))
}

// ringOf lays rows [first, end) of maps out as in memory; what is not of them is NaN.
func ringOf(m ref.Maps[float32], first, end, ring int) []float32 {
	out := make([]float32, ring*m.C*m.Width)
	for i := range out {
		out[i] = nan
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

func (t source) maps(c, height, width int) ref.Maps[float32] {
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

func checkLPIPSInput(t *trial, width, height, first, ring int) {
	picture := t.anyPositive(3 * width * height)
	gain, offset := ref.LPIPSGain[float32](true)
	gain64, offset64 := ref.LPIPSGain[float64](true)
	want := ref.LPIPSInput(ref.ConvertSlice[float64](picture), width, height, gain64, offset64)
	features := out[float32](t, ring*3*width)
	t.dispatch(&shaders.LpipsInput{MapRows: in(t, layout.MapRows{First: uint32(first), Count: uint32(height)}),
		Picture: vk.Cast[[3]float32](in(t, picture...).View), Features: features,
		Push: shaders.LpipsInputPush{Gain: gain, Offset: offset, Width: uint32(width), Ring: uint32(ring)}},
		vk.Items(width*height+300, 256))
	t.run()
	// A product and a sum of size 5.
	near("features", bandOf(got(t, features), first, first+height, 3*width), wantRows(want, 0, height), 2e-6, 0)
}

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
func (c *conv) run(t *trial, first, count, from, to, ring, outRing int) []float32 {
	terms, n, width := len(c.kernels)/len(c.biases), len(c.biases), c.rows(c.width)
	turned := make([]float32, len(c.kernels))
	for i, w := range c.kernels {
		turned[i%terms*n+i/terms] = w
	}
	made := out[float32](t, outRing*n*width)
	t.dispatch(&shaders.LpipsConv{MapRows: in(t, bandRows(first, count)...), Features: in(t, ringOf(c.in, from, to,
		ring)...), Weights: in(t, turned...), Biases: in(t, c.biases...), Convolved: made,
		Push: shaders.LpipsConvPush{Layer: 1, Width: uint32(c.width), Height: uint32(c.height),
			Channels: uint32(c.in.C), Ring: uint32(ring), OutWidth: uint32(width), OutChannels: uint32(n),
			OutRing: uint32(outRing)}, Spec: shaders.LpipsConvSpec{WorkgroupSize: c.lanes, Side: uint32(c.side),
			Stride: uint32(c.stride), Pad: uint32(c.pad)}}, vk.Groups3((count*width+127)/128+1, (n+63)/64, 1))
	t.run()
	return bandOf(got(t, made), first, first+count, n*width)
}

func (c *conv) want() ref.Maps[float64] {
	return ref.Convolve(maps64(c.in), ref.ConvertSlice[float64](c.kernels), ref.ConvertSlice[float64](c.biases), c.side,
		c.stride, c.pad)
}

func (c *conv) check(t *trial) {
	rows := c.rows(c.height)
	terms := float64(len(c.kernels)/len(c.biases) + 1)
	// Rounding of each of the sum's terms, which are of size 1 and whose sum is of size sqrt(terms).
	near("convolved", c.run(t, 0, rows, 0, c.height, max(c.height, c.side), rows), wantRows(c.want(), 0, rows),
		6e-8*terms*math.Sqrt(terms)+1e-6, 1e-6)
}

// checkConvBands makes an output whole, and then in bands of rows with no more in memory than they need.
func checkConvBands(t *trial, size conv) {
	c := size.fill(t, 6, 20)
	rows := c.rows(c.height)
	whole := c.run(t, 0, rows, 0, c.height, c.height, rows)
	row := len(whole) / rows
	for _, count := range []int{1, 4, 7} {
		for first := 0; first < rows; first += count {
			n := min(count, rows-first)
			from, to := max(0, first*c.stride-c.pad), min(c.height, (first+n-1)*c.stride-c.pad+c.side)
			during(fmt.Sprintf("rows %d to %d", first, first+n), func() {
				same("convolved", c.run(t, first, n, from, to, max(to-from, c.side), n+1),
					whole[first*row:(first+n)*row])
			})
		}
	}
}

// checkPool pools in two bands, the second with a ring that wraps.
func checkPool(t *trial, side, stride, width, height, channels int) {
	m := t.maps(channels, height, width)
	want := ref.MaxPool(maps64(m), side, stride)
	for first := 0; first < want.Height; first += max(1, want.Height/2) {
		count := min(max(1, want.Height/2), want.Height-first)
		from, to := first*stride, (first+count-1)*stride+side
		pooled := out[float32](t, (count+1)*channels*want.Width)
		t.dispatch(&shaders.LpipsPool{MapRows: in(t, bandRows(first, count)...), Features: in(t, ringOf(m, from, to,
			to-from)...), Pooled: pooled, Push: shaders.LpipsPoolPush{Layer: 1, Channels: uint32(channels),
			Width: uint32(width), Ring: uint32(to - from), OutWidth: uint32(want.Width), OutRing: uint32(count + 1)},
			Spec: shaders.LpipsPoolSpec{Side: uint32(side), Stride: uint32(stride)}},
			vk.Items(count*channels*want.Width+300, 256))
		t.run()
		near("pooled", bandOf(got(t, pooled), first, first+count, channels*want.Width),
			wantRows(want, first, first+count), 0, 0)
	}
}

// checkLPIPSDistance compares features of which one pixel has none in either picture.
func checkLPIPSDistance(t *trial, channels, width, height int, equal bool) {
	a, b := t.maps(channels, height, width), t.maps(channels, height, width)
	weights := t.maps(1, 1, channels).Data
	for i, w := range weights {
		weights[i] = w * w
	}
	if equal {
		b = a
	} else if width > 1 {
		for c := range channels {
			a.Data[c*height*width+1], b.Data[c*height*width+1] = 0, 0
		}
	}
	const first, before = 6, 3 // rows of the maps in front of the band, numbers in front of the layer's sums
	sums := out[float32](t, before+first+height)
	shifted := func(m ref.Maps[float32]) []float32 { // rows as if there were some before
		plain, row := ringOf(m, 0, height, height), channels*width
		out := make([]float32, len(plain))
		for y := range height {
			copy(out[(y+first)%height*row:][:row], plain[y*row:][:row])
		}
		return out
	}
	t.dispatch(&shaders.LpipsDistance{MapRows: in(t, bandRows(first, height)...), FeaturesX: in(t, shifted(a)...),
		FeaturesY: in(t, shifted(b)...), ChannelWeights: in(t, weights...), RowSums: sums,
		Push: shaders.LpipsDistancePush{Layer: 1, Channels: uint32(channels), Width: uint32(width),
			Ring: uint32(height), FirstSum: before}}, vk.Groups(height+2))
	t.run()
	if equal {
		same("row_sums", got(t, sums)[before+first:], make([]float32, height))
		return
	}
	// Sums of positive numbers; lengths and quotients are a few units in the last place off.
	near("row_sums", got(t, sums)[before+first:],
		ref.LPIPSDistance(maps64(a), maps64(b), ref.ConvertSlice[float64](weights)), 1e-6, 2e-5)
}
