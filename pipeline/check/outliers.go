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

func outlierCases() []Case {
	sizes := [][2]int{{1, 1}, {3, 2}, {16, 16}, {17, 1}, {50, 40}, {70, 33}}
	table := func(change func(*strayPixels)) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error { return t.outliersOf(s[0], s[1], 0, change) })
		}
	}
	places := func(bands int) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]int) error {
				return first(checkPlaces(t, t.ellipses(60, s[0], s[1]), t.camera(s[0], s[1]), bands),
					checkPlaces(t, t.crowd(200, s[0], s[1], 0.5), t.camera(s[0], s[1]), bands))
			})
		}
	}
	return []Case{
		newCase("find_places", "sizes", places(1)),
		newCase("find_places", "bands", places(3)),
		newCase("find_places", "fisheye", func(t *trial) error {
			v := t.camera(50, 40)
			v.Fisheye = true
			return checkPlaces(t, t.crowd(200, 50, 40, 0.5), v, 1)
		}),
		newCase("find_places", "no splats",
			func(t *trial) error { return checkPlaces(t, t.ellipses(0, 40, 30), t.camera(40, 30), 1) }),
		newCase("find_outliers", "sizes", table(func(*strayPixels) {})),
		newCase("find_outliers", "nothing is known", table(func(o *strayPixels) { o.share = 0 })),
		newCase("find_outliers", "most is suspect", table(func(o *strayPixels) { o.share = 0.2 })),
		newCase("find_outliers", "nobody agrees", table(func(o *strayPixels) { o.agree = 0 })),
		newCase("find_outliers", "masks", table(func(o *strayPixels) { o.photo.masked(0.8) })),
		newCase("find_outliers", "smaller than the photo", func(t *trial) error {
			return each([]int{1, 2}, func(level int) error {
				return t.outliersOf(150, 131, level, func(o *strayPixels) { o.photo.masked(0.97) })
			})
		}),
		newCase("track_errors", "sizes", func(t *trial) error {
			return each(sizes, func(s [2]int) error { return t.tracked(s[0], s[1], 0) })
		}),
		newCase("track_errors", "a failed unit changes nothing", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedPeer},
				func(f uint32) error { return t.tracked(50, 40, f) })
		}),
	}
}

// checkPlaces finds places band after band into one buffer.
func checkPlaces(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands int) error {
	for i := range p.DepthKeys {
		if p.DepthKeys[i] != layout.Culled {
			p.DepthKeys[i] = math.Float32bits(1 + 5*t.Float32())
		}
	}
	l, whole := t.list(), v.Grid()
	n := whole.Tiles() * layout.TileSquares
	out, want := output[uint32](l, "places", n), make([][]uint32, n)
	for band := range bands {
		g := whole.Band(band, bands)
		lists := ref.NewLists(p, g)
		for i, x := range ref.Places(projection64(p), lists, ref.ConvertView[float64](v), g) {
			if x != nil {
				want[i] = x
			}
		}
		l.r.Dispatch(&shaders.FindPlaces{
			Params:        input(l, "params", []layout.StepParams{paramsOf(v)}),
			TileOffsets:   input(l, "tile_offsets", lists.TileOffsets),
			SlotFromIsect: input(l, "slot_from_isect", lists.SlotFromIsect),
			SplatFromSlot: input(l, "splat_from_slot", lists.SplatFromSlot),
			Shapes:        input(l, "shapes", shapesOf(p)),
			Paints:        input(l, "paints", paintsOf(p.Splats)),
			DepthKeys:     input(l, "depth_keys", p.DepthKeys),
			Places:        out.Slice, Push: shaders.FindPlacesPush{Band: uint32(band), NBands: uint32(bands)},
		}, vk.Groups(whole.Tiles()+6))
	}
	if err := l.run(); err != nil {
		return err
	}
	differ := 0 // splats on the threshold of alpha may go either way
	for i, x := range out.got {
		if !slices.Contains(want[i], x) {
			if differ++; differ > outliers(len(want)) {
				return fmt.Errorf("binding places: square %d shows place %d, want one of %d", i, x, want[i])
			}
		}
	}
	return nil
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

// outliersOf makes a photo with a lump of large errors, and checks what is found of it.
func (t *trial) outliersOf(width, height, level int, change func(*strayPixels)) error {
	o := &strayPixels{photo: t.photo(width, height, false).shrunk(level), share: 0.7, agree: 0.8}
	for i := range o.photo.render {
		if x, y := i%o.photo.width, i/o.photo.width; x > 20 && x < 41 && y > 9 && y < 33 {
			o.photo.render[i][1] += 0.9
		}
	}
	change(o)
	return each([]bool{false, true}, func(floats bool) error {
		o.photo.floats = floats
		return o.check()
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

func (o *strayPixels) check() error {
	p := o.photo
	l := p.t.list()
	params, render, target := p.inputs(l)
	tiles := int(params.View.TileWidth * params.View.TileHeight)
	c := o.judge(ref.ShrinkMask(p.mask, p.texelWidth, p.texelHeight, p.level), tiles)
	params.RobustFactor, params.ViewId = float32(c.Factor), c.Photo
	inliers, errors := output[uint32](l, "inliers", layout.CountWords*tiles),
		output[uint32](l, "errors", layout.TileSquares*tiles)
	l.r.Dispatch(&shaders.FindOutliers{
		Params: input(l, "params", []layout.StepParams{params}), History: input(l, "history", []uint32(c.History)),
		Render: render, Target: target, Places: input(l, "places", c.Places), Inliers: inliers.Slice,
		Errors: errors.Slice,
		Spec:   shaders.FindOutliersSpec{TargetFloat: p.floats, Masked: p.mask != nil, Shrunk: p.level > 0},
	}, vk.Groups(tiles+2))
	if err := l.run(); err != nil {
		return err
	}
	want, squares := ref.FindOutliers(pixels64(p.render), ref.ConvertSlice[float64](p.target), p.width, p.height, c)
	counted := *p
	counted.level, counted.texelWidth, counted.texelHeight, counted.mask = 0, p.width, p.height, want
	return first(equal("inliers", inliers.got, counted.inliers()), sameSquares(errors.got, squares))
}

// sameSquares compares squares: a float32 error may be rounded to the next number, and lie beyond a border.
func sameSquares(got, want []uint32) error {
	off := 0
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		off++
		d := int32(got[i]&0xFFFF) - int32(want[i]&0xFFFF)
		if got[i] == layout.NoSquare || want[i] == layout.NoSquare || d < -1 || d > 1 || off > 1+len(want)/50 {
			return fmt.Errorf("binding errors: square %d is %#x, want %#x; %d differ so far", i, got[i], want[i], off)
		}
	}
	return nil
}

// tracked checks a step that sees some places several times.
func (t *trial) tracked(width, height int, failed uint32) error {
	l, v := t.list(), t.camera(width, height)
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
	counters, params := make([]uint32, layout.NCounters), paramsOf(v)
	counters[layout.Failed], params.ViewId = failed, 45
	out := inout(l, "history", slices.Clone(history))
	for note := range uint32(2) {
		l.r.Dispatch(&shaders.TrackErrors{
			Params: input(l, "params", []layout.StepParams{params}), Counters: input(l, "counters", counters),
			Places: input(l, "places", places), Errors: input(l, "errors", squares), History: out.Slice,
			Push: shaders.TrackErrorsPush{Note: note},
		}, vk.Items(n+300, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	if failed == 0 {
		ref.TrackErrors(history, places, squares, 45)
	}
	return equal("history", out.got, history)
}
