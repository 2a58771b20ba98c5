package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

const (
	siftPeak = float32(0.02) / 3
	siftEdge = 10
)

func siftCases() []Case {
	return slices.Concat(casesOf("sift_input", table{
		{"sizes", over([][2]int{{1, 1}, {3, 2}, {64, 33}, {255, 9}, {257, 3}}, func(t *trial, s [2]int) {
			for _, zoom := range []int{1, 2} {
				checkSiftInput(t, s[0], s[1], zoom, 0, s[1]*zoom)
			}
		})},
		{"bands", func(t *trial) { checkSiftInput(t, 37, 20, 2, 13, 11) }},
	}), shapedCases("sift_blur", table{
		{"sizes around tiles", over([][2]int{{1, 1}, {31, 97}, {32, 96}, {33, 95}, {97, 33}, {130, 200}, {5, 193}},
			func(t *trial, s [2]int) { checkSiftBlur(t, s[0], s[1], 9) })},
		{"radius", over([]int{0, 1, 5, 13}, func(t *trial, radius int) { checkSiftBlur(t, 100, 40, radius) })},
	}), casesOf("sift_halve", table{
		{"sizes", over([][2]int{{1, 1}, {2, 2}, {255, 5}, {515, 8}, {64, 31}},
			func(t *trial, s [2]int) { checkSiftHalve(t, s[0], s[1]) })},
	}), shapedCases("sift_extrema", table{
		{"sizes around tiles", over([][2]int{{16, 16}, {32, 16}, {33, 17}, {95, 47}, {3, 3}, {1, 1}, {140, 90}},
			func(t *trial, s [2]int) { checkSiftExtrema(t, siftOctave(t.source, s[0], s[1])) })},
		{"more than there is room for", func(t *trial) { checkSiftExtrema(t, siftLattice(t.source, 70, 40)) }},
		{"bands give the same bytes", checkSiftBands},
	}), casesOf("sift_orient", table{
		{"points", func(t *trial) { checkSiftOrient(t, siftOctave(t.source, 120, 80), 300) }},
		{"a workgroup more than points", func(t *trial) { checkSiftOrient(t, siftOctave(t.source, 20, 30), 1) }},
		{"no gradient", func(t *trial) { checkSiftOrient(t, flatOctave(40, 40), 5) }},
	}), shapedCases("sift_describe", table{
		{"points", func(t *trial) { checkSiftDescribe(t, siftOctave(t.source, 120, 80), 200) }},
		{"no gradient", func(t *trial) { checkSiftDescribe(t, flatOctave(40, 40), 5) }},
	}))
}

// siftBand is rows [first, first + rows) of an octave.
func siftBand(width, height, first, rows int) layout.SiftBand {
	return layout.SiftBand{Width: uint32(width), Height: uint32(height), Pitch: uint32(width + 3), First: uint32(first),
		Rows: uint32(rows)}
}

// pitched lays out rows of a plane, with NaN between them.
func pitched(p ref.Plane[float32], first, rows int) (list []float32) {
	for y := first; y < first+rows; y++ {
		list = append(append(list, p.Data[y*p.Width:][:p.Width]...), nan, nan, nan)
	}
	return list
}

// nearPlane wants a plane's pixels, and nothing written between its rows.
func nearPlane[T ref.Real](want ref.Plane[T], abs float64) judge {
	return func(b *binding) {
		all := b.end.([]float32)
		for y := range want.Height {
			row := writtenPart(b.name, all[y*(want.Width+3):][:want.Width+3], 0, want.Width)
			near(b.name, row, want.Data[y*want.Width:][:want.Width], abs, 0)
		}
	}
}

func rowsOf[T ref.Real](p ref.Plane[T], first, rows int) ref.Plane[T] {
	return ref.Plane[T]{Width: p.Width, Height: rows, Data: p.Data[first*p.Width:][:rows*p.Width]}
}

