package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func carveCases() []Case {
	carve := func(n, views int, failed uint32) func(t *trial) {
		return func(t *trial) { checkCarve(t, t.refinable(n, mix{keep: 1}), t.ring(views), failed) }
	}
	return slices.Concat(casesOf("carve", table{
		{"sizes", over([]int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000},
			func(t *trial, n int) { carve(n, 9, 0)(t) })},
		{"one view, and many", over([]int{1, 2, 300}, func(t *trial, n int) { carve(300, n, 0)(t) })},
		{"poison", func(t *trial) {
			// means, log scales, opacity
			decide := append(indices(layout.RowQuats), indices(layout.RowSh)[layout.RowLogScales:]...)
			m := t.refinable(len(decide)*len(bad), mix{keep: 1})
			for i := range m.N {
				*modelAt(m, decide[i/len(bad)], i) = bad[i%len(bad)]
			}
			checkCarve(t, m, t.ring(9), 0)
		}},
		{"values on thresholds", checkCarveThresholds},
		{"a failed unit changes nothing", carve(400, 9, layout.FailedSplats)},
	}), []Case{
		mixedCase("carve", "in mixed precision", carve(400, 9, 0)),
		newCase("reset_opacity", "sizes", over([]int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000},
			func(t *trial, n int) { checkReset(t, n, 0) })),
		mixedCase("reset_opacity", "in mixed precision", func(t *trial) { checkReset(t, 400, 0) }),
		newCase("reset_opacity", "a failed unit changes nothing",
			func(t *trial) { checkReset(t, 400, layout.FailedSplats) }),
	})
}

// ring returns n views of the splats of t.splats from all around, pinhole and fisheye, each with empty space up to some
// depth among them, and the median of its points among them or beyond; one of four knows no points.
func (t source) ring(n int) []ref.Voter[float32] {
	voters := make([]ref.Voter[float32], n)
	for k := range voters {
		v := t.camera(64, 48)
		a := 2 * math.Pi * float64(k) / float64(n)
		c, s := float32(math.Cos(a)), float32(math.Sin(a))
		r := v.R
		for row := range 3 { // turned about y, so the camera goes round the origin
			x, z := r[3*row], r[3*row+2]
			v.R[3*row], v.R[3*row+2] = c*x-s*z, s*x+c*z
		}
		v.Fisheye = k%3 == 1
		voters[k].View = *v
		if t.IntN(4) > 0 {
			voters[k].Empty = 2 + 4*t.Float32()
			voters[k].Median = voters[k].Empty * (1 + t.Float32())
		}
	}
	return voters
}

// checkReach is how many distances to the nearest camera a splat may be large.
const checkReach = 1.5

// checkCarve carves a model, and wants nothing else changed. A splat within rounding of a threshold may go or stay.
func checkCarve(t *trial, m *ref.Model[float32], voters []ref.Voter[float32], failed uint32) {
	d := t.upload(m, chunkSplats, 1)
	list := make([]layout.Voter, len(voters))
	for k := range voters {
		list[k] = layout.Voter{View: paramsOf(&voters[k].View).View, Empty: voters[k].Empty, Median: voters[k].Median}
	}
	seen, first, second := in(t, list...), d.First+layout.RowLogitOpacities, d.Second+layout.RowLogitOpacities
	counters := in(t, junkCounters(counts{layout.NActive: uint32(m.N), layout.Failed: failed})...)
	d.dispatch(256, func(id uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.Carve{Counters: counters, Voters: seen, Chunk: chunk, Push: shaders.CarvePush{
			FirstId: id, ChunkSplats: chunkSplats, NVoters: uint32(len(voters)), FirstMoments: uint32(first),
			SecondMoments: uint32(second), Reach: checkReach}}
	})
	t.run()
	if failed != 0 {
		d.untouched()
		return
	}
	carved := map[int]bool{}
	d.words(func(row, id int, _, is uint32) {
		if row != layout.RowLogitOpacities || id >= m.N {
			return
		}
		carved[id] = is == math.Float32bits(layout.InvisibleLogit)
		if goes, sure := isFloater(m, voters, id); sure && goes != carved[id] {
			failf("binding chunk: splat %d is carved: %t, want %t", id, carved[id], goes)
		}
	})
	d.becomes(func(row, id int, was uint32) uint32 {
		switch {
		case carved[id] && row == layout.RowLogitOpacities:
			return math.Float32bits(layout.InvisibleLogit)
		case carved[id] && (row == first || row == second):
			return 0
		}
		return was
	})
}

