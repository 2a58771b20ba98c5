package check

import (
	"fmt"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// benchCases are those of the kernels that measure, and train nothing.
func benchCases() []Case {
	return []Case{
		newCase("bench_copy", "sizes", func(t *trial) error {
			return each([]int{1, 255, 256, 257, 5000}, func(n int) error { return checkBenchCopy(t, n) })
		}),
		newCase("bench_fma", "rounds", func(t *trial) error {
			return each([]int{0, 1, 2, 7}, func(rounds int) error { return checkBenchFMA(t, 700, rounds, 0.99, 0.25) })
		}),
		newCase("bench_fma", "at its fixed point", func(t *trial) error { return checkBenchFMA(t, 257, 50, 0.5, 1) }),
		newCase("bench_shared", "rounds", func(t *trial) error {
			return each([]int{0, 1, 2, 7}, func(rounds int) error {
				return first(checkBenchShared(t, 700, rounds, false), checkBenchShared(t, 700, rounds, true))
			})
		}),
		newCase("count_pairs", "sizes of views", func(t *trial) error {
			return each([][2]int{{1, 1}, {15, 16}, {17, 16}, {37, 90}}, func(s [2]int) error {
				return checkCountPairs(t, t.ellipses(60, s[0], s[1]), t.camera(s[0], s[1]), 1)
			})
		}),
		newCase("count_pairs", "no splats",
			func(t *trial) error { return checkCountPairs(t, t.ellipses(0, 40, 30), t.camera(40, 30), 1) }),
		newCase("count_pairs", "opaque: pixels stop early",
			func(t *trial) error { return checkCountPairs(t, t.crowd(700, 40, 24, 0.9), t.camera(40, 24), 1) }),
		newCase("count_pairs", "bands",
			func(t *trial) error { return checkCountPairs(t, t.crowd(300, 70, 90, 0.1), t.camera(70, 90), 3) }),
	}
}

func checkBenchCopy(t *trial, n int) error {
	l := t.list()
	data := make([][4]uint32, n)
	for i := range data {
		data[i] = [4]uint32{t.Uint32(), t.Uint32(), t.Uint32(), t.Uint32()}
	}
	to := output[[4]uint32](l, "copy_to", n)
	l.r.Dispatch(&shaders.BenchCopy{CopyFrom: input(l, "copy_from", data), CopyTo: to.Slice,
		Push: shaders.BenchCopyPush{N: uint32(n)}}, vk.Items(n+300, 256))
	if err := l.run(); err != nil {
		return err
	}
	return equal("copy_to", to.got, data)
}

func checkBenchFMA(t *trial, n, rounds int, scale, shift float32) error {
	l := t.list()
	sums := output[float32](l, "fma_sums", n)
	l.r.Dispatch(&shaders.BenchFma{FmaSums: sums.Slice,
		Push: shaders.BenchFmaPush{N: uint32(n), Rounds: uint32(rounds), Scale: scale, Shift: shift}}, vk.Items(n, 256))
	if err := l.run(); err != nil {
		return err
	}
	want := make([]float32, n)
	for i := range want {
		want[i] = ref.BenchFMA(i, rounds, scale, shift)
	}
	// The sum of eight chains has an order of the device's, and fma may round twice: errors shrink with every step,
	// since scale is below 1.
	return closeTo("fma_sums", sums.got, want, 1e-4, 1e-5)
}

func checkBenchShared(t *trial, n, rounds int, shuffle bool) error {
	const stride = 33
	l := t.list()
	sums := output[uint32](l, "shared_sums", n)
	l.r.Dispatch(&shaders.BenchShared{SharedSums: sums.Slice, Spec: shaders.BenchSharedSpec{Shuffle: shuffle},
		Push: shaders.BenchSharedPush{N: uint32(n), Rounds: uint32(rounds), Stride: stride}}, vk.Items(n, 256))
	if err := l.run(); err != nil {
		return err
	}
	want := make([]uint32, n)
	for i := range want {
		want[i] = ref.BenchShared(i, rounds, stride, shuffle)
	}
	return equal("shared_sums", sums.got, want)
}

// checkCountPairs counts band after band into one buffer.
func checkCountPairs(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands int) error {
	for _, s := range []ref.Sharing{
		{Column: 1, Side: 1, Round: 16}, {Column: 1, Side: 2, Round: 16}, {Column: 1, Side: 8, Round: 8},
		{Column: 4, Side: 1, Round: 16}, {Column: 4, Side: 2, Round: 32}} {
		if err := checkVisits(t, p, v, bands, s); err != nil {
			return fmt.Errorf("%+v: %w", s, err)
		}
	}
	return nil
}

// checkVisits is checkCountPairs for one way of sharing.
func checkVisits(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands int, s ref.Sharing) error {
	l := t.list()
	whole := v.Grid()
	out := output[layout.TilePairs](l, "tile_pairs", whole.Tiles())
	want := make([]layout.TilePairs, whole.Tiles())
	for band := range bands {
		g := whole.Band(band, bands)
		lists := ref.NewLists(p, g)
		counted := ref.CountPairs(projection64(p).Splats, lists, ref.ConvertView[float64](v), g, s)
		for tile, x := range counted {
			if row := tile / g.Cols; row >= g.RowFirst && row < g.RowEnd {
				want[tile] = layout.TilePairs{Seen: x.Seen, Blended: x.Blended, Isects: x.Isects, All: x.All,
					Visits: x.Visits, PatchesBwd: x.PatchesBwd, VisitsBwd: x.VisitsBwd}
			}
		}
		l.r.Dispatch(&shaders.CountPairs{
			Params:        input(l, "params", []layout.StepParams{paramsOf(v)}),
			TileOffsets:   input(l, "tile_offsets", lists.TileOffsets),
			SlotFromIsect: input(l, "slot_from_isect", lists.SlotFromIsect),
			SplatFromSlot: input(l, "splat_from_slot", lists.SplatFromSlot),
			Shapes:        input(l, "shapes", shapesOf(p)), Paints: input(l, "paints", paintsOf(p.Splats)),
			TilePairs: out.Slice,
			Push: shaders.CountPairsPush{Band: uint32(band), NBands: uint32(bands), Column: uint32(s.Column),
				Side: uint32(s.Side), Round: uint32(s.Round)},
		}, vk.Groups(whole.Tiles()+3))
	}
	if err := l.run(); err != nil {
		return err
	}
	differ := 0 // splats on the threshold of alpha, and pixels on that of transmittance, may go either way
	for tile, got := range out.got {
		if got != want[tile] {
			differ++
		}
		if d := int64(got.Blended) - int64(want[tile].Blended); d > 4 || d < -4 {
			return fmt.Errorf("binding tile_pairs: tile %d blends %d pairs, want %d", tile, got.Blended,
				want[tile].Blended)
		}
	}
	if differ > 1+len(want)/10 {
		return equal("tile_pairs", out.got, want)
	}
	return nil
}
