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

func verifyCases() []Case {
	return []Case{
		newCase("verify", "numbers", func(t *trial) error { return t.verifyBroken(t.verifyFloats()) }),
		newCase("verify", "order", func(t *trial) error { return t.verifyBroken(t.verifyOrder()) }),
		newCase("verify", "pixels and a failed unit", checkVerifyCounts),
	}
}

const verifySize = 70 * 256 // more than the grid has invocations

// broken is a sound buffer and what to put where so that it is not.
type broken struct {
	ref.Verification
	at   []int // words
	with uint32
}

func (t *trial) verifyFloats() (list []broken) {
	words := make([]uint32, 3*verifySize)
	for i := range words {
		words[i] = math.Float32bits(float32(t.NormFloat64()))
	}
	index := t.uints(verifySize, verifySize)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		w := math.Float32bits(bad)
		ends := []int{0, 1, 3 * 256, len(words) - 1}
		list = append(list,
			broken{ref.Verification{Mode: layout.VerifyFinite, Data: words, N: verifySize, Stride: 3}, ends, w},
			broken{ref.Verification{Mode: layout.VerifyFiniteAt, Data: words, Index: index, N: verifySize, Stride: 3},
				[]int{3 * int(index[9]), 3*int(index[700]) + 2}, w},
			broken{ref.Verification{Mode: layout.VerifyFiniteRows, Data: words, N: 600, Stride: 500, Bound: 100},
				[]int{0, 499, 500, 5 * 500, 7*500 + 300}, w},
		)
	}
	halves := make([]uint32, len(words)) // exponents that are finite both as halves and as bfloat16
	for i := range halves {
		halves[i] = uint32(t.Uint64()) &^ 0x04800480
	}
	for _, bad := range []struct{ mode, word uint32 }{
		{layout.VerifyFiniteHalves, 0x7C00}, {layout.VerifyFiniteHalves, 0xFE000001},
		{layout.VerifyFiniteBfloats, 0x7F80}, {layout.VerifyFiniteBfloats, 0xFFC00001},
	} {
		list = append(list, broken{ref.Verification{Mode: bad.mode, Data: halves, N: 600, Stride: 500, Bound: 100},
			[]int{0, 499, 7*500 + 300}, bad.word})
	}
	return list
}

func (t *trial) verifyOrder() []broken {
	const n = verifySize
	up, order, shuffled, offsets := make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]uint32, n/16+1)
	for i, p := range t.Perm(n) {
		up[i], order[i] = uint32(i/16), uint32(p)
		shuffled[p] = uint32(i)
	}
	for i := range offsets {
		offsets[i] = uint32(16 * i)
	}
	return []broken{
		{ref.Verification{Mode: layout.VerifySorted, Data: up, N: n}, []int{0, 255, n - 2}, 1 << 30},
		{ref.Verification{Mode: layout.VerifySorted, Data: up, N: n}, []int{n - 1, 5000}, 3},
		{ref.Verification{Mode: layout.VerifySortedAt, Data: shuffled, Index: order, N: n}, []int{0, 900, n - 1},
			layout.Culled},
		{ref.Verification{Mode: layout.VerifySortedAt, Data: shuffled, Index: order, N: n}, []int{int(order[4000])}, 2},
		{ref.Verification{Mode: layout.VerifyDistinct, Data: order, N: n, Bound: n}, []int{0, n - 1}, n},
		{ref.Verification{Mode: layout.VerifyDistinct, Data: order, N: n, Bound: n}, []int{100}, order[17000]},
		{ref.Verification{Mode: layout.VerifyOffsets, Data: offsets, N: n / 16, Bound: n},
			[]int{0, 5, n/16 - 1, n / 16}, n + 1},
		{ref.Verification{Mode: layout.VerifyGroups, Data: up, Index: offsets, N: n}, []int{0, 40, n - 1}, 1},
	}
}

// verifyBroken requires that a sound buffer passes, and that a broken one is found out at its first wrong element.
func (t *trial) verifyBroken(list []broken) error {
	for k, b := range list {
		if err := t.verify(b.Verification); err != nil {
			return fmt.Errorf("buffer %d, sound: %w", k, err)
		}
		for _, at := range b.at {
			v := b.Verification
			v.Data = with(v.Data, at, b.with)
			if err := t.verify(v); err != nil {
				return fmt.Errorf("buffer %d, word %d is %#x: %w", k, at, b.with, err)
			}
		}
	}
	return nil
}

func (t *trial) verify(v ref.Verification) error {
	wrong := v.Wrong()
	got, err := t.runVerify(v, map[int]uint32{layout.NVisible: uint32(v.N), layout.NIsects: uint32(v.Bound)},
		layout.NVisible, layout.StepParams{})
	switch {
	case err != nil:
		return err
	case len(wrong) == 0:
		return equal("found", []uint32{got}, []uint32{layout.Culled})
	case v.Mode == layout.VerifyDistinct && slices.Contains(wrong, int(got)):
		return nil // which of two equal words is the second depends on who comes first
	}
	return equal("found", []uint32{got}, []uint32{uint32(wrong[0])})
}

func (t *trial) runVerify(v ref.Verification, set map[int]uint32, count uint32, p layout.StepParams) (uint32, error) {
	l := t.list()
	bound := uint32(v.Bound)
	if v.Mode == layout.VerifyDistinct || v.Mode == layout.VerifyOffsets {
		bound = layout.NIsects
	}
	index := v.Index
	if index == nil {
		index = v.Data
	}
	found := inout(l, "found", []uint32{7, layout.Culled, 7})
	l.r.Dispatch(&shaders.Verify{
		Params: input(l, "params", []layout.StepParams{p}), Counters: input(l, "counters", junkCounters(set)),
		Data:  input(l, "data", v.Data),
		Index: input(l, "index", index), Marks: inout(l, "marks", make([]uint32, max(v.Bound, 1))).Slice,
		Found: found.Slice,
		Push:  shaders.VerifyPush{Mode: v.Mode, Count: count, Stride: uint32(v.Stride), Bound: bound, Check: 1},
	}, vk.Groups(64))
	if err := l.run(); err != nil {
		return 0, err
	}
	return found.got[1], equal("found", []uint32{found.got[0], found.got[2]}, []uint32{7, 7})
}

func checkVerifyCounts(t *trial) error {
	words := []uint32{0, 0, 0, 0, 0, 0, math.Float32bits(float32(math.NaN()))}
	v := ref.Verification{Mode: layout.VerifyFinite, Data: words, Stride: 1}
	p := layout.StepParams{View: layout.View{Width: 3, Height: 2, TileWidth: 7, TileHeight: 1}}
	pixels, err1 := t.runVerify(v, nil, layout.CountPixels, p)
	tiles, err2 := t.runVerify(v, nil, layout.CountTiles, p)
	failed, err3 := t.runVerify(v, map[int]uint32{layout.Failed: 1}, layout.CountTiles, p)
	return first(err1, err2, err3,
		equal("found", []uint32{pixels, tiles, failed}, []uint32{layout.Culled, 6, layout.Culled}))
}
