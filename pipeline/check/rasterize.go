package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func rasterizeCases() []Case {
	image := func(width, height, n int, keep bool) func(t *trial) error {
		return func(t *trial) error {
			return checkImage(t, t.ellipses(n, width, height), t.camera(width, height), keep)
		}
	}
	return []Case{
		rasterCase("rasterize", "no splats", func(t *trial) error {
			return first(image(40, 30, 0, true)(t), image(1, 1, 0, true)(t), image(16, 16, 0, false)(t))
		}),
		rasterCase("rasterize", "sizes of views", func(t *trial) error {
			return each([][2]int{{1, 1}, {15, 15}, {16, 16}, {17, 16}, {16, 17}, {37, 90}},
				func(s [2]int) error { return image(s[0], s[1], 60, true)(t) })
		}),
		rasterCase("rasterize", "nothing kept", image(70, 50, 100, false)),
		rasterCase("rasterize", "numbers of splats around a bucket", func(t *trial) error {
			return each([]int{1, 2, 255, 256, 257, 511, 512, 513},
				func(n int) error { return checkImage(t, t.crowd(n, 16, 16, 0.03), t.camera(16, 16), true) })
		}),
		rasterCase("rasterize", "several buckets in several tiles",
			func(t *trial) error { return checkImage(t, t.crowd(900, 50, 40, 0.03), t.camera(50, 40), true) }),
		rasterCase("rasterize", "opaque: pixels stop early",
			func(t *trial) error { return checkImage(t, t.crowd(700, 40, 24, 0.9), t.camera(40, 24), true) }),
		rasterCase("rasterize", "all splats on one tile", func(t *trial) error {
			p := &ref.Projection[float32]{}
			for range 600 {
				t.addEllipse(p, [2]float64{50 + 12*t.Float64(), 34 + 12*t.Float64()}, 1.5, 1, 0.1)
			}
			return checkImage(t, p, t.camera(100, 60), true)
		}),
		rasterCase("rasterize", "bands give the same bytes", checkRasterBands),
		rasterCase("rasterize", "splats that are passed over would change nothing", checkPassedOver),
		rasterCase("rasterize", "poison", checkRasterPoison),
		rasterCase("rasterize", "stale shared memory: of the dispatch before", checkStaleDispatch),
		rasterCase("rasterize", "stale shared memory: of splats that miss the patch", checkStaleBatch),
	}
}

// passedOver returns splats of all shapes for a view of 160x120 pixels, of which some are all but transparent.
func (t *trial) passedOver() *ref.Projection[float32] {
	p := t.ellipses(700, 160, 120)
	for i := 0; i < len(p.Splats); i += 3 {
		p.Splats[i].Opacity = ref.AlphaThreshold * float32(1+math.Pow(10, -2-5*t.Float64()))
	}
	return p
}

