package check

import (
	"cmp"
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func rasterizeCases() []Case {
	image := func(width, height, n int, keep bool) func(t *trial) {
		return func(t *trial) { checkImage(t, t.ellipses(n, width, height), t.camera(width, height), keep) }
	}
	crowd := func(n, width, height int, opacity float64) func(t *trial) {
		return func(t *trial) { checkImage(t, t.crowd(n, width, height, opacity), t.camera(width, height), true) }
	}
	return shapedCases("rasterize", table{
		{"no splats", func(t *trial) {
			image(40, 30, 0, true)(t)
			image(1, 1, 0, true)(t)
			image(16, 16, 0, false)(t)
		}},
		{"sizes of views", over([][2]int{{1, 1}, {15, 15}, {16, 16}, {17, 16}, {16, 17}, {37, 90}},
			func(t *trial, s [2]int) { image(s[0], s[1], 60, true)(t) })},
		{"nothing kept", image(70, 50, 100, false)},
		{"numbers of splats around a bucket", over([]int{1, 2, 255, 256, 257, 511, 512, 513},
			func(t *trial, n int) { crowd(n, 16, 16, 0.03)(t) })},
		{"several buckets in several tiles", crowd(900, 50, 40, 0.03)},
		{"opaque: pixels stop early", crowd(700, 40, 24, 0.9)},
		{"all splats on one tile", func(t *trial) {
			p := &ref.Projection[float32]{}
			for range 600 {
				t.addEllipse(p, [2]float64{50 + 12*t.Float64(), 34 + 12*t.Float64()}, 1.5, 1, 0.1)
			}
			checkImage(t, p, t.camera(100, 60), true)
		}},
		{"bands give the same bytes", checkRasterBands},
		{"splats that are passed over would change nothing", checkPassedOver},
		{"poison", checkRasterPoison},
		{"stale shared memory: of the dispatch before", checkStaleDispatch},
		{"stale shared memory: of splats that miss the patch", checkStaleBatch},
	})
}

// passedOver returns splats of all shapes for a view of 160x120 pixels, of which some are all but transparent.
func passedOver(t source) *ref.Projection[float32] {
	p := t.ellipses(700, 160, 120)
	for i := 0; i < len(p.Splats); i += 3 {
		p.Splats[i].Opacity = ref.AlphaThreshold * float32(1+math.Pow(10, -2-5*t.Float64()))
	}
	return p
}

// checkPassedOver compares with a run in which no splat is passed over for missing a patch: shapes down to needles,
// opacities down to the least.
func checkPassedOver(t *trial) {
	p, v := passedOver(t.source), t.camera(160, 120)
	some, all := t.rasterizeBoth(p, v)
	t.run()
	// The variants are compiled apart: last bits may differ, as far as Vulkan promises. A splat that is wrongly passed
	// over makes a thousand times more.
	near("render", floatsOf(got(t, some.in.Render)), floatsOf(got(t, all.in.Render)), 1e-6, 1e-6)
	compareLast(got(t, all.in.LastIds), image64(p, v, some.lists))
}

// rasterizeBoth records a picture twice, the second time giving splats to all patches.
func (t *trial) rasterizeBoth(p *ref.Projection[float32], v *ref.View[float32]) (some, all *raster) {
	some = t.rasterize(p, v, 0, 1, true, nil)
	t.everyone = true
	all = t.rasterize(p, v, 0, 1, true, nil)
	t.everyone = false
	return some, all
}

// shapedCases are cases that run in the shape for GPUs, and on processors in that for those too.
func shapedCases(kernel string, rows table, modes ...func(t *trial)) (cases []Case) {
	for _, r := range rows {
		cases = append(cases, casesOf(kernel, table{{r.name, func(t *trial) {
			ways := []bool{false}
			if t.d.Info().Type == vk.CPU {
				ways = append(ways, true)
			}
			eachOf(ways, func(cpu bool) {
				t.processor = cpu
				r.check(t)
			})
		}}}, modes...)...)
	}
	return cases
}

func (t *trial) rasterLanes() uint32 {
	if t.processor {
		return layout.TilePixels / 4
	}
	return layout.TilePixels
}

func (t *trial) bucketSize() int {
	if t.processor {
		return layout.MostBucket
	}
	return layout.LeastBucket
}

// raster is the output of rasterize for one band; render and last_ids are of the whole image.
type raster struct {
	t      *trial
	in     shaders.Rasterize
	lists  *ref.Lists
	bucket int // isects
	packed bool
}

// stateWords returns how many elements of states a pixel takes.
func (r *raster) stateWords() int {
	if r.packed {
		return 1
	}
	return 2
}

// state returns the saved state of number i, unpacked.
func (r *raster) state(i int) [4]float32 {
	w := got(r.t, r.in.States)[i*r.stateWords():]
	if r.packed {
		return ref.UnpackState(w[0])
	}
	return [4]float32(floatsOf(w[:2]))
}

// nothingKept wants nothing written for the backward pass.
func (r *raster) nothingKept() {
	head(r.t, r.in.LastIds, 0)
	head(r.t, r.in.States, 0)
	head(r.t, r.in.TileFromBucket, 0)
	head(r.t, r.in.Touched, 0)
}

func backwards(n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(n - 1 - i)
	}
	return order
}

