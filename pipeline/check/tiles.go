package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func tileCases() []Case {
	sized := func(sizes []int, bands ...int) func(t *trial) {
		return over(sizes, func(t *trial, n int) { checkTilesOf(t, n, bands...) })
	}
	return slices.Concat(casesOf("count_tiles", table{
		{"sizes", sized([]int{0, 1, 255, 256, 257, 513}, 1)},
		{"every pixel that alpha reaches is covered", over([][2]int{{1, 1}, {16, 16}, {17, 33}, {160, 96}},
			func(t *trial, s [2]int) { checkCover(t, t.ellipses(250, s[0], s[1]), t.camera(s[0], s[1])) })},
		{"edges on the borders of tiles", checkBorders},
	}), casesOf("emit_isects", table{
		{"bands", sized([]int{300}, 1, 2, 3, 5, 9)},
		{"one splat on all tiles", over([]int{1, 3, 300}, func(t *trial, n int) { checkHuge(t, n, 1) })},
		{"all splats on all tiles", func(t *trial) { checkHuge(t, 20, 20) }},
		{"all splats on one tile", checkOneTile},
		{"long runs of splats without tiles in the band", checkRuns},
		{"capacity just enough and one short", func(t *trial) { checkIsectCapacity(t, 400) }},
		{"poison", checkTilesPoison},
	}), casesOf("tile_offsets", table{
		{"isects", over([]int{0, 1, 255, 256, 257, 5000},
			func(t *trial, n int) { checkTileOffsets(t, n, 20, 15, 0, 300) })},
		{"tiles", over([][2]int{{1, 1}, {254, 1}, {255, 1}, {256, 1}, {510, 1}, {511, 1}, {16, 16}, {257, 3}},
			func(t *trial, s [2]int) {
				checkTileOffsets(t, 700, s[0], s[1], 0, s[0]*s[1])
				checkTileOffsets(t, 0, s[0], s[1], 0, 1)
			})},
		{"all on the first tile, all on the last", func(t *trial) {
			checkTileOffsets(t, 700, 20, 15, 0, 1)
			checkTileOffsets(t, 700, 20, 15, 299, 300)
		}},
	}))
}

// scanTilesCases are cases of scan_tiles, which must find what count_tiles and the scan find.
func scanTilesCases() []Case {
	blocks := func(sizes []int, block int, check func(t *trial, n int)) func(t *trial) {
		return func(t *trial) { eachOf(oneBlock(t.d, sizes, block), func(n int) { check(t, n) }) }
	}
	return casesOf("scan_tiles", table{
		{"sizes", blocks([]int{0, 1, 255, 256, 257, 513, 5000}, layout.Group,
			func(t *trial, n int) { checkTilesOf(t, n, 1) })},
		{"looking back", over([]int{1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 65, 300}, checkScanLookBack)},
		{"bands", blocks([]int{200, 300}, layout.Group, func(t *trial, n int) { checkTilesOf(t, n, 1, 2, 3, 5, 9) })},
		{"many blocks", blocks([]int{200, 100 * layout.Group, 300*layout.Group + 7}, layout.Group, checkSameScan)},
		{"several rounds of a workgroup", blocks([]int{257, 512, 4095, 4096, 4097, 100 * layout.Group},
			16*layout.Group, func(t *trial, n int) {
				t.rounds = true
				checkSameScan(t, n)
			})},
		{"all splats on all tiles", func(t *trial) { checkHuge(t, 20, 20) }},
		{"capacity just enough and one short", blocks([]int{200, 400}, layout.Group, checkIsectCapacity)},
		{"more isects than can be counted", blocks([]int{255, 256, 800}, layout.Group, checkScanTilesOverflow)},
		{"poison", checkTilesPoison},
	}, func(t *trial) { t.lookback = true })
}

func checkTilesOf(t *trial, n int, bands ...int) {
	checkTiles(t, t.ellipses(n, 250, 130), t.camera(250, 130), bands...)
}