// checkPassedOver compares with a run in which no splat is passed over for missing a patch: shapes down to needles,
// opacities down to the least.
func checkPassedOver(t *trial) error {
	p, v := t.passedOver(), t.camera(160, 120)
	l := t.list()
	out := l.rasterize(p, v, 0, 1, true, nil)
	l.everyone = true
	all := l.rasterize(p, v, 0, 1, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	// The variants are compiled apart: last bits may differ, as far as Vulkan promises. A splat that is wrongly passed
	// over makes a thousand times more.
	return first(closeTo("render", floatsOf(out.render.got), ref.ConvertSlice[float64](floatsOf(all.render.got)), 1e-6,
		1e-6), compareLast(all.last.got, image64(p, v, out.lists)))
}

// rasterCase makes a case that runs as on GPUs, and on processors as on those too.
func rasterCase(kernel, name string, run func(t *trial) error) Case {
	return newCase(kernel, name, func(t *trial) error {
		ways := []bool{false}
		if t.d.Info().Type == vk.CPU {
			ways = append(ways, true)
		}
		return each(ways, func(cpu bool) error {
			t.cpuRaster = cpu
			return run(t)
		})
	})
}

// rasterLanes are the lanes of a workgroup of rasterize.
func (l *list) rasterLanes() uint32 {
	if l.cpuRaster {
		return layout.TilePixels / 4
	}
	return layout.TilePixels
}

// bucketSize is how many isects a bucket has.
func (l *list) bucketSize() int {
	if l.cpuRaster {
		return layout.MostBucket
	}
	return layout.LeastBucket
}

// crowd returns n splats of about the given opacity that cover most of the image.
func (t *trial) crowd(n, width, height int, opacity float64) *ref.Projection[float32] {
	p := &ref.Projection[float32]{}
	for range n {
		mean := [2]float64{t.Float64() * float64(width), t.Float64() * float64(height)}
		t.addEllipse(p, mean, (0.3+t.Float64())*float64(width), (0.1+t.Float64())*float64(height),
			opacity*(0.5+0.5*t.Float64()))
	}
	return p
}

// raster is what rasterize writes for one band; render and last_ids are of the whole image.
type raster struct {
	render  *buffer[[4]float32]
	last    *buffer[uint32]
	states  *buffer[[2]uint32] // two of a pixel; one if they are packed
	touched *buffer[uint32]
	buckets *buffer[uint32]
	in      shaders.Rasterize // the inputs
	lists   *ref.Lists
	bucket  int // isects
	packed  bool
}

// stateWords returns how many elements of states a pixel takes.
func (out *raster) stateWords() int {
	if out.packed {
		return 1
	}
	return 2
}

// state returns the saved state of number i, unpacked.
func (out *raster) state(i int) [4]float32 {
	w := out.states.got[i*out.stateWords():]
	if out.packed {
		return ref.UnpackState(w[0])
	}
	return [4]float32{math.Float32frombits(w[0][0]), math.Float32frombits(w[0][1]), math.Float32frombits(w[1][0]),
		math.Float32frombits(w[1][1])}
}

// backwards is an order of n tiles.
func backwards(n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(n - 1 - i)
	}
	return order
}

// rasterize records one band. onto is an earlier band's result or nil.
func (l *list) rasterize(p *ref.Projection[float32], v *ref.View[float32], band, bands int, keep bool,
	onto *raster) *raster {
	g := v.Grid().Band(band, bands)
	out := &raster{lists: ref.NewLists(p, g), bucket: l.bucketSize(), packed: l.packed}
	n := len(out.lists.TileIDs)
	if onto != nil {
		out.render, out.last = onto.render, onto.last
	} else {
		out.render, out.last = output[[4]float32](l, "render", v.Width*v.Height),
			output[uint32](l, "last_ids", v.Width*v.Height)
	}
	out.states = output[[2]uint32](l, "states", n/l.bucketSize()*layout.TilePixels*out.stateWords())
	out.touched = output[uint32](l, "touched", (n/layout.TouchBits+g.Tiles())*layout.Patches)
	out.buckets = output[uint32](l, "tile_from_bucket", n/l.bucketSize()+g.Tiles())
	subgroup := cmp.Or(l.subgroup, l.d.Info().Limits.SubgroupSize)
	out.in = shaders.Rasterize{
		Params:        input(l, "params", []layout.StepParams{paramsOf(v)}),
		TileOffsets:   input(l, "tile_offsets", out.lists.TileOffsets),
		TileOrder:     input(l, "tile_order", backwards(len(out.lists.TileOffsets)-1)),
		SlotFromIsect: input(l, "slot_from_isect", out.lists.SlotFromIsect),
		SplatFromSlot: input(l, "splat_from_slot", out.lists.SplatFromSlot),
		Shapes:        input(l, "shapes", shapesOf(p)), Paints: input(l, "paints", paintsOf(p.Splats)),
		Render: out.render.Slice, LastIds: out.last.Slice, States: out.states.Slice, Touched: out.touched.Slice,
		TileFromBucket: out.buckets.Slice,
		Push:           shaders.RasterizePush{Band: uint32(band), NBands: uint32(bands)},
		Spec: shaders.RasterizeSpec{WorkgroupSize: l.rasterLanes(), SubgroupSize: subgroup, KeepStates: keep,
			BucketSize: uint32(l.bucketSize()), AllPatches: l.everyone, BandAlone: l.alone, PackedStates: l.packed},
		Handed: l.cpuRaster,
	}
	l.r.Dispatch(&out.in, vk.Groups(g.Tiles()+3))
	return out
}

