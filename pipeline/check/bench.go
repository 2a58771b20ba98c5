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

func benchCases() []Case {
	return []Case{
		newCase("bench_copy", "sizes", over([]int{1, 255, 256, 257, 5000}, checkBenchCopy)),
		newCase("bench_fma", "rounds",
			over([]int{0, 1, 2, 7}, func(t *trial, rounds int) { checkBenchFMA(t, 700, rounds, 0.99, 0.25) })),
		newCase("bench_fma", "at its fixed point", func(t *trial) { checkBenchFMA(t, 257, 50, 0.5, 1) }),
		newCase("bench_shared", "rounds", over([]int{0, 1, 2, 7}, func(t *trial, rounds int) {
			checkBenchShared(t, 700, rounds, false)
			checkBenchShared(t, 700, rounds, true)
		})),
		newCase("count_pairs", "sizes of views", over([][2]int{{1, 1}, {15, 16}, {17, 16}, {37, 90}},
			func(t *trial, s [2]int) { checkCountPairs(t, t.ellipses(60, s[0], s[1]), t.camera(s[0], s[1]), 1) })),
		newCase("count_pairs", "no splats",
			func(t *trial) { checkCountPairs(t, t.ellipses(0, 40, 30), t.camera(40, 30), 1) }),
		newCase("count_pairs", "opaque: pixels stop early",
			func(t *trial) { checkCountPairs(t, t.crowd(700, 40, 24, 0.9), t.camera(40, 24), 1) }),
		newCase("count_pairs", "bands",
			func(t *trial) { checkCountPairs(t, t.crowd(300, 70, 90, 0.1), t.camera(70, 90), 3) }),
	}
}

func checkBenchCopy(t *trial, n int) {
	data := make([][4]uint32, n)
	for i := range data {
		data[i] = [4]uint32{t.Uint32(), t.Uint32(), t.Uint32(), t.Uint32()}
	}
	t.dispatch(&shaders.BenchCopy{CopyFrom: in(t, data...), CopyTo: out[[4]uint32](t, n, exactly(data...)),
		Push: shaders.BenchCopyPush{N: uint32(n)}}, vk.Items(n+300, 256))
	t.run()
}

func checkBenchFMA(t *trial, n, rounds int, scale, shift float32) {
	want := make([]float32, n)
	for i := range want {
		want[i] = ref.BenchFMA(i, rounds, scale, shift)
	}
	// The sum of eight chains has an order of the device's, and fma may round twice: errors shrink with every step,
	// since scale is below 1.
	t.dispatch(&shaders.BenchFma{FmaSums: out[float32](t, n, roughly(want, 1e-4, 1e-5)),
		Push: shaders.BenchFmaPush{N: uint32(n), Rounds: uint32(rounds), Scale: scale, Shift: shift}}, vk.Items(n, 256))
	t.run()
}

func checkBenchShared(t *trial, n, rounds int, shuffle bool) {
	const stride = 33
	want := make([]uint32, n)
	for i := range want {
		want[i] = ref.BenchShared(i, rounds, stride, shuffle)
	}
	t.dispatch(&shaders.BenchShared{SharedSums: out[uint32](t, n, exactly(want...)),
		Spec: shaders.BenchSharedSpec{Shuffle: shuffle},
		Push: shaders.BenchSharedPush{N: uint32(n), Rounds: uint32(rounds), Stride: stride}}, vk.Items(n, 256))
	t.run()
}

