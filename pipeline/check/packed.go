package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// Cases of rasterize and rasterize_bwd with packed states, as mixed precision has them. Colours differ much from
// channel to channel, so that none passes for another and all bits are used.

func packedCases() []Case {
	list := []Case{
		packedCase("rasterize", "packed states: until pixels stop", func(t *trial) error {
			return checkImage(t, vivid(t.crowd(800, 40, 24, 0.08), 0), t.camera(40, 24), true)
		}),
		packedCase("rasterize", "packed states: of numbers that do not fit", checkPackedEdges),
		packedCase("rasterize_bwd", "packed states: until pixels stop", func(t *trial) error {
			return checkPackedBwd(t, vivid(t.crowd(800, 40, 24, 0.08), 1), t.camera(40, 24))
		}),
		packedCase("rasterize_bwd", "packed states: opaque splats behind", func(t *trial) error {
			p := t.crowd(500, 40, 24, 0.03)
			for range 40 {
				t.addEllipse(p, [2]float64{40 * t.Float64(), 24 * t.Float64()}, 12, 5, 0.95)
				p.DepthKeys[len(p.DepthKeys)-1] = math.Float32bits(6)
			}
			return checkPackedBwd(t, vivid(p, 1), t.camera(40, 24))
		}),
		packedCase("rasterize_bwd", "packed states: one bucket needs none", func(t *trial) error {
			return checkPackedBwd(t, vivid(t.crowd(64, 16, 16, 0.1), 2), t.camera(16, 16))
		}),
		packedCase("rasterize_bwd", "packed states: subgroup sizes give the same bytes", checkSubgroups),
	}
	for turn, name := range turns {
		list = append(list,
			packedCase("rasterize", "packed states: "+name, func(t *trial) error {
				return checkImage(t, vivid(t.crowd(900, 50, 40, 0.03), turn), t.camera(50, 40), true)
			}),
			packedCase("rasterize_bwd", "packed states: "+name, func(t *trial) error {
				return checkPackedBwd(t, vivid(t.crowd(600, 40, 30, 0.03), turn), t.camera(40, 30))
			}))
	}
	return list
}

func packedDepthCases() []Case {
	return []Case{
		packedCase("rasterize_depth", "packed states", func(t *trial) error {
			return t.deep(vivid(t.crowd(900, 50, 40, 0.03), 0), t.camera(50, 40), false).checkSums()
		}),
		packedCase("rasterize_bwd_depth", "packed states", func(t *trial) error {
			return t.deep(vivid(t.crowd(600, 40, 30, 0.05), 0), t.camera(40, 30), true).checkBackward()
		}),
		packedCase("rasterize_bwd_depth", "packed states: subgroup sizes give the same bytes", checkDepthSubgroups),
	}
}

func packedCase(kernel, name string, run func(t *trial) error) Case {
	return rasterCase(kernel, name, func(t *trial) error {
		t.packed = true
		return run(t)
	})
}

// turns are the ways in which vivid colours.
var turns = []string{"dark red, bright blue", "dark green, bright red", "dark blue, bright green"}

// vivid makes one channel dark and another bright.
func vivid(p *ref.Projection[float32], turn int) *ref.Projection[float32] {
	for i := range p.Splats {
		c := &p.Splats[i].Color
		c[turn], c[(turn+1)%3], c[(turn+2)%3] = 0.02*c[turn], 0.5*c[(turn+1)%3], 12*c[(turn+2)%3]
	}
	return p
}

// packing returns what packing may do to gradients, nil if nothing is packed.
func (t *trial) packing(p *ref.Projection[float32], inverse []float64, v *ref.View[float32], out *raster,
	vRender [][4]float32, vSums []float32) []ref.PackedError {
	if !t.packed {
		return nil
	}
	return ref.PackedErrors(projection64(p).Splats, inverse, out.lists, ref.ConvertView[float64](v), v.Grid(),
		pixels64(vRender), ref.ConvertSlice[float64](vSums), out.bucket)
}

// packedNorm returns by how much of their norm packing may move the numbers from one to another of each pair's.
func packedNorm(packing []ref.PackedError, want []float64, from, to int) float64 {
	squares, norm := 0.0, 0.0
	for _, p := range packing {
		for _, x := range p.Square[from:to] {
			squares += x
		}
	}
	if squares == 0 {
		return 0
	}
	for _, x := range want {
		norm += x * x
	}
	return math.Sqrt(squares / norm)
}