// rasterize records one band. onto is an earlier band's result or nil.
func (t *trial) rasterize(p *ref.Projection[float32], v *ref.View[float32], band, bands int, keep bool,
	onto *raster) *raster {
	g, size := v.Grid().Band(band, bands), t.bucketSize()
	r := &raster{t: t, lists: ref.NewLists(p, g), bucket: size, packed: t.packed}
	n := len(r.lists.TileIDs)
	r.in = shaders.Rasterize{Params: in(t, paramsOf(v)), TileOffsets: in(t, r.lists.TileOffsets...), TileOrder: in(t,
		backwards(len(r.lists.TileOffsets)-1)...), SlotFromIsect: in(t, r.lists.SlotFromIsect...), SplatFromSlot: in(t,
		r.lists.SplatFromSlot...), Shapes: in(t, shapesOf(p)...), Paints: in(t, paintsOf(p.Splats)...),
		States: scratch[[2]uint32](t, n/size*layout.TilePixels*r.stateWords()), Touched: scratch[uint32](t,
			(n/layout.TouchBits+g.Tiles())*layout.Patches), TileFromBucket: scratch[uint32](t, n/size+g.Tiles()),
		Push: shaders.RasterizePush{Band: uint32(band), NBands: uint32(bands)},
		Spec: shaders.RasterizeSpec{WorkgroupSize: t.rasterLanes(), KeepStates: keep, BucketSize: uint32(size),
			SubgroupSize: cmp.Or(t.subgroup, t.d.Info().Limits.SubgroupSize), AllPatches: t.everyone,
			BandAlone:    t.alone,
			PackedStates: t.packed}, Handed: t.processor}
	if onto != nil {
		r.in.Render, r.in.LastIds = onto.in.Render, onto.in.LastIds
	} else {
		r.in.Render = scratch[[4]float32](t, v.Width*v.Height)
		r.in.LastIds = scratch[uint32](t, v.Width*v.Height)
	}
	t.dispatch(&r.in, vk.Groups(g.Tiles()+3))
	return r
}

// checkImage rasterizes in one band and judges the picture and what is kept for the backward pass.
func checkImage(t *trial, p *ref.Projection[float32], v *ref.View[float32], keep bool) {
	r := t.rasterize(p, v, 0, 1, keep, nil)
	t.run()
	if !keep {
		compareImage(got(t, r.in.Render), image64(p, v, r.lists))
		r.nothingKept()
		return
	}
	r.compare(p, v)
	r.compareBuckets()
}

// compare judges the picture, and which splats a pixel blends.
func (r *raster) compare(p *ref.Projection[float32], v *ref.View[float32]) {
	want := image64(p, v, r.lists)
	compareImage(got(r.t, r.in.Render), want)
	compareLast(got(r.t, r.in.LastIds), want)
	r.compareStates(p, v, want)
}