// checkScanLookBack runs the last block of several alone, after the others have published: it waits for none.
func checkScanLookBack(t *trial, before int) {
	sums, all := t.uints(before, 1000), uint32(0)
	for _, sum := range sums {
		all += sum
	}
	p := &ref.Projection[float32]{}
	t.addEllipse(p, [2]float64{24, 24}, 0.1, 0.1, 0.9) // one tile
	n, v := before*layout.Group+3, t.camera(250, 130)
	counters, firsts := scratchOf(t, countersWith(n)), out[uint32](t, n)
	tallies := scratchOf(t, append(append([]uint32{uint32(before)}, publish(t.source, sums)...), 0))
	t.dispatch(&shaders.ScanTiles{Params: in(t, paramsOf(v)), Counters: counters, SplatFromRank: in(t, make([]uint32,
		n)...), Shapes: in(t, shapesOf(p)...), FirstIsect: firsts, Tallies: tallies, DispatchArgs: argsOf(t, nil),
		Push: shaders.ScanTilesPush{NBands: 1, Capacity: 1 << 20, MostGroups: 1024}}, vk.Groups(1))
	t.run()
	same("first_isect", got(t, firsts)[n-3:], []uint32{all, all + 1, all + 2})
	same("counters", got(t, counters)[layout.NIsects:layout.NIsects+1], []uint32{all + 3})
	same("tallies", got(t, tallies)[before+1:], []uint32{all + 3 | 1<<31})
}

// checkSameScan wants of scan_tiles what count_tiles and the scan write. There is room for nothing, so that the isects
// themselves take no time.
func checkSameScan(t *trial, n int) {
	p, v := t.ellipses(n, 250, 130), t.camera(250, 130)
	is := runTiles(t, p, v, 0, 1, 0)
	t.lookback = false
	want := runTiles(t, p, v, 0, 1, 0)
	t.lookback = true
	same("first_isect", is.first, want.first)
	same("counters", is.counters, want.counters)
	same("dispatch_args", is.args, want.args)
}

// checkScanTilesOverflow lets splats cover all 2^22 tiles of the largest image: 255 are counted exactly, from 256 on
// the sum stays at 2^30 - 1.
func checkScanTilesOverflow(t *trial, n int) {
	p := &ref.Projection[float32]{}
	for range n {
		t.addEllipse(p, [2]float64{1 << 14, 1 << 14}, 1e6, 1e6, 0.9)
	}
	is := runTiles(t, p, t.camera(1<<15, 1<<15), 0, 1, 1000)
	is.failed(layout.FailedIsects, uint32(min(n<<22, 1<<30-1)))
	same("tile_ids", is.tiles, nil)
}

// isects is the output of count_tiles, the scan and emit_isects for one band.
type isects struct {
	ranks             []uint32 // splat_from_rank
	first             []uint32
	tiles, splats, id []uint32
	counters          []uint32
	args              [][3]uint32
}

// failed wants the failure of unit 0.
func (s *isects) failed(failed, needed uint32) {
	same("counters", s.counters[layout.Failed:layout.NActive], []uint32{failed, 0, needed})
}