// checkCountPairs counts band after band into one buffer, for each way of sharing.
func checkCountPairs(t *trial, p *ref.Projection[float32], v *ref.View[float32], bands int) {
	eachOf([]ref.Sharing{
		{Column: 1, Side: 1, Round: 16}, {Column: 1, Side: 2, Round: 16}, {Column: 1, Side: 8, Round: 8},
		{Column: 4, Side: 1, Round: 16}, {Column: 4, Side: 2, Round: 32},
	}, func(s ref.Sharing) {
		whole := v.Grid()
		want := make([]layout.TilePairs, whole.Tiles())
		pairs := out[layout.TilePairs](t, len(want),
			func(b *binding) { comparePairs(b.end.([]layout.TilePairs), want) })
		for band := range bands {
			g := whole.Band(band, bands)
			lists := ref.NewLists(p, g)
			for tile, x := range ref.CountPairs(projection64(p).Splats, lists, ref.ConvertView[float64](v), g, s) {
				if row := tile / g.Cols; row >= g.RowFirst && row < g.RowEnd {
					want[tile] = layout.TilePairs{Seen: x.Seen, Blended: x.Blended, Isects: x.Isects, All: x.All,
						Visits: x.Visits, PatchesBwd: x.PatchesBwd, VisitsBwd: x.VisitsBwd}
				}
			}
			t.dispatch(&shaders.CountPairs{Params: in(t, paramsOf(v)), TileOffsets: in(t, lists.TileOffsets...),
				SlotFromIsect: in(t, lists.SlotFromIsect...), SplatFromSlot: in(t, lists.SplatFromSlot...),
				Shapes: in(t, shapesOf(p)...), Paints: in(t, paintsOf(p.Splats)...), TilePairs: pairs,
				Push: shaders.CountPairsPush{Band: uint32(band), NBands: uint32(bands), Column: uint32(s.Column),
					Side: uint32(s.Side), Round: uint32(s.Round)}}, vk.Groups(whole.Tiles()+3))
		}
		t.run()
	})
}

// comparePairs lets splats on the threshold of alpha, and pixels on that of transmittance, go either way.
func comparePairs(got, want []layout.TilePairs) {
	differ := 0
	for tile, x := range got {
		if x != want[tile] {
			differ++
		}
		if d := int64(x.Blended) - int64(want[tile].Blended); d > 4 || d < -4 {
			failf("binding tile_pairs: tile %d blends %d pairs, want %d", tile, x.Blended, want[tile].Blended)
		}
	}
	if differ > 1+len(want)/10 {
		same("tile_pairs", got, want)
	}
}

func verifyCases() []Case {
	return casesOf("verify", table{
		{"numbers", func(t *trial) { checkBroken(t, verifyFloats(t.source)) }},
		{"order", func(t *trial) { checkBroken(t, verifyOrder(t.source)) }},
		{"pixels and a failed unit", checkVerifyCounts},
	})
}

// checkBroken wants a sound buffer to pass, and a broken one to be found out at its first wrong element.
func checkBroken(t *trial, list []broken) {
	for k, b := range list {
		during(fmt.Sprintf("buffer %d, sound", k), func() { checkVerify(t, b.Verification) })
		for _, at := range b.at {
			v := b.Verification
			v.Data = with(v.Data, at, b.with)
			during(fmt.Sprintf("buffer %d, word %d is %#x", k, at, b.with), func() { checkVerify(t, v) })
		}
	}
}

func checkVerify(t *trial, v ref.Verification) {
	wrong := append(v.Wrong(), layout.Culled)
	found := runVerify(t, v, counts{layout.NVisible: uint32(v.N), layout.NIsects: uint32(v.Bound)}, layout.NVisible,
		layout.StepParams{})
	// Which of two equal words is the second depends on who comes first.
	if v.Mode != layout.VerifyDistinct || len(wrong) == 1 || !slices.Contains(wrong, int(found)) {
		same("found", []uint32{found}, []uint32{uint32(wrong[0])})
	}
}

const verifySize = 70 * 256 // more than the grid has invocations

type broken struct {
	ref.Verification
	at   []int // words
	with uint32
}