func image64(p *ref.Projection[float32], v *ref.View[float32], lists *ref.Lists) *ref.Image[float64] {
	img := ref.NewImage[float64](v.Width, v.Height)
	ref.Rasterize(img, projection64(p).Splats, lists, ref.ConvertView[float64](v), v.Grid())
	return img
}

// outliers is how many of n pixels may differ by a splat whose alpha rounding puts on the other side of 1/255.
func outliers(n int) int { return 1 + n/1000 }

// compareImage allows rounding, and a few pixels where a splat of alpha 1/255 is drawn by one and skipped by the other.
func compareImage(got [][4]float32, want *ref.Image[float64]) {
	r := ref.PixelCompare(floatsOf(got), flat64(want.Render), 4, 1e-4)
	if r.Outliers > outliers(len(got)) || r.Worst > 0.01 || r.RelNorm > 1e-5 {
		for i, c := range want.Render {
			what := fmt.Sprintf("pixel %d, %d of %dx%d; %v", i%want.Width, i/want.Width, want.Width, want.Height, r)
			during(what, func() { near("render", got[i][:], c[:], 1e-4, 0) })
		}
		failf("binding render: %v", r)
	}
}

// compareLast requires that the backward pass learns which splats a pixel blends: a number after the last of them and
// not after the one that stopped it.
func compareLast(got []uint32, want *ref.Image[float64]) {
	differ := 0
	for i, x := range got {
		if x < want.LastIDs[i] || x > want.Stops[i] {
			if differ++; differ > outliers(len(got)) {
				failf("binding last_ids: pixel %d, %d has %d, want %d to %d", i%want.Width, i/want.Width, x,
					want.LastIDs[i], want.Stops[i])
			}
		}
	}
}

// compareBuckets wants every bucket's tile, and room for those that a tile does not have.
func (r *raster) compareBuckets() {
	offsets := r.lists.TileOffsets
	want := make([]uint32, r.in.TileFromBucket.N()-guardBytes/4)
	for tile := range len(offsets) - 1 {
		from, to := int(offsets[tile])/r.bucket+tile, int(offsets[tile+1])/r.bucket+tile
		for b := from; b <= to; b++ {
			want[b] = uint32(tile)
		}
	}
	same("tile_from_bucket", got(r.t, r.in.TileFromBucket), want)
}

// compareStates wants, before each bucket but a tile's first, what the splats in front of it make of the pixels that go
// on.
func (r *raster) compareStates(p *ref.Projection[float32], v *ref.View[float32], img *ref.Image[float64]) {
	g, off, offsets := v.Grid(), 0, r.lists.TileOffsets
	most := 0
	for tile := range g.Tiles() {
		most = max(most, int(offsets[tile+1]-offsets[tile]))
	}
	for b := 1; b*r.bucket < most; b++ {
		want := image64(p, onBlack(v), firstOfTiles(r.lists, b*r.bucket))
		for at := range img.Render {
			x, y := at%v.Width, at/v.Width
			tile, lane := y/16*g.Cols+x/16, y%16*16+x%16
			if int(img.LastIDs[at]) <= b*r.bucket {
				continue
			}
			state := int(offsets[tile])/r.bucket + b - 1
			s := r.state(state*layout.TilePixels + lane)
			err := closeScaled("states", s[:], want.Render[at][:], r.stateLimit(want.Render[at]))
			if err == nil {
				continue
			}
			if off++; off > outliers(len(img.Render)) {
				failf("%w; state %d of pixel %d, %d", err, state, x, y)
			}
		}
	}
}

func onBlack(v *ref.View[float32]) *ref.View[float32] {
	black := *v
	black.Background = [3]float32{}
	return &black
}