// runTiles runs count_tiles, the scan and emit_isects for one band, with room for the given number of pairs.
func runTiles(t *trial, p *ref.Projection[float32], v *ref.View[float32], band, bands, capacity int) *isects {
	ranks := ref.SortDepth(p.DepthKeys)
	n, start := len(ranks), countersWith(len(ranks))
	if n == 0 {
		start[layout.NIsects] = 0 // as begin sets it: scan_tiles does not run then
	}
	params, shapes, splatOf := in(t, paramsOf(v)), in(t, shapesOf(p)...), in(t, ranks...)
	counters, tileCounts, args := scratchOf(t, start), out[uint32](t, n), argsOf(t, nil)
	ids, splats, slots := out[uint32](t, capacity), out[uint32](t, capacity), out[uint32](t, capacity)
	if t.lookback {
		push := shaders.ScanTilesPush{Band: uint32(band), NBands: uint32(bands), Capacity: uint32(capacity),
			MostGroups: 1024}
		if t.rounds {
			push.MostGroups = 1
		}
		t.dispatch(&shaders.ScanTiles{Params: params, Counters: counters, SplatFromRank: splatOf, Shapes: shapes,
			FirstIsect: tileCounts, Tallies: scratchOf(t, make([]uint32, 1+blocksOf(n, layout.Group))),
			DispatchArgs: args, Push: push}, vk.Items(n+256, 256))
	} else {
		t.dispatch(&shaders.CountTiles{Params: params, Counters: counters, SplatFromRank: splatOf, Shapes: shapes,
			TileCounts: tileCounts, Push: shaders.CountTilesPush{Band: uint32(band), NBands: uint32(bands)}},
			vk.Items(n+256, 256))
		t.scan(params, counters, tileCounts, args, n, layout.NVisible, layout.NIsects, capacity)
	}
	t.dispatch(&shaders.EmitIsects{Params: params, Counters: counters, SplatFromRank: splatOf, FirstIsect: tileCounts,
		Shapes: shapes, TileIds: ids, SplatFromSlot: splats, SlotIds: slots,
		Push: shaders.EmitIsectsPush{Band: uint32(band), NBands: uint32(bands)}}, vk.Items(capacity+layout.SortBlock,
		layout.SortBlock))
	t.run()
	total := int(got(t, counters)[layout.NIsects])
	return &isects{ranks: ranks, first: got(t, tileCounts), counters: got(t, counters), args: got(t, args),
		tiles: head(t, ids, total), splats: head(t, splats, total), id: head(t, slots, total)}
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
func (s *isects) consistent(g ref.Grid) {
	for i, id := range s.id {
		if int(id) != i {
			failf("binding slot_ids: [%d]: got %d", i, id)
		}
	}
	next := 0
	for rank, splat := range s.ranks {
		a, b := s.slots(rank)
		if a != next || b < a || b > len(s.tiles) {
			failf("binding first_isect: [%d]: got %d to %d, want from %d on", rank, a, b, next)
		}
		next = b
		for slot := a; slot < b; slot++ {
			tile := int(s.tiles[slot])
			if s.splats[slot] != splat {
				failf("binding splat_from_slot: [%d]: got %d, want %d", slot, s.splats[slot], splat)
			}
			if tile < g.RowFirst*g.Cols || tile >= g.RowEnd*g.Cols || slot > a && s.tiles[slot-1] >= s.tiles[slot] {
				failf("binding tile_ids: [%d]: got %d, splat %d, out of the band or of order", slot, tile, splat)
			}
		}
	}
	if next != len(s.tiles) {
		failf("binding counters: [%d]: got %d isects, the splats have %d", layout.NIsects, len(s.tiles), next)
	}
}

// checkTiles compares each splat's tiles with the reference, for every band of each number of bands.
func checkTiles(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands ...int) {
	least, most := scaled(p, -1), scaled(p, 1)
	eachOf(bands, func(n int) {
		eachOf(indices(n), func(band int) {
			g := v.Grid().Band(band, n)
			tiles, _ := ref.EmitIsects(most, ref.SortDepth(p.DepthKeys), g)
			is := runTiles(t, p, v, band, n, len(tiles))
			is.consistent(g)
			is.between(least, most, g)
		})
	})
}

// between requires of each splat all tiles that it has in least, and none that it has not in most.
func (s *isects) between(least, most *ref.Projection[float32], g ref.Grid) {
	for rank, splat := range s.ranks {
		a, b := s.slots(rank)
		must, _ := ref.EmitIsects(least, []uint32{splat}, g)
		may, _ := ref.EmitIsects(most, []uint32{splat}, g)
		for _, tile := range must {
			if _, ok := slices.BinarySearch(s.tiles[a:b], tile); !ok {
				failf("binding tile_ids: splat %d (rank %d): got %v, want %v", splat, rank, s.tiles[a:b], must)
			}
		}
		for k, tile := range s.tiles[a:b] {
			if _, ok := slices.BinarySearch(may, tile); !ok {
				failf("binding tile_ids: [%d]: got %d, splat %d has only %v", a+k, tile, splat, may)
			}
		}
	}
}

// checkCover looks at every pixel: where alpha reaches the threshold, the splat has the pixel's tile.
func checkCover(t *trial, p *ref.Projection[float32], v *ref.View[float32]) {
	g := v.Grid()
	got := runTiles(t, p, v, 0, 1, len(p.Splats)*g.Tiles())
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
				failf("binding tile_ids: splat %d has alpha %v at pixel %d, %d, and not tile %d", splat,
					p.Splats[splat], x, y, tile)
			}
		}
	}
	got.consistent(g)
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
func checkBorders(t *trial) {
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
	checkTiles(t, p, t.camera(100, 90), 1, 2)
	checkCover(t, p, t.camera(100, 90))
}

