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

func tileCases() []Case {
	sized := func(sizes []int, bands ...int) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes,
				func(n int) error { return checkTiles(t, t.ellipses(n, 250, 130), t.camera(250, 130), bands...) })
		}
	}
	return []Case{
		newCase("count_tiles", "sizes", sized([]int{0, 1, 255, 256, 257, 513}, 1)),
		newCase("count_tiles", "every pixel that alpha reaches is covered", func(t *trial) error {
			return each([][2]int{{1, 1}, {16, 16}, {17, 33}, {160, 96}}, func(s [2]int) error {
				return checkCover(t, t.ellipses(250, s[0], s[1]), t.camera(s[0], s[1]))
			})
		}),
		newCase("count_tiles", "edges on the borders of tiles", checkBorders),
		newCase("emit_isects", "bands", sized([]int{300}, 1, 2, 3, 5, 9)),
		newCase("emit_isects", "one splat on all tiles", func(t *trial) error {
			return each([]int{1, 3, 300}, func(n int) error { return checkHuge(t, n, 1) })
		}),
		newCase("emit_isects", "all splats on all tiles", func(t *trial) error { return checkHuge(t, 20, 20) }),
		newCase("emit_isects", "all splats on one tile", checkOneTile),
		newCase("emit_isects", "long runs of splats without tiles in the band", checkRuns),
		newCase("emit_isects", "capacity just enough and one short",
			func(t *trial) error { return checkIsectCapacity(t, 400) }),
		newCase("emit_isects", "poison", checkTilesPoison),
		newCase("tile_offsets", "isects", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, 5000},
				func(n int) error { return checkTileOffsets(t, n, 20, 15, 0, 300) })
		}),
		newCase("tile_offsets", "tiles", func(t *trial) error {
			sizes := [][2]int{{1, 1}, {254, 1}, {255, 1}, {256, 1}, {510, 1}, {511, 1}, {16, 16}, {257, 3}}
			return each(sizes, func(s [2]int) error {
				return first(checkTileOffsets(t, 700, s[0], s[1], 0, s[0]*s[1]),
					checkTileOffsets(t, 0, s[0], s[1], 0, 1))
			})
		}),
		newCase("tile_offsets", "all on the first tile, all on the last", func(t *trial) error {
			return first(checkTileOffsets(t, 700, 20, 15, 0, 1), checkTileOffsets(t, 700, 20, 15, 299, 300))
		}),
	}
}

// scanTilesCases are cases of scan_tiles, which must find what count_tiles and the scan find.
func scanTilesCases() []Case {
	looking := func(run func(t *trial) error) func(t *trial) error {
		return func(t *trial) error {
			t.lookback = true
			return run(t)
		}
	}
	return []Case{
		newCase("scan_tiles", "sizes", looking(func(t *trial) error {
			return each(oneBlock(t.d, []int{0, 1, 255, 256, 257, 513, 5000}, layout.Group),
				func(n int) error { return checkScanTiles(t, n, 1) })
		})),
		newCase("scan_tiles", "looking back", func(t *trial) error {
			return each([]int{1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 65, 300},
				func(before int) error { return checkScanLookBack(t, before) })
		}),
		newCase("scan_tiles", "bands", looking(func(t *trial) error {
			return each(oneBlock(t.d, []int{200, 300}, layout.Group),
				func(n int) error { return checkScanTiles(t, n, 1, 2, 3, 5, 9) })
		})),
		newCase("scan_tiles", "many blocks", looking(func(t *trial) error {
			return each(oneBlock(t.d, []int{200, 100 * layout.Group, 300*layout.Group + 7}, layout.Group),
				func(n int) error { return checkSameScan(t, n) })
		})),
		newCase("scan_tiles", "several rounds of a workgroup", looking(func(t *trial) error {
			t.rounds = true
			return each(oneBlock(t.d, []int{257, 512, 4095, 4096, 4097, 100 * layout.Group}, 16*layout.Group),
				func(n int) error { return checkSameScan(t, n) })
		})),
		newCase("scan_tiles", "all splats on all tiles", looking(func(t *trial) error { return checkHuge(t, 20, 20) })),
		newCase("scan_tiles", "capacity just enough and one short", looking(func(t *trial) error {
			return each(oneBlock(t.d, []int{200, 400}, layout.Group),
				func(n int) error { return checkIsectCapacity(t, n) })
		})),
		newCase("scan_tiles", "more isects than can be counted", looking(checkScanTilesOverflow)),
		newCase("scan_tiles", "poison", looking(checkTilesPoison)),
	}
}