// checkImage rasterizes in one band and judges the picture and what is kept for the backward pass.
func checkImage(t *trial, p *ref.Projection[float32], v *ref.View[float32], keep bool) error {
	l := t.list()
	out := l.rasterize(p, v, 0, 1, keep, nil)
	if err := l.run(); err != nil {
		return err
	}
	want := image64(p, v, out.lists)
	if err := compareImage(out.render.got, want); err != nil {
		return err
	}
	if !keep {
		_, err1 := out.last.written(0)
		_, err2 := out.states.written(0)
		_, err3 := out.buckets.written(0)
		_, err4 := out.touched.written(0)
		return first(err1, err2, err3, err4)
	}
	return first(compareLast(out.last.got, want), compareBuckets(out), compareStates(out, p, v, want))
}

func image64(p *ref.Projection[float32], v *ref.View[float32], lists *ref.Lists) *ref.Image[float64] {
	img := ref.NewImage[float64](v.Width, v.Height)
	ref.Rasterize(img, projection64(p).Splats, lists, ref.ConvertView[float64](v), v.Grid())
	return img
}

// outliers is how many of n pixels may differ by a splat whose alpha rounding puts on the other side of 1/255.
func outliers(n int) int { return 1 + n/1000 }

// compareImage allows rounding, and a few pixels where a splat of alpha 1/255 is drawn by one and skipped by the other.
func compareImage(got [][4]float32, want *ref.Image[float64]) error {
	var flat []float64
	for _, c := range want.Render {
		flat = append(flat, c[:]...)
	}
	r := ref.PixelCompare(floatsOf(got), flat, 4, 1e-4)
	if r.Outliers > outliers(len(got)) || r.Worst > 0.01 || r.RelNorm > 1e-5 {
		for i, c := range want.Render {
			if err := closeTo("render", got[i][:], c[:], 1e-4, 0); err != nil {
				return fmt.Errorf("%w; pixel %d, %d of %dx%d; %v", err, i%want.Width, i/want.Width, want.Width,
					want.Height, r)
			}
		}
		return fmt.Errorf("binding render: %v", r)
	}
	return nil
}

// compareLast requires that the backward pass learns which splats a pixel blends: a number after the last of them and
// not after the one that stopped it.
func compareLast(got []uint32, want *ref.Image[float64]) error {
	differ := 0
	for i, x := range got {
		if x < want.LastIDs[i] || x > want.Stops[i] {
			if differ++; differ > outliers(len(got)) {
				return fmt.Errorf("binding last_ids: pixel %d, %d has %d, want %d to %d", i%want.Width, i/want.Width, x,
					want.LastIDs[i], want.Stops[i])
			}
		}
	}
	return nil
}

// compareBuckets requires every bucket's tile, and room for those that a tile does not have.
func compareBuckets(out *raster) error {
	want := make([]uint32, len(out.buckets.got))
	offsets := out.lists.TileOffsets
	for tile := range len(offsets) - 1 {
		from, to := int(offsets[tile])/out.bucket+tile, int(offsets[tile+1])/out.bucket+tile
		for b := from; b <= to; b++ {
			want[b] = uint32(tile)
		}
	}
	return equal("tile_from_bucket", out.buckets.got, want)
}