// checkHuge gives huge of n splats an ellipse far larger than the image of 20 by 15 tiles.
func checkHuge(t *trial, n, huge int) {
	p := &ref.Projection[float32]{}
	for i := range n {
		size := 3.0
		if i < huge {
			size = 5000
		}
		t.addEllipse(p, [2]float64{320 * t.Float64(), 240 * t.Float64()}, size, size, 0.9)
	}
	v := t.camera(320, 240)
	got := runTiles(t, p, v, 0, 1, n*300)
	count := make([]int, n)
	for _, splat := range got.splats {
		count[splat]++
	}
	for i := range huge {
		if count[i] != 300 {
			failf("binding splat_from_slot: splat %d has %d tiles, want all 300", i, count[i])
		}
	}
	got.consistent(v.Grid())
	checkTiles(t, p, v, 1, 4)
}

func checkOneTile(t *trial) {
	p := &ref.Projection[float32]{}
	for range 600 {
		t.addEllipse(p, [2]float64{56 + t.Float64(), 40 + t.Float64()}, 1.2, 0.8, 0.5)
	}
	v := t.camera(320, 240)
	got := runTiles(t, p, v, 0, 1, 700)
	same("tile_ids", got.tiles, slices.Repeat([]uint32{2*20 + 3}, 600))
	got.consistent(v.Grid())
}

// checkRuns lets splats in the order of depth take turns, 700 at a time, between the first and the last band, with one
// in between that is in all.
func checkRuns(t *trial) {
	p := &ref.Projection[float32]{}
	for i := range 2800 {
		y, size := 8+224*float64(i/700%2), 2.0
		if i == 1000 {
			size = 5000
		}
		t.addEllipse(p, [2]float64{320 * t.Float64(), y}, size, size, 0.9)
		p.DepthKeys[i] = math.Float32bits(1 + float32(i))
	}
	checkTiles(t, p, t.camera(320, 240), 1, 5)
}

// checkIsectCapacity gives exactly enough room, then one place too few: then nothing is emitted, and the counters tell
// what was needed.
func checkIsectCapacity(t *trial, n int) {
	p, v := t.ellipses(n, 250, 130), t.camera(250, 130)
	free := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	fits := len(free.tiles)
	full := runTiles(t, p, v, 0, 1, fits)
	over := runTiles(t, p, v, 0, 1, fits-1)
	same("tile_ids", full.tiles, free.tiles)
	full.failed(0, 0)
	over.failed(layout.FailedIsects, uint32(fits))
	same("tile_ids", over.tiles, nil)
}

// checkTilesPoison puts bad numbers where project would never: no tile may be out of range.
func checkTilesPoison(t *trial) {
	p := &ref.Projection[float32]{}
	for _, x := range bad {
		for k := range 8 {
			t.addEllipse(p, [2]float64{100, 60}, 20, 10, 0.5)
			s, e := &p.Splats[len(p.Splats)-1], &p.Extents[len(p.Splats)-1]
			*[]*float32{&s.Mean2D[0], &s.Mean2D[1], &s.Conic[0], &s.Conic[1], &s.Conic[2], &e[0], &e[1], &e[2]}[k] = x
		}
	}
	v := t.camera(250, 130)
	got := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	got.consistent(v.Grid())
}

// checkTileOffsets sorts n isects on tiles [from, to).
func checkTileOffsets(t *trial, n, cols, rows, from, to int) {
	ids := t.uints(n, uint32(to-from))
	for i := range ids {
		ids[i] += uint32(from)
	}
	slices.Sort(ids)
	want := ref.TileOffsets(ids, cols*rows)
	t.dispatch(&shaders.TileOffsets{Params: in(t, layout.StepParams{View: layout.View{TileWidth: uint32(cols),
		TileHeight: uint32(rows)}}), Counters: in(t, junkCounters(counts{layout.NIsects: uint32(n)})...), TileIds: in(t,
		ids...), TileOffsets: out[uint32](t, cols*rows+1, exactly(want...)), TileOrder: out[uint32](t, cols*rows,
		exactly(ref.TileOrder(want)...))}, vk.Items(cols*rows+1+256, layout.OrderTiles))
	t.run()
}