func checkScanTiles(t *trial, n int, bands ...int) error {
	return checkTiles(t, t.ellipses(n, 250, 130), t.camera(250, 130), bands...)
}

// checkScanLookBack runs the last block of several alone, after the others have published: it waits for nobody.
func checkScanLookBack(t *trial, before int) error {
	l := t.list()
	sums, all := t.uints(before, 1000), uint32(0)
	for _, sum := range sums {
		all += sum
	}
	p := &ref.Projection[float32]{}
	t.addEllipse(p, [2]float64{24, 24}, 0.1, 0.1, 0.9) // one tile
	n, v := before*layout.Group+3, t.camera(250, 130)
	counters, firsts := inout(l, "counters", countersWith(n)), output[uint32](l, "first_isect", n)
	tallies := inout(l, "tallies", append(append([]uint32{uint32(before)}, t.publish(sums)...), 0))
	l.r.Dispatch(&shaders.ScanTiles{
		Params: input(l, "params", []layout.StepParams{paramsOf(v)}), Counters: counters.Slice,
		SplatFromRank: input(l, "splat_from_rank", make([]uint32, n)),
		Shapes:        input(l, "shapes", shapesOf(p)),
		FirstIsect:    firsts.Slice,
		Tallies:       tallies.Slice, DispatchArgs: output[[3]uint32](l, "dispatch_args", layout.NArgs).Slice,
		Push: shaders.ScanTilesPush{NBands: 1, Capacity: 1 << 20, MostGroups: 1024},
	}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	return first(
		equal("first_isect", firsts.got[n-3:], []uint32{all, all + 1, all + 2}),
		equal("counters", counters.got[layout.NIsects:layout.NIsects+1], []uint32{all + 3}),
		equal("tallies", tallies.got[before+1:], []uint32{all + 3 | 1<<31}),
	)
}

// checkSameScan requires of scan_tiles what count_tiles and the scan write. There is room for nothing, so that the
// isects themselves take no time.
func checkSameScan(t *trial, n int) error {
	p, v := t.ellipses(n, 250, 130), t.camera(250, 130)
	got, err := runTiles(t, p, v, 0, 1, 0)
	if err != nil {
		return err
	}
	t.lookback = false
	want, err := runTiles(t, p, v, 0, 1, 0)
	t.lookback = true
	if err != nil {
		return err
	}
	return first(equal("first_isect", got.first, want.first), equal("counters", got.counters, want.counters),
		equal("dispatch_args", got.args, want.args))
}

// checkScanTilesOverflow lets splats cover all 2^22 tiles of the largest image: 255 are counted exactly, from 256 on
// the sum stays at 2^30 - 1.
func checkScanTilesOverflow(t *trial) error {
	return each(oneBlock(t.d, []int{255, 256, 800}, layout.Group), func(n int) error {
		p := &ref.Projection[float32]{}
		for range n {
			t.addEllipse(p, [2]float64{1 << 14, 1 << 14}, 1e6, 1e6, 0.9)
		}
		got, err := runTiles(t, p, t.camera(1<<15, 1<<15), 0, 1, 1000)
		if err != nil {
			return err
		}
		want := []uint32{layout.FailedIsects, 0, uint32(min(n<<22, 1<<30-1))} // unit 0
		return first(equal("counters", got.counters[layout.Failed:layout.NActive], want),
			equal("tile_ids", got.tiles, []uint32{}))
	})
}

// isects is what count_tiles, the scan and emit_isects write for one band.
type isects struct {
	ranks             []uint32 // splat_from_rank
	first             []uint32
	tiles, splats, id []uint32
	counters          []uint32
	args              [][3]uint32
}

// runTiles runs count_tiles, the scan and emit_isects for one band, with room for the given number of pairs.
func runTiles(t *trial, p *ref.Projection[float32], v *ref.View[float32], band, bands, capacity int) (*isects, error) {
	l := t.list()
	out := &isects{ranks: ref.SortDepth(p.DepthKeys)}
	n := len(out.ranks)
	params, shapes := input(l, "params", []layout.StepParams{paramsOf(v)}), input(l, "shapes", shapesOf(p))
	ranks := input(l, "splat_from_rank", out.ranks)
	start := countersWith(n)
	if n == 0 {
		start[layout.NIsects] = 0 // as begin sets it: scan_tiles does not run then
	}
	counters, counts := inout(l, "counters", start), output[uint32](l, "tile_counts", n)
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	ids, splats, slots := output[uint32](l, "tile_ids", capacity), output[uint32](l, "splat_from_slot", capacity),
		output[uint32](l, "slot_ids", capacity)
	if t.lookback {
		mostGroups := uint32(1024)
		if t.rounds {
			mostGroups = 1
		}
		tallies := inout(l, "tallies", make([]uint32, 1+blocksOf(n, layout.Group)))
		l.r.Dispatch(&shaders.ScanTiles{
			Params: params, Counters: counters.Slice, SplatFromRank: ranks, Shapes: shapes,
			FirstIsect: counts.Slice,
			Tallies:    tallies.Slice, DispatchArgs: args.Slice,
			Push: shaders.ScanTilesPush{Band: uint32(band), NBands: uint32(bands), Capacity: uint32(capacity),
				MostGroups: mostGroups},
		}, vk.Items(n+256, 256))
	} else {
		l.r.Dispatch(&shaders.CountTiles{
			Params: params, Counters: counters.Slice, SplatFromRank: ranks, Shapes: shapes,
			TileCounts: counts.Slice,
			Push:       shaders.CountTilesPush{Band: uint32(band), NBands: uint32(bands)},
		}, vk.Items(n+256, 256))
		l.scan(params, counters.Slice, counts.Slice, args.Slice, n, layout.NVisible, layout.NIsects, capacity)
	}
	l.r.Dispatch(&shaders.EmitIsects{
		Params: params, Counters: counters.Slice, SplatFromRank: ranks, FirstIsect: counts.Slice, Shapes: shapes,
		TileIds: ids.Slice, SplatFromSlot: splats.Slice, SlotIds: slots.Slice,
		Push: shaders.EmitIsectsPush{Band: uint32(band), NBands: uint32(bands)},
	}, vk.Items(capacity+layout.SortBlock, layout.SortBlock))
	if err := l.run(); err != nil {
		return nil, err
	}
	out.first, out.counters, out.args = counts.got, counters.got, args.got
	total := int(counters.got[layout.NIsects])
	if total > capacity {
		return nil, fmt.Errorf("binding counters: [%d]: %d isects in %d places", layout.NIsects, total, capacity)
	}
	var errs [3]error
	out.tiles, errs[0] = ids.written(total)
	out.splats, errs[1] = splats.written(total)
	out.id, errs[2] = slots.written(total)
	return out, first(errs[:]...)
}

// slots returns the slots [a, b) of a rank.
func (s *isects) slots(rank int) (a, b int) {
	a, b = int(s.first[rank]), len(s.tiles)
	if rank+1 < len(s.first) {
		b = int(s.first[rank+1])
	}
	return a, b
}

// consistent checks what holds whatever the splats are: contiguous slots, ids in range and ascending within a splat.
func (s *isects) consistent(g ref.Grid) error {
	for i, id := range s.id {
		if int(id) != i {
			return fmt.Errorf("binding slot_ids: [%d]: got %d", i, id)
		}
	}
	next := 0
	for rank, splat := range s.ranks {
		a, b := s.slots(rank)
		if a != next || b < a || b > len(s.tiles) {
			return fmt.Errorf("binding first_isect: [%d]: got %d to %d, want from %d on", rank, a, b, next)
		}
		next = b
		for slot := a; slot < b; slot++ {
			tile := int(s.tiles[slot])
			if s.splats[slot] != splat {
				return fmt.Errorf("binding splat_from_slot: [%d]: got %d, want %d", slot, s.splats[slot], splat)
			}
			if tile < g.RowFirst*g.Cols || tile >= g.RowEnd*g.Cols || slot > a && s.tiles[slot-1] >= s.tiles[slot] {
				return fmt.Errorf("binding tile_ids: [%d]: got %d, splat %d, out of the band or of order", slot, tile,
					splat)
			}
		}
	}
	if next != len(s.tiles) {
		return fmt.Errorf("binding counters: [%d]: got %d isects, the splats have %d", layout.NIsects, len(s.tiles),
			next)
	}
	return nil
}

// checkTiles compares each splat's tiles with the reference, for every band of each number of bands.
func checkTiles(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands ...int) error {
	least, most := scaled(p, -1), scaled(p, 1)
	return each(bands, func(n int) error {
		return each(indices(n), func(band int) error {
			g := v.Grid().Band(band, n)
			tiles, _ := ref.EmitIsects(most, ref.SortDepth(p.DepthKeys), g)
			got, err := runTiles(t, p, v, band, n, len(tiles))
			if err != nil {
				return err
			}
			return first(got.consistent(g), got.between(least, most, g))
		})
	})
}

// between requires of each splat all tiles that it has in least, and none that it has not in most.
func (s *isects) between(least, most *ref.Projection[float32], g ref.Grid) error {
	for rank, splat := range s.ranks {
		a, b := s.slots(rank)
		must, _ := ref.EmitIsects(least, []uint32{splat}, g)
		may, _ := ref.EmitIsects(most, []uint32{splat}, g)
		for _, tile := range must {
			if _, ok := slices.BinarySearch(s.tiles[a:b], tile); !ok {
				return fmt.Errorf("binding tile_ids: splat %d (rank %d): got %v, want %v", splat, rank, s.tiles[a:b],
					must)
			}
		}
		for k, tile := range s.tiles[a:b] {
			if _, ok := slices.BinarySearch(may, tile); !ok {
				return fmt.Errorf("binding tile_ids: [%d]: got %d, splat %d has only %v", a+k, tile, splat, may)
			}
		}
	}
	return nil
}

// checkCover looks at every pixel: where alpha reaches the threshold, the splat has the pixel's tile.
func checkCover(t *trial, p *ref.Projection[float32], v *ref.View[float32]) error {
	g := v.Grid()
	got, err := runTiles(t, p, v, 0, 1, len(p.Splats)*g.Tiles())
	if err != nil {
		return err
	}
	for rank, splat := range got.ranks {
		a, b := got.slots(rank)
		has := make([]bool, g.Tiles())
		for _, tile := range got.tiles[a:b] {
			has[tile] = true
		}
		for at := range v.Width * v.Height {
			x, y := at%v.Width, at/v.Width
			if tile := y/ref.TileSize*g.Cols + x/ref.TileSize; !has[tile] &&
				reaches(&p.Splats[splat], float64(x)+0.5, float64(y)+0.5) {
				return fmt.Errorf("binding tile_ids: splat %d has alpha %v at pixel %d, %d, and not tile %d", splat,
					p.Splats[splat], x, y, tile)
			}
		}
	}
	return got.consistent(g)
}

// reaches reports whether alpha is 1/255 or more at (x, y). A needle's conic is large against its sigma: rounding it to
// float32 moves sigma by the size of its terms times 1e-6 at most, which is allowed for.
func reaches(s *ref.Projected[float32], x, y float64) bool {
	dx, dy := float64(s.Mean2D[0])-x, float64(s.Mean2D[1])-y
	a, b, c := 0.5*float64(s.Conic[0])*dx*dx, float64(s.Conic[1])*dx*dy, 0.5*float64(s.Conic[2])*dy*dy
	return float64(s.Opacity)*math.Exp(-(a+b+c)-1e-6*(a+math.Abs(b)+c)) >= ref.AlphaThreshold
}

// checkBorders lets circles end exactly where tiles do, at the first and last pixel centres of a tile and half a pixel
// around them.
func checkBorders(t *trial) error {
	p := &ref.Projection[float32]{}
	for _, r := range []float64{4, 8, 7.5, 15, 16} {
		for k := range 8 {
			edge := 32 + 0.5*float64(k-4) + 16*float64(k%3)
			t.addEllipse(p, [2]float64{edge - r, edge + r}, r, r, 0.5)
			e := &p.Extents[len(p.Extents)-1]
			s := &p.Splats[len(p.Splats)-1]
			*e = [3]float32{float32(r), float32(r), float32(r)}
			c := float32(2 * math.Log(255*0.5) / (r * r))
			s.Conic = [3]float32{c, 0, c}
		}
	}
	return first(checkTiles(t, p, t.camera(100, 90), 1, 2), checkCover(t, p, t.camera(100, 90)))
}

// checkHuge gives huge of n splats an ellipse far larger than the image of 20 by 15 tiles.
func checkHuge(t *trial, n, huge int) error {
	p := &ref.Projection[float32]{}
	for i := range n {
		size := 3.0
		if i < huge {
			size = 5000
		}
		t.addEllipse(p, [2]float64{320 * t.Float64(), 240 * t.Float64()}, size, size, 0.9)
	}
	v := t.camera(320, 240)
	got, err := runTiles(t, p, v, 0, 1, n*300)
	if err != nil {
		return err
	}
	count := make([]int, n)
	for _, splat := range got.splats {
		count[splat]++
	}
	for i := range huge {
		if count[i] != 300 {
			return fmt.Errorf("binding splat_from_slot: splat %d has %d tiles, want all 300", i, count[i])
		}
	}
	return first(got.consistent(v.Grid()), checkTiles(t, p, v, 1, 4))
}

func checkOneTile(t *trial) error {
	p := &ref.Projection[float32]{}
	for range 600 {
		t.addEllipse(p, [2]float64{56 + t.Float64(), 40 + t.Float64()}, 1.2, 0.8, 0.5)
	}
	v := t.camera(320, 240)
	got, err := runTiles(t, p, v, 0, 1, 700)
	if err != nil {
		return err
	}
	want := make([]uint32, 600)
	for i := range want {
		want[i] = 2*20 + 3
	}
	return first(equal("tile_ids", got.tiles, want), got.consistent(v.Grid()))
}

// checkRuns lets splats in the order of depth take turns, 700 at a time, between the first and the last band, with one
// in between that is in all.
func checkRuns(t *trial) error {
	p := &ref.Projection[float32]{}
	for i := range 2800 {
		y, size := 8+224*float64(i/700%2), 2.0
		if i == 1000 {
			size = 5000
		}
		t.addEllipse(p, [2]float64{320 * t.Float64(), y}, size, size, 0.9)
		p.DepthKeys[i] = math.Float32bits(1 + float32(i))
	}
	return checkTiles(t, p, t.camera(320, 240), 1, 5)
}

// checkIsectCapacity gives exactly enough room, then one place too few: then nothing is emitted, and the counters tell
// what was needed.
func checkIsectCapacity(t *trial, n int) error {
	p, v := t.ellipses(n, 250, 130), t.camera(250, 130)
	free, err := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	if err != nil {
		return err
	}
	fits := len(free.tiles)
	full, err := runTiles(t, p, v, 0, 1, fits)
	if err != nil {
		return err
	}
	over, err := runTiles(t, p, v, 0, 1, fits-1)
	if err != nil {
		return err
	}
	want := []uint32{layout.FailedIsects, 0, uint32(fits)} // unit 0
	return first(
		equal("tile_ids", full.tiles, free.tiles),
		equal("counters", full.counters[layout.Failed:layout.NActive], []uint32{0, 0, 0}),
		equal("counters", over.counters[layout.Failed:layout.NActive], want), equal("tile_ids", over.tiles, []uint32{}),
	)
}

// checkTilesPoison puts bad numbers where project would never: no tile may be out of range.
func checkTilesPoison(t *trial) error {
	p := &ref.Projection[float32]{}
	for _, x := range bad {
		for k := range 8 {
			t.addEllipse(p, [2]float64{100, 60}, 20, 10, 0.5)
			s, e := &p.Splats[len(p.Splats)-1], &p.Extents[len(p.Splats)-1]
			*[]*float32{&s.Mean2D[0], &s.Mean2D[1], &s.Conic[0], &s.Conic[1], &s.Conic[2], &e[0], &e[1], &e[2]}[k] = x
		}
	}
	v := t.camera(250, 130)
	got, err := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	if err != nil {
		return err
	}
	return got.consistent(v.Grid())
}

// checkTileOffsets sorts n isects on tiles [from, to).
func checkTileOffsets(t *trial, n, cols, rows, from, to int) error {
	ids := t.uints(n, uint32(to-from))
	for i := range ids {
		ids[i] += uint32(from)
	}
	slices.Sort(ids)
	l := t.list()
	p := layout.StepParams{View: layout.View{TileWidth: uint32(cols), TileHeight: uint32(rows)}}
	offsets, order := output[uint32](l, "tile_offsets", cols*rows+1), output[uint32](l, "tile_order", cols*rows)
	l.r.Dispatch(&shaders.TileOffsets{
		Params:   input(l, "params", []layout.StepParams{p}),
		Counters: input(l, "counters", junkCounters(map[int]uint32{layout.NIsects: uint32(n)})),
		TileIds:  input(l, "tile_ids", ids), TileOffsets: offsets.Slice, TileOrder: order.Slice,
	}, vk.Items(cols*rows+1+256, layout.OrderTiles))
	if err := l.run(); err != nil {
		return err
	}
	want := ref.TileOffsets(ids, cols*rows)
	return first(equal("tile_offsets", offsets.got, want), equal("tile_order", order.got, ref.TileOrder(want)))
}