// compareStates requires, before each bucket but a tile's first, what the splats in front of it make of the pixels that
// go on.
func compareStates(out *raster, p *ref.Projection[float32], v *ref.View[float32], img *ref.Image[float64]) error {
	g, off, black := v.Grid(), 0, *v
	black.Background = [3]float32{}
	most := 0
	for tile := range g.Tiles() {
		most = max(most, int(out.lists.TileOffsets[tile+1]-out.lists.TileOffsets[tile]))
	}
	for b := 1; b*out.bucket < most; b++ {
		want := image64(p, &black, firstOfTiles(out.lists, b*out.bucket))
		for at := range img.Render {
			x, y := at%v.Width, at/v.Width
			tile, lane := y/16*g.Cols+x/16, y%16*16+x%16
			if int(img.LastIDs[at]) <= b*out.bucket {
				continue
			}
			state := int(out.lists.TileOffsets[tile])/out.bucket + b - 1
			got, exact := out.state(state*layout.TilePixels+lane), want.Render[at]
			if err := closeScaled("states", got[:], exact[:], stateLimit(out, exact)); err != nil {
				if off++; off > outliers(len(img.Render)) {
					return fmt.Errorf("%w; state %d of pixel %d, %d", err, state, x, y)
				}
			}
		}
	}
	return nil
}

// stateLimit allows a state's numbers rounding, and packing.
func stateLimit(out *raster, want [4]float64) func(k int) float64 {
	packing := ref.StateErrors(want)
	return func(k int) float64 {
		limit := 1e-5 + 1e-5*want[k]
		if out.packed {
			limit += packing[k]
		}
		return limit
	}
}

// firstOfTiles returns lists with at most n isects a tile.
func firstOfTiles(l *ref.Lists, n int) *ref.Lists {
	out := &ref.Lists{SplatFromRank: l.SplatFromRank, FirstIsect: l.FirstIsect, TileIDs: l.TileIDs,
		SplatFromSlot: l.SplatFromSlot, TileOffsets: []uint32{0}}
	for tile := range len(l.TileOffsets) - 1 {
		list := l.SlotFromIsect[l.TileOffsets[tile]:l.TileOffsets[tile+1]]
		out.SlotFromIsect = append(out.SlotFromIsect, list[:min(n, len(list))]...)
		out.TileOffsets = append(out.TileOffsets, uint32(len(out.SlotFromIsect)))
	}
	return out
}