// isFloater is the twin's verdict; sure says that rounding cannot turn it.
func isFloater(m *ref.Model[float32], voters []ref.Voter[float32], id int) (goes, sure bool) {
	var mean [3]float64
	for k := range mean {
		mean[k] = float64(m.Means[3*id+k])
	}
	s := m.LogScales[3*id : 3*id+3]
	scale := math.Exp(float64(max(s[0], s[1], s[2])))
	sure = true
	for i, nudge := range []float64{1, 1 - 1e-4, 1 + 1e-4} {
		for j, wider := range []float64{1, 1 - 1e-4, 1 + 1e-4} {
			exact := make([]ref.Voter[float64], len(voters))
			for k := range voters {
				exact[k].View = *ref.ConvertView[float64](&voters[k].View)
				exact[k].Empty, exact[k].Median = float64(voters[k].Empty)*wider, float64(voters[k].Median)*wider
				exact[k].Cx *= nudge
			}
			verdict := ref.IsFloater(mean, scale*nudge/checkReach, exact)
			if i == 0 && j == 0 {
				goes = verdict
			}
			sure = sure && verdict == goes
		}
	}
	finite := scale < 1e18 && !math.IsNaN(mean[0]+mean[1]+mean[2]) &&
		math.Abs(mean[0])+math.Abs(mean[1])+math.Abs(mean[2]) < 1e18
	return goes, sure && finite // beyond, squares overflow, and such a splat is pruned for its size or as no number
}

// checkCarveThresholds puts splats at the depth where space ends to be empty, at the edge of the picture, and at the
// median depth of two voters against one, and makes some as large as their distance.
func checkCarveThresholds(t *trial) {
	m := t.refinable(4*9, mix{keep: 1})
	v := ref.View[float32]{R: [9]float32{0: 1, 4: 1, 8: 1}, Fx: 50, Fy: 50, Cx: 32, Cy: 24, Width: 64, Height: 48}
	knows, other := ref.Voter[float32]{View: v, Empty: 2, Median: 9},
		ref.Voter[float32]{View: v, Empty: 0.5, Median: 1.5}
	for i := range m.N {
		near := float32(1 + 1e-7*float64(i%9-4))
		mean, scale := [3]float32{0.1, 0.1, 1}, float32(-7)
		switch i / 9 {
		case 0:
			mean[2] = 2 * near
		case 1:
			mean[0], mean[2] = 1.6*0.64*near, 1.6
		case 2:
			mean, scale = [3]float32{0, 0, 4}, float32(math.Log(4*float64(near)))
		case 3:
			mean[2] = 1.5 * near
		}
		copy(m.Means[3*i:], mean[:])
		m.LogScales[3*i], m.LogScales[3*i+1], m.LogScales[3*i+2] = scale, -9, -9
	}
	checkCarve(t, m, []ref.Voter[float32]{knows, other, other}, 0)
}

func checkReset(t *trial, n int, failed uint32) {
	m := t.refinable(n, mix{keep: 1})
	ceiling := float32(math.Log(0.01 / 0.99))
	for i := 0; i < n; i += 5 {
		m.LogitOpacities[i] = ceiling
	}
	d := t.upload(m, chunkSplats, 1)
	params := in(t, layout.StepParams{ResetLogit: ceiling})
	counters := in(t, junkCounters(counts{layout.NSplats: uint32(n), layout.Failed: failed})...)
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.ResetOpacity{Params: params, Counters: counters, Chunk: chunk, Push: shaders.ResetOpacityPush{
			FirstId: first, ChunkSplats: chunkSplats, FirstMoments: uint32(d.First + layout.RowLogitOpacities),
			SecondMoments: uint32(d.Second + layout.RowLogitOpacities)}}
	})
	t.run()
	if failed == 0 {
		ref.ResetOpacity(m, ceiling)
	}
	d.becomes(func(row, splat int, was uint32) uint32 {
		if splat < n {
			return d.word(m, row, splat)
		}
		return was
	})
}

func reorderCases() []Case {
	sizes := []int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000}
	return []Case{
		newCase("reorder_keys", "sizes",
			over(sizes, func(t *trial, n int) { checkReorderKeys(t, t.refinable(n, mix{keep: 1})) })),
		newCase("reorder_keys", "edges of cells, and poison", checkReorderEdges),
		newCase("reorder_ranks", "sizes", over(sizes, checkReorderRanks)),
		newCase("reorder_out", "sizes", over(sizes, checkReorderOut)),
		newCase("reorder_back", "sizes", over(sizes, func(t *trial, n int) { checkReorderBack(t, n, 0) })),
		newCase("reorder_back", "a failed unit changes nothing",
			func(t *trial) { checkReorderBack(t, 400, layout.FailedSplats) }),
	}
}

