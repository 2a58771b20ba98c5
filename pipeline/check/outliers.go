package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func outlierCases() []Case {
	sizes := [][2]int{{1, 1}, {3, 2}, {16, 16}, {17, 1}, {50, 40}, {70, 33}}
	found := func(change func(*strayPixels)) func(t *trial) {
		return over(sizes, func(t *trial, s [2]int) { checkOutliers(t, s[0], s[1], 0, change) })
	}
	places := func(bands int) func(t *trial) {
		return over(sizes, func(t *trial, s [2]int) {
			checkPlaces(t, t.ellipses(60, s[0], s[1]), t.camera(s[0], s[1]), bands)
			checkPlaces(t, t.crowd(200, s[0], s[1], 0.5), t.camera(s[0], s[1]), bands)
		})
	}
	return slices.Concat(casesOf("find_places", table{
		{"sizes", places(1)}, {"bands", places(3)},
		{"fisheye", func(t *trial) {
			v := t.camera(50, 40)
			v.Fisheye = true
			checkPlaces(t, t.crowd(200, 50, 40, 0.5), v, 1)
		}},
		{"no splats", func(t *trial) { checkPlaces(t, t.ellipses(0, 40, 30), t.camera(40, 30), 1) }},
	}), casesOf("find_outliers", table{
		{"sizes", found(func(*strayPixels) {})},
		{"nothing is known", found(func(o *strayPixels) { o.share = 0 })},
		{"most is suspect", found(func(o *strayPixels) { o.share = 0.2 })},
		{"nobody agrees", found(func(o *strayPixels) { o.agree = 0 })},
		{"masks", found(func(o *strayPixels) { o.photo.masked(0.8) })},
		{"smaller than the photo", over([]int{1, 2}, func(t *trial, level int) {
			checkOutliers(t, 150, 131, level, func(o *strayPixels) { o.photo.masked(0.97) })
		})},
	}), casesOf("track_errors", table{
		{"sizes", over(sizes, func(t *trial, s [2]int) { checkTracked(t, s[0], s[1], 0) })},
		{"a failed unit changes nothing", over([]uint32{layout.FailedIsects, layout.FailedPeer},
			func(t *trial, f uint32) { checkTracked(t, 50, 40, f) })},
	}))
}

// checkPlaces finds places band after band into one buffer.
func checkPlaces(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands int) {
	for i := range p.DepthKeys {
		if p.DepthKeys[i] != layout.Culled {
			p.DepthKeys[i] = math.Float32bits(1 + 5*t.Float32())
		}
	}
	whole := v.Grid()
	n := whole.Tiles() * layout.TileSquares
	shown, want := out[uint32](t, n), make([][]uint32, n)
	for band := range bands {
		g := whole.Band(band, bands)
		lists := ref.NewLists(p, g)
		for i, x := range ref.Places(projection64(p), lists, ref.ConvertView[float64](v), g) {
			if x != nil {
				want[i] = x
			}
		}
		t.dispatch(&shaders.FindPlaces{Params: in(t, paramsOf(v)), TileOffsets: in(t, lists.TileOffsets...),
			SlotFromIsect: in(t, lists.SlotFromIsect...), SplatFromSlot: in(t, lists.SplatFromSlot...), Shapes: in(t,
				shapesOf(p)...), Paints: in(t, paintsOf(p.Splats)...), DepthKeys: in(t, p.DepthKeys...), Places: shown,
			Push: shaders.FindPlacesPush{Band: uint32(band), NBands: uint32(bands)}}, vk.Groups(whole.Tiles()+6))
	}
	t.run()
	differ := 0 // splats on the threshold of alpha may go either way
	for i, x := range got(t, shown) {
		if !slices.Contains(want[i], x) {
			if differ++; differ > outliers(len(want)) {
				failf("binding places: square %d shows place %d, want one of %d", i, x, want[i])
			}
		}
	}
}

// strayPixels is a photo of which some pixels count.
type strayPixels struct {
	photo *photo
	share float64 // of the pixels whose error is too small to be suspect; 0: there is no threshold
	agree float64 // share of the places where other photos agree
}

// inliers are the bits of the pixels that count, tile by tile.
func (p *photo) inliers() []uint32 {
	cols := (p.width + 15) / 16
	words := make([]uint32, layout.CountWords*cols*((p.height+15)/16))
	for i := range p.width * p.height {
		x, y := i%p.width, i/p.width
		if bit := y%16*16 + x%16; p.counts(i) {
			words[layout.CountWords*(y/16*cols+x/16)+bit/32] |= 1 << (bit % 32)
		}
	}
	return words
}

// checkOutliers makes a photo with a lump of large errors, and checks what is found of it.
func checkOutliers(t *trial, width, height, level int, change func(*strayPixels)) {
	o := &strayPixels{photo: newPhoto(t, width, height, false).shrunk(level), share: 0.7, agree: 0.8}
	for i := range o.photo.render {
		if x, y := i%o.photo.width, i/o.photo.width; x > 20 && x < 41 && y > 9 && y < 33 {
			o.photo.render[i][1] += 0.9
		}
	}
	change(o)
	eachOf([]bool{false, true}, func(floats bool) {
		o.photo.floats = floats
		o.check()
	})
}