func checkRasterBands(t *trial) error {
	p, v := t.crowd(300, 70, 90, 0.1), t.camera(70, 90)
	l := t.list()
	whole := l.rasterize(p, v, 0, 1, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	if err := checkOneBand(t, p, v, whole.render.got); err != nil {
		return err
	}
	return each([]int{2, 3, 6, 9}, func(bands int) error {
		l := t.list()
		var out *raster
		for band := range bands {
			out = l.rasterize(p, v, band, bands, true, out)
		}
		if err := l.run(); err != nil {
			return err
		}
		return first(sameBytes("render", out.render.got, whole.render.got),
			equal("last_ids", out.last.got, whole.last.got))
	})
}

// checkOneBand requires that the second of three bands touches its own rows only.
func checkOneBand(t *trial, p *ref.Projection[float32], v *ref.View[float32], whole [][4]float32) error {
	l := t.list()
	out := l.rasterize(p, v, 1, 3, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	g := v.Grid().Band(1, 3)
	from, to := g.RowFirst*ref.TileSize*v.Width, g.RowEnd*ref.TileSize*v.Width
	none := buffer[[4]float32]{name: "render", got: slices.Concat(out.render.got[:from], out.render.got[to:])}
	_, err := none.written(0)
	return first(err, sameBytes("render", out.render.got[from:to], whole[from:to]))
}

// checkRasterPoison mixes splats with bad numbers, which project would have culled, and splats on thresholds among good
// ones.
func checkRasterPoison(t *trial) error {
	p := t.crowd(20, 40, 30, 0.3)
	thresholds := []float32{ref.AlphaThreshold, math.Nextafter32(ref.AlphaThreshold, 0),
		math.Nextafter32(ref.AlphaThreshold, 1), ref.MaxAlpha, 1}
	for _, x := range append(thresholds, bad...) {
		if isNaN(x) || isInf(x) {
			continue // project culls what is not finite; what a driver makes of 0 times infinity here is its own affair
		}
		for k := range 6 {
			t.addEllipse(p, [2]float64{20.5, 15.5}, 20, 10, 0.5)
			s := &p.Splats[len(p.Splats)-1]
			value := x
			if k == 0 && x > 1 {
				value = 1 // no sigmoid gives more, and more times a falloff that devices flush to zero is anything
			}
			*[]*float32{&s.Opacity, &s.Mean2D[0], &s.Mean2D[1], &s.Conic[0], &s.Conic[1], &s.Conic[2]}[k] = value
		}
	}
	v := t.camera(40, 30)
	l := t.list()
	out := l.rasterize(p, v, 0, 1, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	if err := finite("render", floatsOf(out.render.got)); err != nil {
		return err
	}
	for i := range p.Splats {
		if c := p.Splats[i].Conic; !(c[0] > 0 && c[2] > 0 && c[0]*c[2] >= c[1]*c[1]) {
			p.Splats[i].Opacity = 0 // no ellipse
		}
	}
	want := image64(p, v, out.lists)
	return first(compareImage(out.render.got, want), compareLast(out.last.got, want))
}

// colorless returns splats on every tile of an image whose colours are no numbers: what they leave in shared memory
// spoils whoever reads it.
func (t *trial) colorless(width, height int) *ref.Projection[float32] {
	p := t.crowd(100, width, height, 0.1)
	for i := range p.Splats {
		p.Splats[i].Color = [3]float32{float32(math.NaN()), float32(math.NaN()), float32(math.NaN())}
	}
	return p
}

// checkStaleDispatch blends one splat a tile where colours that are no numbers were before: places of the batch that it
// does not fill are not read.
func checkStaleDispatch(t *trial) error {
	one, v := &ref.Projection[float32]{}, t.camera(160, 160)
	t.addEllipse(one, [2]float64{80, 80}, 100, 90, 0.7)
	l := t.list()
	l.rasterize(t.colorless(160, 160), v, 0, 1, true, nil)
	out := l.rasterize(one, v, 0, 1, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	want := image64(one, v, out.lists)
	return first(finite("render", floatsOf(out.render.got)), compareImage(out.render.got, want),
		compareLast(out.last.got, want))
}

// checkStaleBatch puts splats of infinite colour into a patch of a tile: those that miss them are as without.
func checkStaleBatch(t *trial) error {
	good, v := t.crowd(60, 16, 16, 0.05), t.camera(16, 16)
	p := &ref.Projection[float32]{}
	for i := range good.Splats {
		t.addEllipse(p, [2]float64{3.5, 1.5}, 0.3, 0.2, 0.9) // the first patch is 8x4 pixels
		p.Splats[len(p.Splats)-1].Color = [3]float32{float32(math.Inf(1)), float32(math.Inf(1)), float32(math.Inf(1))}
		p.Splats, p.Extents, p.DepthKeys = append(p.Splats, good.Splats[i]), append(p.Extents, good.Extents[i]),
			append(p.DepthKeys, good.DepthKeys[i])
	}
	l := t.list()
	out, without := l.rasterize(p, v, 0, 1, true, nil), l.rasterize(good, v, 0, 1, true, nil)
	if err := l.run(); err != nil {
		return err
	}
	for i := range out.render.got {
		if i%16 < 8 && i/16 < 4 {
			out.render.got[i] = without.render.got[i] // what infinity times 0 is there is a driver's own affair
		}
	}
	return first(finite("render", floatsOf(out.render.got)), sameBytes("render", out.render.got, without.render.got))
}