// stateLimit allows a state's numbers rounding, and packing.
func (r *raster) stateLimit(want [4]float64) func(k int) float64 {
	packing := ref.StateErrors(want)
	return func(k int) float64 {
		limit := 1e-5 + 1e-5*want[k]
		if r.packed {
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

func checkRasterBands(t *trial) {
	p, v := t.crowd(300, 70, 90, 0.1), t.camera(70, 90)
	whole, second := t.rasterize(p, v, 0, 1, true, nil), t.rasterize(p, v, 1, 3, true, nil)
	t.run()
	// The second of three bands touches its own rows only.
	g := v.Grid().Band(1, 3)
	from, to := g.RowFirst*ref.TileSize*v.Width, g.RowEnd*ref.TileSize*v.Width
	same("render", writtenPart("render", got(t, second.in.Render), from, to), got(t, whole.in.Render)[from:to])
	eachOf([]int{2, 3, 6, 9}, func(bands int) {
		var r *raster
		for band := range bands {
			r = t.rasterize(p, v, band, bands, true, r)
		}
		t.run()
		same("render", got(t, r.in.Render), got(t, whole.in.Render))
		same("last_ids", got(t, r.in.LastIds), got(t, whole.in.LastIds))
	})
}

// checkRasterPoison mixes splats with bad numbers, which project would have culled, and splats on thresholds among good
// ones.
func checkRasterPoison(t *trial) {
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
	r := t.rasterize(p, v, 0, 1, true, nil)
	t.run()
	areFinite("render", floatsOf(got(t, r.in.Render)))
	for i := range p.Splats {
		if c := p.Splats[i].Conic; !(c[0] > 0 && c[2] > 0 && c[0]*c[2] >= c[1]*c[1]) {
			p.Splats[i].Opacity = 0 // no ellipse
		}
	}
	want := image64(p, v, r.lists)
	compareImage(got(t, r.in.Render), want)
	compareLast(got(t, r.in.LastIds), want)
}

// colorless returns splats on every tile of an image whose colours are no numbers: what they leave in shared memory
// spoils whoever reads it.
func colorless(t source, width, height int) *ref.Projection[float32] {
	p := t.crowd(100, width, height, 0.1)
	for i := range p.Splats {
		p.Splats[i].Color = [3]float32{nan, nan, nan}
	}
	return p
}

// checkStaleDispatch blends one splat a tile where colours that are no numbers were before: places of the batch that it
// does not fill are not read.
func checkStaleDispatch(t *trial) {
	one, v := &ref.Projection[float32]{}, t.camera(160, 160)
	t.addEllipse(one, [2]float64{80, 80}, 100, 90, 0.7)
	t.rasterize(colorless(t.source, 160, 160), v, 0, 1, true, nil)
	r := t.rasterize(one, v, 0, 1, true, nil)
	t.run()
	want := image64(one, v, r.lists)
	areFinite("render", floatsOf(got(t, r.in.Render)))
	compareImage(got(t, r.in.Render), want)
	compareLast(got(t, r.in.LastIds), want)
}

var infinite = [3]float32{bad[1], bad[1], bad[1]}

func addSplat(p, from *ref.Projection[float32], i int) {
	p.Splats, p.Extents = append(p.Splats, from.Splats[i]), append(p.Extents, from.Extents[i])
	p.DepthKeys = append(p.DepthKeys, from.DepthKeys[i])
}

// checkStaleBatch puts splats of infinite colour into a patch of a tile: those that miss them are as without.
func checkStaleBatch(t *trial) {
	good, v := t.crowd(60, 16, 16, 0.05), t.camera(16, 16)
	p := &ref.Projection[float32]{}
	for i := range good.Splats {
		t.addEllipse(p, [2]float64{3.5, 1.5}, 0.3, 0.2, 0.9) // the first patch is 8x4 pixels
		p.Splats[len(p.Splats)-1].Color = infinite
		addSplat(p, good, i)
	}
	r, without := t.rasterize(p, v, 0, 1, true, nil), t.rasterize(good, v, 0, 1, true, nil)
	t.run()
	render, want := got(t, r.in.Render), got(t, without.in.Render)
	for i := range render {
		if i%16 < 8 && i/16 < 4 {
			render[i] = want[i] // what infinity times 0 is there is a driver's own affair
		}
	}
	areFinite("render", floatsOf(render))
	same("render", render, want)
}