func checkSiftInput(t *trial, width, height, zoom, first, rows int) {
	photo := make([]byte, (width*height+3)/4*4)
	for i := range photo {
		photo[i] = byte(t.IntN(256))
	}
	want := rowsOf(ref.SiftInput[float64](photo[:width*height], width, height, zoom), first, rows)
	t.dispatch(&shaders.SiftInput{Photo: in(t, wordsOf(photo)...),
		Plane: out[float32](t, rows*(zoom*width+3), nearPlane(want, 1e-7)),
		Push: shaders.SiftInputPush{Band: siftBand(zoom*width, zoom*height, first, rows), Zoom: uint32(zoom),
			PhotoWidth: uint32(width), PhotoHeight: uint32(height)}}, vk.Items(rows*zoom*width+300, 256))
	t.run()
}

func plane(t source, width, height int) ref.Plane[float32] {
	return ref.Plane[float32]{Width: width, Height: height, Data: t.anyPositive(width * height)}
}

func plane64(p ref.Plane[float32]) ref.Plane[float64] {
	return ref.Plane[float64]{Width: p.Width, Height: p.Height, Data: ref.ConvertSlice[float64](p.Data)}
}

// siftWeights are those of a Gaussian on one side.
func siftWeights(sigma float64, radius int) (w [17]float32) {
	sum := 0.0
	for i := range radius + 1 {
		sum += math.Exp(-float64(i*i)/(2*sigma*sigma)) * float64(min(i+1, 2))
	}
	for i := range radius + 1 {
		w[i] = float32(math.Exp(-float64(i*i)/(2*sigma*sigma)) / sum)
	}
	return w
}

func checkSiftBlur(t *trial, width, height, radius int) {
	p, weights := plane(t.source, width, height), siftWeights(2.5, radius)
	want := ref.SiftBlur(plane64(p), ref.ConvertSlice[float64](weights[:radius+1]))
	pitch := width + 3
	turned := scratch[float32](t, width*(height+2))
	blurred := out[float32](t, height*pitch, nearPlane(want, 2e-6))
	turn := func(from, to vk.Slice[float32], width, rows, pitch, toPitch int) {
		grid, spec := vk.Groups((width+95)/96*((rows+31)/32)+1), shaders.SiftBlurSpec{}
		if t.processor {
			grid, spec.Radius = vk.Items((width+31)/32*rows+256, 256), uint32(radius)
		}
		t.dispatch(&shaders.SiftBlur{Plane: from, Blurred: to, Processor: t.processor, Spec: spec,
			Push: shaders.SiftBlurPush{Width: uint32(width), Rows: uint32(rows), Pitch: uint32(pitch),
				BlurredPitch: uint32(toPitch), Radius: uint32(radius), Weights: weights}}, grid)
	}
	turn(in(t, pitched(p, 0, height)...), turned, width, height, pitch, height+2)
	turn(turned, blurred, height, width, height+2, pitch)
	t.run()
}

// checkSiftHalve makes the next octave of two bands.
func checkSiftHalve(t *trial, width, height int) {
	p := plane(t.source, width, height)
	want := ref.SiftHalve(p)
	halved := out[float32](t, want.Height*(want.Width+3), nearPlane(want, 0))
	cut := height / 2 &^ 1
	for _, rows := range [][2]int{{0, cut}, {cut, height}} {
		first, n := (rows[0]+1)/2, (rows[1]+1)/2-(rows[0]+1)/2
		begin := max(0, rows[0]-1)
		t.dispatch(&shaders.SiftHalve{Plane: in(t, pitched(p, begin, rows[1]-begin)...), Halved: halved,
			Push: shaders.SiftHalvePush{Band: siftBand(width, height, begin, rows[1]-begin), Width: uint32(want.Width),
				Pitch: uint32(want.Width + 3), First: uint32(first), Rows: uint32(n)}}, vk.Items(n*want.Width+256, 256))
	}
	t.run()
}

// siftOctave is the levels of a picture of spots.
func siftOctave(t source, width, height int) *ref.SiftOctave[float32] {
	p := ref.NewPlane[float32](width, height)
	for range width*height/60 + 1 {
		x, y, size, light := t.Float64()*float64(width), t.Float64()*float64(height), 1+3*t.Float64(), t.Float64()-0.5
		for i := range p.Data {
			dx, dy := float64(i%width)-x, float64(i/width)-y
			if r := (dx*dx + 0.7*dy*dy) / (size * size); r < 12 {
				p.Data[i] += float32(light * math.Exp(-r))
			}
		}
	}
	var o ref.SiftOctave[float32]
	for i := range o {
		weights := siftWeights(1+0.5*float64(i), 4+i)
		p = ref.SiftBlur(p, weights[:5+i])
		o[i] = p
	}
	return &o
}