func checkReorderKeys(t *trial, m *ref.Model[float32]) {
	d := t.upload(m, chunkSplats, 1)
	want := make([]uint32, m.N)
	for i := range want {
		want[i] = ref.ReorderKey([3]float32(m.Means[3*i : 3*i+3]))
	}
	counters := in(t, junkCounters(counts{layout.NActive: uint32(m.N)})...)
	keys := out[uint32](t, len(d.chunks)*chunkSplats, exactly(want...))
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.ReorderKeys{Counters: counters, Chunk: chunk, ReorderKeys: keys,
			Push: shaders.ReorderKeysPush{FirstId: first, ChunkSplats: chunkSplats}}
	})
	t.run()
	d.untouched()
}

// checkReorderEdges puts splats next to both sides of the edges of cells, far out, and where no number is.
func checkReorderEdges(t *trial) {
	edges := []float64{0, 1e-42, 1. / 192, 5. / 192, 1, 383. / 192, 2, 2.25, 2.5, 33.5, 33.75, 34, 1e9, math.MaxFloat32}
	var at []float32
	for _, x := range edges {
		for _, near := range []float64{1 - 1e-7, 1, 1 + 1e-7} {
			at = append(at, float32(min(x*near, math.MaxFloat32)), -float32(min(x*near, math.MaxFloat32)))
		}
	}
	at = append(append(at, float32(math.Copysign(0, -1))), bad...)
	m := t.refinable(3*len(at), mix{keep: 1})
	for i := range m.N {
		m.Means[3*i+i%3] = at[i/3]
	}
	checkReorderKeys(t, m)
}

func checkReorderRanks(t *trial, n int) {
	order := ref.Reordered(t.uints(n, uint32(n/3+1)))
	want := make([]uint32, n)
	for rank, id := range order {
		want[id] = uint32(rank)
	}
	t.dispatch(&shaders.ReorderRanks{Counters: in(t, junkCounters(counts{layout.NActive: uint32(n)})...),
		SplatFromRank: in(t, order...), RankFromSplat: out[uint32](t, n+100, exactly(want...))}, vk.Items(n+100, 256))
	t.run()
}

// Rows that the checks of moving move.
const (
	movedRow  = 2
	movedRows = 5
)

func checkReorderOut(t *trial, n int) {
	m := t.refinable(n, mix{keep: 1})
	d := t.upload(m, chunkSplats, 1)
	capacity := len(d.chunks) * chunkSplats
	ranks, want := make([]uint32, n), slices.Repeat([]uint32{guardWord}, movedRows*capacity) // where no splat is
	for i, rank := range t.Perm(n) {
		ranks[i] = uint32(rank)
		for r := range movedRows {
			want[r*capacity+rank] = math.Float32bits(*modelAt(m, movedRow+r, i))
		}
	}
	counters := in(t, junkCounters(counts{layout.NActive: uint32(n)})...)
	moved, rankOf := out[uint32](t, len(want), exactly(want...)), in(t, ranks...)
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.ReorderOut{Counters: counters, RankFromSplat: rankOf, Chunk: vk.Cast[uint32](chunk.View),
			Moved: moved, Push: shaders.ReorderOutPush{FirstId: first, ChunkSplats: chunkSplats,
				Capacity: uint32(capacity), Row: movedRow, NRows: movedRows}}
	})
	t.run()
	d.untouched()
}

func checkReorderBack(t *trial, n int, failed uint32) {
	d := t.upload(t.refinable(n, mix{keep: 1}), chunkSplats, 1)
	capacity := len(d.chunks) * chunkSplats
	moved := t.uints(movedRows*capacity, 1<<30)
	counters := in(t, junkCounters(counts{layout.NActive: uint32(n), layout.Failed: failed})...)
	from := in(t, moved...)
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.ReorderBack{Counters: counters, Moved: from, Chunk: vk.Cast[uint32](chunk.View),
			Push: shaders.ReorderBackPush{FirstId: first, ChunkSplats: chunkSplats, Capacity: uint32(capacity),
				Row: movedRow, NRows: movedRows}}
	})
	t.run()
	d.becomes(func(row, id int, was uint32) uint32 {
		if failed == 0 && id < n && row >= movedRow && row < movedRow+movedRows {
			return moved[(row-movedRow)*capacity+id]
		}
		return was
	})
}
