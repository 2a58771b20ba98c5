package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// backward is one call of project_bwd or project_bwd_adam.
type backward struct {
	p    *ref.Params[float32]
	v    *ref.View[float32]
	proj *ref.Projection[float64]
	grad []ref.ProjectedGrad[float32] // of the projections
}

// backward makes random splats and gradients. The reference decides which splats are visible.
func (t *trial) backward(n, degree int, v *ref.View[float32]) *backward {
	return t.backwardOf(t.splats(n, degree), v)
}

// backwardOf does so for given splats.
func (t *trial) backwardOf(p *ref.Params[float32], v *ref.View[float32]) *backward {
	b := &backward{p: p, v: v}
	b.proj = ref.Project(ref.ConvertParams[float64](b.p), ref.ConvertView[float64](v))
	for range p.N {
		var g ref.ProjectedGrad[float32]
		for k := range g {
			g[k] = float32(t.NormFloat64())
		}
		b.grad = append(b.grad, g)
	}
	return b
}

// want is the reference's gradients, in float64.
func (b *backward) want() *ref.Params[float64] {
	return ref.ProjectBwd(ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v), b.proj, b.grad64())
}

// paints are what project makes of the parameters; colours decide where gradients pass the clamp.
func (b *backward) paints() [][4]float32 {
	p := ref.Project(ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v))
	out := make([][4]float32, len(p.Splats))
	for i, s := range p.Splats {
		copy(out[i][1:], ref.ConvertSlice[float32](s.Color[:]))
	}
	return out
}

func (b *backward) grad64() []ref.ProjectedGrad[float64] {
	out := make([]ref.ProjectedGrad[float64], len(b.grad))
	for i, g := range b.grad {
		copy(out[i][:], ref.ConvertSlice[float64](g[:]))
	}
	return out
}

// bwdModes calls f for pinhole and fisheye, plain and antialiased, and SH degrees up to the model's.
func bwdModes(t *trial, f func(degree int, v *ref.View[float32]) error) error {
	return each([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(mode int) error {
		v := t.camera(123, 83)
		v.Fisheye, v.Antialiased, v.SHDegree = mode&1 != 0, mode&2 != 0, mode%4
		return f(max(v.SHDegree, 3*(mode/4)), v)
	})
}

func projectBwdCases() []Case {
	return []Case{
		newCase("project_bwd", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error {
					return checkProjectBwd(t, t.backward(n, 0, t.camera(123, 83)), 0)
				})
		}),
		newCase("project_bwd", "cameras, antialiasing, SH degrees", func(t *trial) error {
			return bwdModes(t,
				func(degree int,
					v *ref.View[float32]) error {
					return checkProjectBwd(t, t.backward(300, degree, v), 0)
				})
		}),
		newCase("project_bwd", "a failed unit writes nothing", func(t *trial) error {
			return checkProjectBwd(t, t.backward(400, 1, t.camera(123, 83)), layout.FailedIsects)
		}),
	}
}

func (b *backward) counters(failed uint32) []uint32 {
	return junkCounters(map[int]uint32{layout.NActive: uint32(b.p.N), layout.NSplats: uint32(b.p.N),
		layout.Failed: failed})
}

func checkProjectBwd(t *trial, b *backward, failed uint32) error {
	l := t.list()
	chunks, rows := max(1, blocksOf(b.p.N, chunkSplats)), ref.ParamRows(b.p.Degree)
	m := l.upload(ref.NewModel(b.p), chunkSplats, chunks)
	params, counters := input(l, "params", []layout.StepParams{paramsOf(b.v)}), input(l, "counters", b.counters(failed))
	keys, grad := input(l, "depth_keys", b.proj.DepthKeys), input(l, "v_projected", gradientsOf(b.grad))
	paints := input(l, "paints", b.paints())
	var outs []*buffer[float32]
	for i, chunk := range m.chunks {
		out := output[float32](l, "v_params", rows*chunkSplats)
		outs = append(outs, out)
		l.r.Dispatch(&shaders.ProjectBwd{
			Params: params, Counters: counters, DepthKeys: keys, VProjected: grad, Paints: paints,
			Chunk: chunk.Slice, VParams: out.Slice,
			Push: shaders.ProjectBwdPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	got := ref.NewParams[float32](b.p.N, b.p.Degree)
	for i, out := range outs {
		for k, x := range out.got {
			id, row := i*chunkSplats+k%chunkSplats, k/chunkSplats
			none := failed != 0 || id >= b.p.N || row >= ref.ParamRows(b.v.SHDegree)
			if none != (math.Float32bits(x) == guardWord) {
				return fmt.Errorf("binding v_params: chunk %d: [%d]: got %g: row %d of splat %d; written: %v", i, k, x,
					row, id, none)
			}
			if !none {
				*got.At(row, id) = x
			}
		}
	}
	if failed != 0 {
		return m.untouched()
	}
	return first(compareParams("v_params", got, b.want()), m.untouched())
}

// compareParams compares gradients by tensor and splat. The chain through a needle's conic cancels: the reference
// itself, in float32, is off by up to 5e-3 of the largest element of a splat's tensor, and by 2e-5 in the norm of
// everything.
func compareParams(binding string, got *ref.Params[float32], want *ref.Params[float64]) error {
	g := got.Tensors()
	for k, w := range want.Tensors() {
		name := binding + "." + w.Name
		limit := func(i int) float64 {
			largest := 1e-6
			for _, x := range w.Data[i/w.Width*w.Width : (i/w.Width+1)*w.Width] {
				largest = max(largest, math.Abs(x))
			}
			return 1e-2 * largest
		}
		if err := first(closeScaled(name, g[k].Data, w.Data, limit),
			normWithin(name, g[k].Data, w.Data, 1e-4)); err != nil {
			return err
		}
	}
	return nil
}