// judge returns what pixels are judged by, with a history of which few places are used: no error lies on a border.
func (o *strayPixels) judge(mask []uint32, tiles int) *ref.Outliers[float64] {
	p := o.photo
	c := &ref.Outliers[float64]{Factor: 2.5, Mask: mask, Photo: 37, History: make(ref.History, layout.HistoryWords),
		Places: make([]uint32, tiles*layout.TileSquares)}
	for i := range c.Places {
		c.Places[i] = uint32(2 + p.t.IntN(40))
	}
	c.Places[0] = layout.HistoryWords - 1
	for _, place := range c.Places {
		c.History[place] = 1 << 5 // the photo's own, which says nothing
		if p.t.Float64() < o.agree {
			c.History[place] |= uint32(p.t.IntN(1<<16)) | 1<<(16+p.t.IntN(16))
		}
	}
	all := ref.OutlierErrors(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, mask)
	var list []float64
	for i, e := range all {
		if p.counts(i) {
			list = append(list, e)
		}
	}
	slices.Sort(list)
	if o.share == 0 || len(list) == 0 {
		return c
	}
	const n = 1000
	mean := list[int(o.share*float64(len(list)))] / (layout.Suspect * c.Factor)
	c.History[0], c.History[1] = uint32(mean*n*layout.ErrorOne), n
	for onBorder(c.Large(), list) {
		c.History[0]++
	}
	return c
}

// onBorder reports whether rounding decides of any error if it is suspect, or large.
func onBorder(large float64, errors []float64) bool {
	return slices.ContainsFunc(errors, func(e float64) bool {
		return math.Abs(e-large) < 1e-6 || math.Abs(e-layout.Suspect*large) < 1e-6
	})
}

func (o *strayPixels) check() {
	p, t := o.photo, o.photo.t
	params, render, target := p.inputs()
	tiles := int(params.View.TileWidth * params.View.TileHeight)
	c := o.judge(ref.ShrinkMask(p.mask, p.texelWidth, p.texelHeight, p.level), tiles)
	params.RobustFactor, params.ViewId = float32(c.Factor), c.Photo
	want, squares := ref.FindOutliers(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, c)
	counted := *p
	counted.level, counted.texelWidth, counted.texelHeight, counted.mask = 0, p.width, p.height, want
	t.dispatch(&shaders.FindOutliers{
		Params: in(t, params), History: in(t, []uint32(c.History)...), Render: render, Target: target,
		Places: in(t, c.Places...), Inliers: out[uint32](t, layout.CountWords*tiles, exactly(counted.inliers()...)),
		Errors: out[uint32](t, layout.TileSquares*tiles, func(b *binding) { sameSquares(b.words, squares) }),
		Spec:   shaders.FindOutliersSpec{TargetFloat: p.floats, Masked: p.mask != nil, Shrunk: p.level > 0},
	}, vk.Groups(tiles+2))
	t.run()
}

// sameSquares compares squares: a float32 error may be rounded to the next number, and lie beyond a border.
func sameSquares(got, want []uint32) {
	off := 0
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		off++
		d := int32(got[i]&0xFFFF) - int32(want[i]&0xFFFF)
		if got[i] == layout.NoSquare || want[i] == layout.NoSquare || d < -1 || d > 1 || off > 1+len(want)/50 {
			failf("binding errors: square %d is %#x, want %#x; %d differ so far", i, got[i], want[i], off)
		}
	}
}

// checkTracked takes a step that sees some places several times.
func checkTracked(t *trial, width, height int, failed uint32) {
	v := t.camera(width, height)
	n := v.Grid().Tiles() * layout.TileSquares
	history, places, squares := make([]uint32, layout.HistoryWords), make([]uint32, n), make([]uint32, n)
	for i := range 100 {
		history[i] = uint32(t.IntN(1 << 30))
	}
	for i := range places {
		places[i] = uint32(2 + t.IntN(60))
		squares[i] = uint32(t.IntN(layout.ErrorOne))
		switch t.IntN(4) {
		case 0:
			squares[i] = layout.NoSquare
		case 1:
			squares[i] |= layout.SquareAgrees
		case 2:
			squares[i] |= layout.SquareDiffers
		}
	}
	want, params := slices.Clone(history), paramsOf(v)
	if params.ViewId = 45; failed == 0 {
		ref.TrackErrors(want, places, squares, params.ViewId)
	}
	tracked := update(t, history, exactly(want...))
	for note := range uint32(2) {
		t.dispatch(&shaders.TrackErrors{Params: in(t, params), Counters: in(t, with(make([]uint32, layout.NCounters),
			layout.Failed, failed)...), Places: in(t, places...), Errors: in(t, squares...), History: tracked,
			Push: shaders.TrackErrorsPush{Note: note}}, vk.Items(n+300, 256))
	}
	t.run()
}
