package check

import (
	"math/rand/v2"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func reduceCases() []Case {
	return []Case{
		newCase("reduce_slots", "sizes", func(t *trial) error {
			return each([]int{0, 1, 3, 4, 5, 27, 28, 29, 255, 256, 257, 513},
				func(n int) error { return checkReduce(t, t.ellipses(n, 250, 130), t.camera(250, 130), 1) })
		}),
		newCase("reduce_slots", "64 slots and 65", func(t *trial) error {
			p := &ref.Projection[float32]{}
			for _, size := range [][2]float64{{8, 8}, {8, 9}, {9, 8}, {8, 7}} { // tiles
				t.addCircle(p, [2]float64{8 * size[0], 8 * size[1]}, 8*size[0]-0.6, 8*size[1]-0.6)
			}
			return checkReduce(t, p, t.camera(200, 200), 1)
		}),
		newCase("reduce_slots", "more than 28 and 56 rows of tiles", func(t *trial) error {
			p := t.ellipses(20, 60, 1100)
			for range 3 {
				t.addEllipse(p, [2]float64{30, 500}, 4000, 4000, 0.9)
			}
			return checkReduce(t, p, t.camera(60, 1100), 1)
		}),
		newCase("reduce_slots", "bands give the same bytes", func(t *trial) error {
			p := t.ellipses(300, 250, 130)
			for range 3 {
				t.addEllipse(p, [2]float64{125, 65}, 4000, 4000, 0.9)
			}
			return checkReduce(t, p, t.camera(250, 130), 1, 2, 3, 9, 20)
		}),
		newCase("reduce_slots", "a unit without isects sets zeros", func(t *trial) error {
			p := t.ellipses(300, 100, 60)
			for i := range p.Extents {
				p.Extents[i] = [3]float32{}
				p.Splats[i].Mean2D = [2]float32{-100, -100}
			}
			return checkReduce(t, p, t.camera(100, 60), 1)
		}),
		newCase("reduce_slots", "a unit whose isects did not fit sets zeros", checkReduceFailed),
	}
}

// checkReduceFailed has first isects without isects.
func checkReduceFailed(t *trial) error {
	return each([]int{1, 2}, func(bands int) error { return checkReduceFailedIn(t, bands) })
}

// checkReduceFailedIn is that for the first of so many bands. Some splats have very many tiles, and slots that are not
// there.
func checkReduceFailedIn(t *trial, bands int) error {
	p, v := t.ellipses(600, 250, 130), t.camera(250, 130)
	for range 3 {
		t.addEllipse(p, [2]float64{125, 65}, 400, 400, 0.9)
	}
	s, err := runTiles(t, p, v, 0, bands, 100)
	if err != nil {
		return err
	}
	want := make([]ref.ProjectedGrad[float32], len(p.Splats))
	for i := range want {
		want[i] = slotGrad(uint32(i), 1<<31)
	}
	l := t.list()
	out := inout(l, "v_projected", gradientsOf(want))
	l.reduce(p, v, s, 0, bands, out)
	if err := l.run(); err != nil {
		return err
	}
	for _, splat := range s.ranks {
		want[splat] = ref.ProjectedGrad[float32]{}
	}
	return first(equal("counters", s.counters[layout.NIsects:layout.NIsects+1], []uint32{0}),
		sameBytes("v_projected", out.got, gradientsOf(want)))
}

// addCircle adds an upright ellipse with the given extents.
func (t *trial) addCircle(p *ref.Projection[float32], mean [2]float64, ex, ey float64) {
	t.addEllipse(p, mean, 1, 1, 0.5)
	last := len(p.Splats) - 1
	p.Extents[last] = [3]float32{float32(ex), float32(ey), float32(ex)}
	p.Splats[last].Conic = [3]float32{float32(9.7 / (ex * ex)), 0, float32(9.7 / (ey * ey))}
}

// slotGrad is the gradient that the check invents for a (splat, tile) pair, whatever its slot.
func slotGrad(splat, tile uint32) (g ref.ProjectedGrad[float32]) {
	r := rand.New(rand.NewPCG(uint64(splat), uint64(tile)))
	for k := range g {
		g[k] = float32(r.NormFloat64())
	}
	return g
}

// checkReduce sums in every number of bands and requires the bytes of slotSums, in float32: additions are exactly
// rounded on every device.
func checkReduce(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands ...int) error {
	whole, err := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	if err != nil {
		return err
	}
	want := slotSums(whole, len(p.Splats), v.Grid().Cols)
	plain := func(n int) error { return checkBands(t, p, v, whole, want, n, false) }
	return first(each(bands, plain),
		each(bands, func(n int) error { return checkBands(t, p, v, whole, want, n, true) }))
}

func checkBands(
	t *trial, p *ref.Projection[float32], v *ref.View[float32], whole *isects, want []ref.ProjectedGrad[float32], n int,
	absgrad bool,
) error {
	l := t.list()
	start := make([]ref.ProjectedGrad[float32], len(p.Splats))
	for i := range start {
		start[i] = slotGrad(uint32(i), 1<<31) // of the step before
	}
	out, abs := inout(l, "v_projected", gradientsOf(start)), inout(l, "v_abs_mean2d", absOf(start))
	for band := range n {
		s, err := runTiles(t, p, v, band, n, len(whole.tiles))
		if err != nil {
			return err
		}
		l.reduceAbs(p, v, s, band, n, out, abs, absgrad)
	}
	if err := l.run(); err != nil {
		return err
	}
	wantAbs := absOf(start)
	for i := range start {
		if p.DepthKeys[i] != ref.Culled {
			start[i] = want[i]
		}
	}
	if absgrad {
		wantAbs = absOf(start)
	}
	return first(sameBytes("v_projected", out.got, gradientsOf(start)), sameBytes("v_abs_mean2d", abs.got, wantAbs))
}

// absOf is the absolute gradients that the check invents beside others: the first two of them, which need not be
// positive for their sums to be right.
func absOf(v []ref.ProjectedGrad[float32]) [][2]float32 {
	out := make([][2]float32, len(v))
	for i, g := range v {
		out[i] = [2]float32{g[0], g[1]}
	}
	return out
}

// reduce records reduce_slots for one band.
func (l *list) reduce(p *ref.Projection[float32], v *ref.View[float32], s *isects, band, bands int,
	out *buffer[layout.ProjectedGrad]) {
	l.reduceAbs(p, v, s, band, bands, out, output[[2]float32](l, "v_abs_mean2d", 0), false)
}

func (l *list) reduceAbs(
	p *ref.Projection[float32], v *ref.View[float32], s *isects, band, bands int, out *buffer[layout.ProjectedGrad],
	abs *buffer[[2]float32], absgrad bool,
) {
	slots := make([]ref.ProjectedGrad[float32], len(s.tiles))
	for slot, tile := range s.tiles {
		slots[slot] = slotGrad(s.splats[slot], tile)
	}
	l.r.Dispatch(&shaders.ReduceSlots{
		Params: input(l, "params", []layout.StepParams{paramsOf(v)}), Counters: input(l, "counters", s.counters),
		SplatFromRank: input(l, "splat_from_rank", s.ranks), FirstIsect: input(l, "first_isect", s.first),
		Shapes: input(l, "shapes", shapesOf(p)),
		VSlots: vk.Cast[float32](input(l, "v_slots", gradientsOf(slots)).View), VProjected: vk.Cast[float32](out.View),
		VAbsSlots: vk.Cast[float32](input(l, "v_abs_slots", absOf(slots)).View), VAbsMean2d: vk.Cast[float32](abs.View),
		Spec: shaders.ReduceSlotsSpec{Absgrad: absgrad},
		Push: shaders.ReduceSlotsPush{Band: uint32(band), NBands: uint32(bands)},
	}, vk.Items(len(s.ranks)+256, layout.ReduceRanks))
}

// slotSums adds the gradients of each splat's tiles: in the order of its slots, or where they are many along a row of
// tiles from left to right, then the rows from top to bottom.
func slotSums(s *isects, n, cols int) []ref.ProjectedGrad[float32] {
	sums := make([]ref.ProjectedGrad[float32], n)
	add := func(to *ref.ProjectedGrad[float32], g ref.ProjectedGrad[float32]) {
		for k := range g {
			to[k] += g[k]
		}
	}
	for rank, splat := range s.ranks {
		a, b := s.slots(rank)
		for slot := a; slot < b; {
			if b-a <= layout.ManySlots {
				add(&sums[splat], slotGrad(splat, s.tiles[slot]))
				slot++
				continue
			}
			var row ref.ProjectedGrad[float32]
			for y := int(s.tiles[slot]) / cols; slot < b && int(s.tiles[slot])/cols == y; slot++ {
				add(&row, slotGrad(splat, s.tiles[slot]))
			}
			add(&sums[splat], row)
		}
	}
	return sums
}