func verifyFloats(t source) (list []broken) {
	words := make([]uint32, 3*verifySize)
	for i := range words {
		words[i] = math.Float32bits(float32(t.NormFloat64()))
	}
	index := t.uints(verifySize, verifySize)
	for _, bad := range []float32{nan, float32(math.Inf(-1))} {
		w := math.Float32bits(bad)
		ends := []int{0, 1, 3 * 256, len(words) - 1}
		list = append(list, broken{ref.Verification{Mode: layout.VerifyFinite, Data: words, N: verifySize, Stride: 3},
			ends, w}, broken{ref.Verification{Mode: layout.VerifyFiniteAt, Data: words, Index: index, N: verifySize,
			Stride: 3}, []int{3 * int(index[9]), 3*int(index[700]) + 2}, w},
			broken{ref.Verification{Mode: layout.VerifyFiniteRows, Data: words, N: 600, Stride: 500, Bound: 100},
				[]int{0, 499, 500, 5 * 500, 7*500 + 300}, w})
	}
	halves := make([]uint32, len(words)) // exponents that are finite both as halves and as bfloat16
	for i := range halves {
		halves[i] = uint32(t.Uint64()) &^ 0x04800480
	}
	for _, bad := range []struct{ mode, word uint32 }{
		{layout.VerifyFiniteHalves, 0x7C00}, {layout.VerifyFiniteHalves, 0xFE000001},
		{layout.VerifyFiniteBfloats, 0x7F80}, {layout.VerifyFiniteBfloats, 0xFFC00001}} {
		list = append(list, broken{ref.Verification{Mode: bad.mode, Data: halves, N: 600, Stride: 500, Bound: 100},
			[]int{0, 499, 7*500 + 300}, bad.word})
	}
	return list
}

func verifyOrder(t source) []broken {
	const n = verifySize
	up, order, shuffled, offsets := make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]uint32, n/16+1)
	for i, p := range t.Perm(n) {
		up[i], order[i] = uint32(i/16), uint32(p)
		shuffled[p] = uint32(i)
	}
	for i := range offsets {
		offsets[i] = uint32(16 * i)
	}
	return []broken{{ref.Verification{Mode: layout.VerifySorted, Data: up, N: n}, []int{0, 255, n - 2}, 1 << 30},
		{ref.Verification{Mode: layout.VerifySorted, Data: up, N: n}, []int{n - 1, 5000}, 3},
		{ref.Verification{Mode: layout.VerifySortedAt, Data: shuffled, Index: order, N: n}, []int{0, 900, n - 1},
			layout.Culled}, {ref.Verification{Mode: layout.VerifySortedAt, Data: shuffled, Index: order, N: n},
			[]int{int(order[4000])}, 2}, {ref.Verification{Mode: layout.VerifyDistinct, Data: order, N: n, Bound: n},
			[]int{0, n - 1}, n}, {ref.Verification{Mode: layout.VerifyDistinct, Data: order, N: n, Bound: n},
			[]int{100}, order[17000]}, {ref.Verification{Mode: layout.VerifyOffsets, Data: offsets, N: n / 16,
			Bound: n}, []int{0, 5, n/16 - 1, n / 16}, n + 1}, {ref.Verification{Mode: layout.VerifyGroups, Data: up,
			Index: offsets, N: n}, []int{0, 40, n - 1}, 1}}
}

func runVerify(t *trial, v ref.Verification, set counts, count uint32, p layout.StepParams) uint32 {
	bound, index := uint32(v.Bound), v.Index
	if v.Mode == layout.VerifyDistinct || v.Mode == layout.VerifyOffsets {
		bound = layout.NIsects
	}
	if index == nil {
		index = v.Data
	}
	found := scratchOf(t, []uint32{7, layout.Culled, 7})
	t.dispatch(&shaders.Verify{Params: in(t, p), Counters: in(t, junkCounters(set)...), Data: in(t, v.Data...),
		Index: in(t, index...), Marks: scratchOf(t, make([]uint32, max(v.Bound, 1))), Found: found,
		Push: shaders.VerifyPush{Mode: v.Mode, Count: count, Stride: uint32(v.Stride), Bound: bound, Check: 1}},
		vk.Groups(64))
	t.run()
	first := got(t, found)[1]
	same("found", got(t, found), []uint32{7, first, 7})
	return first
}

func checkVerifyCounts(t *trial) {
	words := []uint32{0, 0, 0, 0, 0, 0, math.Float32bits(nan)}
	v := ref.Verification{Mode: layout.VerifyFinite, Data: words, Stride: 1}
	p := layout.StepParams{View: layout.View{Width: 3, Height: 2, TileWidth: 7, TileHeight: 1}}
	same("found", []uint32{runVerify(t, v, nil, layout.CountPixels, p), runVerify(t, v, nil, layout.CountTiles, p),
		runVerify(t, v, counts{layout.Failed: 1}, layout.CountTiles, p)}, []uint32{layout.Culled, 6, layout.Culled})
}