// siftLattice has an extremum at every third pixel.
func siftLattice(t source, width, height int) *ref.SiftOctave[float32] {
	o := flatOctave(width, height)
	for i := range o[3].Data {
		if i%width%3 == 1 && i/width%3 == 1 {
			o[3].Data[i] = float32(0.5 + t.Float64())
		}
	}
	o[4] = o[3]
	return o
}

func flatOctave(width, height int) *ref.SiftOctave[float32] {
	var o ref.SiftOctave[float32]
	for i := range o {
		o[i] = ref.NewPlane[float32](width, height)
	}
	return &o
}

// siftRows binds rows of an octave's levels.
func siftRows(t *trial, o *ref.SiftOctave[float32], first, rows int) vk.Slice[float32] {
	var all []float32
	for i := range o {
		all = append(all, pitched(o[i], first, rows)...)
	}
	return in(t, all...)
}

// siftBandOf is a band with rows [begin, end) and some more.
func siftBandOf(o *ref.SiftOctave[float32], begin, end, more int) (first, rows int, b layout.SiftBand) {
	first = max(0, begin-more)
	rows = min(end+more, o[0].Height) - first
	return first, rows, siftBand(o[0].Width, o[0].Height, first, rows)
}

// extrema records sift_extrema over rows [begin, end), whose tiles come after so many others.
func (t *trial) extrema(o *ref.SiftOctave[float32], begin, end, tile, more int, points vk.Slice[layout.SiftPoint],
	counts vk.Slice[uint32]) {
	first, rows, band := siftBandOf(o, begin, end, more)
	t.dispatch(&shaders.SiftExtrema{Levels: siftRows(t, o, first, rows), Points: points, Counts: counts,
		Processor: t.processor, Push: shaders.SiftExtremaPush{Band: band, Begin: uint32(begin), End: uint32(end),
			First: uint32(tile), Peak: siftPeak, Edge: siftEdge}}, vk.Groups((o[0].Width+31)/32*((end-begin+15)/16)))
}

func checkSiftExtrema(t *trial, o *ref.SiftOctave[float32]) {
	want := ref.SiftExtrema(o, siftPeak, siftEdge)
	numbers := make([]uint32, len(want))
	for i := range want {
		numbers[i] = uint32(len(want[i]))
	}
	counts := out[uint32](t, len(want), exactly(numbers...))
	points := out[layout.SiftPoint](t, len(want)*ref.SiftSlots)
	t.extrema(o, 0, o[0].Height, 0, 0, points, counts)
	t.run()
	for tile, found := range want {
		for i, p := range writtenPart("points", got(t, points)[tile*ref.SiftSlots:][:ref.SiftSlots], 0, len(found)) {
			// Differences of numbers of size 1 with a curvature of 0.01 and more.
			near("points", []float32{p.X, p.Y, p.Level}, []float32{found[i].X, found[i].Y, found[i].Level}, 2e-3, 0)
			same("points", []uint32{p.Nearest}, []uint32{found[i].Nearest})
		}
	}
}

// checkSiftBands finds the extrema of a whole octave, and of three bands.
func checkSiftBands(t *trial) {
	o := siftOctave(t.source, 90, 120)
	var all [2][]layout.SiftPoint
	for i, cuts := range [][]int{{0, 120}, {0, 32, 48, 120}} {
		points, counts := out[layout.SiftPoint](t, 24*ref.SiftSlots), scratch[uint32](t, 24)
		for k, begin := range cuts[:len(cuts)-1] {
			t.extrema(o, begin, cuts[k+1], begin/16*3, 7, points, counts)
		}
		t.run()
		all[i] = got(t, points)
	}
	same("points", all[1], all[0])
}

// siftPoints are places in an octave, at its border too.
func siftPoints(t source, o *ref.SiftOctave[float32], n int) (list []layout.SiftPoint) {
	for range n {
		nearest := 1 + t.IntN(3)
		list = append(list, layout.SiftPoint{X: t.Float32() * float32(o[0].Width-1),
			Y: t.Float32() * float32(o[0].Height-1), Level: float32(nearest) + 2*t.Float32() - 1,
			Nearest: uint32(nearest)})
	}
	return list
}

