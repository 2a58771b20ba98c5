package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func resetCases() []Case {
	return []Case{
		newCase("reset_opacity", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error { return checkReset(t, n, 0) })
		}),
		mixedCase("reset_opacity", "in mixed precision", func(t *trial) error { return checkReset(t, 400, 0) }),
		newCase("reset_opacity", "a failed unit changes nothing",
			func(t *trial) error { return checkReset(t, 400, layout.FailedSplats) }),
	}
}

func checkReset(t *trial, n int, failed uint32) error {
	l := t.list()
	m := t.refinable(n, mix{keep: 1})
	ceiling := float32(math.Log(0.01 / 0.99))
	for i := range n {
		if i%5 == 0 {
			m.LogitOpacities[i] = ceiling
		}
	}
	d := l.upload(m, chunkSplats, max(1, blocksOf(n, chunkSplats)))
	params := input(l, "params", []layout.StepParams{{ResetLogit: ceiling}})
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NSplats: uint32(n), layout.Failed: failed}))
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.ResetOpacity{
			Params: params, Counters: counters, Chunk: chunk.Slice,
			Push: shaders.ResetOpacityPush{
				FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
				FirstMoments:  uint32(d.momentRow(layout.RowLogitOpacities, 0)),
				SecondMoments: uint32(d.momentRow(layout.RowLogitOpacities, 1)),
			},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	if failed != 0 {
		return d.untouched()
	}
	ref.ResetOpacity(m, ceiling)
	for c, chunk := range d.chunks {
		want := slices.Clone(chunk.start)
		for k := range want {
			if id := c*chunkSplats + k%chunkSplats; id < n {
				want[k] = *modelAt(m, k/chunkSplats, id)
				if d.mixed {
					want[k] = math.Float32frombits(d.word(m, k/chunkSplats, id))
				}
			}
		}
		if err := sameBytes("chunk", chunk.got, want); err != nil {
			return err
		}
	}
	return nil
}

func relocationCases() []Case {
	return []Case{
		newCase("mcmc_relocation", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, 1000}, func(n int) error {
				opacities, ratios := make([]float32, n), t.uints(n, 54)
				for i := range opacities {
					opacities[i] = float32(0.001 + 0.989*t.Float64())
				}
				return checkRelocation(t, opacities, ratios)
			})
		}),
		newCase("mcmc_relocation", "edges", func(t *trial) error {
			var opacities []float32
			var ratios []uint32
			for _, o := range []float32{0, 1e-42, 1e-9, 0.00499, 0.005, 0.00501, 0.1, 0.5, 0.9, 0.99, 0.999} {
				for _, n := range []uint32{0, 1, 2, 3, 25, 50, 51, 52, math.MaxUint32} {
					opacities, ratios = append(opacities, o), append(ratios, n)
				}
			}
			return checkRelocation(t, opacities, ratios)
		}),
	}
}

func checkRelocation(t *trial, opacities []float32, ratios []uint32) error {
	l := t.list()
	n := len(opacities)
	scales := make([][3]float32, n)
	var wantOpacities, wantScales []float64
	for i, o := range opacities {
		var s [3]float64
		for k := range s {
			scales[i][k] = float32(math.Exp(t.NormFloat64() - 3))
			s[k] = float64(scales[i][k])
		}
		o, s := ref.Relocate(float64(o), s, int(min(ratios[i], 1000)))
		wantOpacities, wantScales = append(wantOpacities, o), append(wantScales, s[:]...)
	}
	outOpacities, outScales := output[float32](l, "new_opacities", n), output[[3]float32](l, "new_scales", n)
	l.r.Dispatch(&shaders.McmcRelocation{
		Opacities: input(l, "opacities", opacities), Scales: input(l, "scales", scales),
		Ratios:       input(l, "ratios", ratios),
		NewOpacities: outOpacities.Slice, NewScales: outScales.Slice,
		Push: shaders.McmcRelocationPush{N: uint32(n), MinOpacity: ref.MinRelocatedOpacity},
	}, vk.Items(n+256, 256))
	if err := l.run(); err != nil {
		return err
	}
	return first(
		// 1 - pow(1 - o, 1/n): pow is right to a few 2^-22, and the difference keeps that as an absolute error.
		closeTo("new_opacities", outOpacities.got, wantOpacities, 2e-6, 1e-6),
		// The alternating sum's terms reach 100 times its value; and the opacity's error is relative to 0.005 at worst.
		closeTo("new_scales", floatsOf(outScales.got), wantScales, 1e-9, 1e-3),
	)
}