// checkPackedBwd requires gradients as close to those of full precision as packing allows, the same picture, and the
// gradients that the kernel makes of states in full precision with the numbers of the packed ones.
func checkPackedBwd(t *trial, p *ref.Projection[float32], v *ref.View[float32]) error {
	vRender, size := t.pixelGrads(v.Width*v.Height), t.d.Info().Limits.SubgroupSize
	l := t.list()
	out := l.rasterize(p, v, 0, 1, true, nil)
	vSlots, vAbs := l.rasterizeBwdAbs(out, vRender, size, true)
	if err := l.run(); err != nil {
		return err
	}
	packing := t.packing(p, make([]float64, len(p.Splats)), v, out, vRender, make([]float32, len(vRender)))
	want, beside := ref.RasterizeBwdAbs(projection64(p).Splats, out.lists, ref.ConvertView[float64](v), v.Grid(),
		pixels64(vRender))
	var absolute []float64
	for _, x := range beside {
		absolute = append(absolute, x[:]...)
	}
	if err := first(comparePackedGrads("v_slots", vSlots.got, want, 2e-4, packing), normWithin("v_abs_slots",
		floatsOf(vAbs.got), absolute, 2e-4+packedNorm(packing, absolute, 9, 11))); err != nil {
		return err
	}
	l = t.list()
	l.packed = false
	plain := l.rasterize(p, v, 0, 1, true, nil)
	plain.states = inout(l, "states", unpacked(out))
	same, _ := l.rasterizeBwdAbs(plain, vRender, size, true)
	if err := l.run(); err != nil {
		return err
	}
	grads := make([]ref.ProjectedGrad[float64], len(same.got))
	for i := range same.got {
		copy(grads[i][:], ref.ConvertSlice[float64](floatsOf(same.got[i:i+1])))
	}
	// The variants are compiled apart: their last bits may differ.
	return first(sameBytes("render", out.render.got, plain.render.got), equal("last_ids", out.last.got, plain.last.got),
		equal("touched", out.touched.got, plain.touched.got), compareGrads("v_slots", vSlots.got, grads, 1e-4))
}

// unpacked returns packed states as they are kept in full precision.
func unpacked(out *raster) [][2]uint32 {
	var states [][2]uint32
	for i := range out.states.got {
		s := out.state(i)
		states = append(states, [2]uint32{math.Float32bits(s[0]), math.Float32bits(s[1])},
			[2]uint32{math.Float32bits(s[2]), math.Float32bits(s[3])})
	}
	return states
}

// checkPackedEdges blends colours that no packed state holds: they become the largest that one does, what is no number
// that or 0, and spill into neither the other channels nor the transmittance.
func checkPackedEdges(t *trial) error {
	nan := float32(math.NaN())
	for ch := range 3 {
		for _, huge := range []float32{1e7, 1e30, nan} {
			p, v := &ref.Projection[float32]{}, t.camera(16, 16)
			for range 600 {
				t.addEllipse(p, [2]float64{8, 8}, 100, 90, 0.01)
				p.Splats[len(p.Splats)-1].Color[ch] = huge
			}
			l := t.list()
			out := l.rasterize(p, v, 0, 1, true, nil)
			if err := l.run(); err != nil {
				return err
			}
			for i := range p.Splats {
				p.Splats[i].Color[ch] = 0
			}
			black := *v
			black.Background = [3]float32{}
			want := image64(p, &black, firstOfTiles(out.lists, out.bucket))
			for i := range layout.TilePixels {
				got, limit := out.state(i), stateLimit(out, want.Render[i])
				clamped := got[ch] == ref.LargestPacked || huge != huge && got[ch] == 0
				got[ch] = 0
				if err := closeScaled("states", got[:], want.Render[i][:], limit); err != nil {
					return fmt.Errorf("%g in channel %d: %w; pixel %d", huge, ch, err, i)
				}
				if !clamped {
					return fmt.Errorf("binding states: %g in channel %d is not clamped; pixel %d", huge, ch, i)
				}
			}
		}
	}
	return nil
}