func checkSiftOrient(t *trial, o *ref.SiftOctave[float32], n int) {
	list := append(siftPoints(t.source, o, 2), siftPoints(t.source, o, n)...)
	width, height := o[0].Width, o[0].Height
	angles := out[[2]float32](t, len(list))
	t.dispatch(&shaders.SiftOrient{Points: in(t, list...), Levels: siftRows(t, o, 0, height), Angles: angles,
		Runs: in(t, layout.SiftRun{}, layout.SiftRun{First: 2, N: uint32(n)}),
		Push: shaders.SiftOrientPush{Band: siftBand(width, height, 0, height), Run: 1}},
		vk.Groups(n+1))
	t.run()
	writtenPart("angles", got(t, angles), 2, len(list))
	for i, p := range list[2:] {
		during(p, func() { checkPeaks(got(t, angles)[2+i], ref.SiftOrient(o, p)) })
	}
}

// checkPeaks wants the two highest peaks, of which the second has 0.8 of the first. Heights so close that rounding
// decides may change places.
func checkPeaks(got [2]float32, peaks []ref.SiftDirection) {
	const close, few = 2e-3, 2e-3 // of heights; radians
	peaks = append(peaks, ref.SiftDirection{Angle: -1}, ref.SiftDirection{Angle: -1})
	for k, angle := range got {
		at := slices.IndexFunc(peaks, func(p ref.SiftDirection) bool {
			return p.Angle == -1 && angle == -1 ||
				p.Angle >= 0 && angle >= 0 && math.Abs(math.Remainder(float64(angle)-p.Angle, 2*math.Pi)) < few
		})
		least := peaks[k].Height
		if k == 1 && least < 0.8*peaks[0].Height*(1+close) {
			least = 0
		}
		if at < 0 || peaks[at].Height < least*(1-close) ||
			k == 1 && angle >= 0 && peaks[at].Height < 0.8*peaks[0].Height*(1-close) {
			failf("binding angles: got %v, want the highest of %v", got, peaks)
		}
	}
}

// checkSiftDescribe describes points whole and in a band that just holds what they need. Of every third point the
// second direction is missing.
func checkSiftDescribe(t *trial, o *ref.SiftOctave[float32], n int) {
	list := append(siftPoints(t.source, o, 1), siftPoints(t.source, o, n)...)
	angles := make([]float32, 2*len(list))
	for i := range angles {
		if angles[i] = 2 * math.Pi * t.Float32(); i%6 == 5 {
			angles[i] = -1
		}
	}
	const rows = 20
	grid := vk.Groups(2*n + 1)
	if t.processor {
		grid = vk.Items(2*n+64, 64)
	}
	for i := 1; i < len(list); i++ {
		list[i].Y = min(list[i].Y, rows)
	}
	var all [2][]uint32
	for i, end := range []int{o[0].Height, rows} {
		_, height, band := siftBandOf(o, 0, end, 50)
		made := out[uint32](t, 64*len(list))
		t.dispatch(&shaders.SiftDescribe{Points: in(t, list...), Angles: in(t, angles...),
			Levels: siftRows(t, o, 0, height), Descriptors: made,
			Runs: in(t, layout.SiftRun{}, layout.SiftRun{First: 1, N: uint32(n)}), Processor: t.processor,
			Push: shaders.SiftDescribePush{Band: band, Run: 1}}, grid)
		t.run()
		all[i] = got(t, made)
	}
	same("descriptors", all[1], all[0])
	writtenPart("descriptors", all[0], 64, len(all[0]))
	for i := 2; i < len(angles); i++ {
		words := all[0][32*i:][:32]
		if angles[i] < 0 {
			writtenPart("descriptors", words, 0, 0)
			continue
		}
		d := ref.SiftDescribe(o, list[i/2], float64(angles[i]))
		bytes := make([]float32, len(d))
		for k := range bytes {
			bytes[k] = float32(words[k/4] >> (k % 4 * 8) & 0xFF)
		}
		near("descriptors", bytes, d[:], 1.01, 0) // rounded to whole numbers, once a root of a small share
	}
}
