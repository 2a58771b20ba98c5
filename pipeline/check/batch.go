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

func batchCases() []Case {
	return slices.Concat(batchCasesOf("project_bwd_adam_views", newCase),
		batchCasesOf("project_bwd_adam_views_mixed", mixedCase))
}

// batchCasesOf are the cases of one precision.
func batchCasesOf(kernel string, newCase func(kernel, name string, run func(t *trial) error) Case) []Case {
	with := func(views int, w adamVariant) func(t *trial) error {
		return func(t *trial) error { return checkBatch(t, t.batch(400, 1, views), 30, w) }
	}
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 127, 128, 129, chunkSplats - 1, chunkSplats, chunkSplats + 1, 3000},
				func(n int) error {
					return checkBatch(t, t.batch(n, 0, 2), 7, adamVariant{})
				})
		}),
		newCase(kernel, "numbers of views", func(t *trial) error {
			return each([]int{1, 2, 3, 4, 7, 16},
				func(views int) error { return checkBatch(t, t.batch(300, 3, views), 30, adamVariant{}) })
		}),
		newCase(kernel, "cameras, antialiasing, SH degrees", func(t *trial) error {
			return bwdModes(t, func(degree int, v *ref.View[float32]) error {
				p := t.splats(300, degree)
				other := t.camera(70, 110)
				other.Fisheye, other.Antialiased, other.SHDegree = !v.Fisheye, v.Antialiased, v.SHDegree
				return checkBatch(t, []*backward{t.backwardOf(p, v), t.backwardOf(p, other)}, 30, adamVariant{})
			})
		}),
		newCase(kernel, "views that see nothing", func(t *trial) error {
			return each([]int{1, 2, 3}, func(blind int) error {
				b := t.batch(400, 2, 3)
				for w := range blind { // of three: one, two or all
					b[w].v.T[2] = -1000
					b[w] = t.backwardOf(b[w].p, b[w].v)
				}
				return checkBatch(t, b, 30, adamVariant{})
			})
		}),
		newCase(kernel, "first step and a late one", func(t *trial) error {
			return each([]int{1, 2, 30000},
				func(step int) error { return checkBatch(t, t.batch(300, 1, 2), step, adamVariant{}) })
		}),
		newCase(kernel, "regularisers", func(t *trial) error {
			return each([]ref.Penalties{{Opacity: 700}, {Scale: 900, Splats: 1000},
				{Opacity: 500, Scale: 300, Splats: 401}}, func(w ref.Penalties) error {
				return checkBatch(t, t.batch(400, 1, 2), 30, adamVariant{penalties: w})
			})
		}),
		newCase(kernel, "noise", with(2, adamVariant{noise: 3})),
		newCase(kernel, "a far shell", with(2, adamVariant{penalties: ref.Penalties{Scale: 300}, noise: 3,
			shell: checkShell})),
		newCase(kernel, "absolute gradients", with(3, adamVariant{absgrad: true})),
		newCase(kernel, "a failed unit changes nothing", with(2, adamVariant{failed: layout.FailedPeer})),
	}
}

// batch makes random splats, and gradients of several views of them.
func (t *trial) batch(n, degree, views int) []*backward {
	p := t.splats(n, degree)
	var b []*backward
	for w := range views {
		v := t.camera(123+10*w, 83)
		v.SHDegree = degree
		b = append(b, t.backwardOf(p, v))
	}
	return b
}

// packed are the gradients of all views as devices send them, with what no kernel may read between them.
type packed struct {
	indexOf     []uint32
	grads       []layout.ProjectedGrad
	abs         [][2]float32
	indexStride int
	gradStride  int
}

// pack packs the gradients of splats that the views see. all are the absolute gradients of each view.
func pack(b []*backward, all [][][2]float32) packed {
	n, nan := b[0].p.N, float32(math.NaN())
	p := packed{indexStride: n + 5, gradStride: n + 3}
	for w, view := range b {
		packet, index := ref.SendVisible(view.proj)
		p.indexOf = append(append(p.indexOf, index...), 0, 0, 0, 0, 0)
		splats := make([]ref.Projected[float32], len(packet.Splats))
		grads := make([]ref.ProjectedGrad[float32], len(packet.Splats))
		for i, k := range index {
			if k != layout.Culled {
				copy(splats[k].Color[:], ref.ConvertSlice[float32](packet.Splats[k].Color[:]))
				grads[k] = view.grad[i]
				p.abs = append(p.abs, all[w][i])
			}
		}
		p.grads = append(p.grads, gradientsOf(ref.SendGrads(splats, grads))...)
		for len(p.grads) < (w+1)*p.gradStride {
			p.grads = append(p.grads,
				layout.ProjectedGrad{Mean2d: [2]float32{nan, nan}, Conic: [3]float32{nan, nan, nan}, Opacity: nan,
					Color: [3]float32{nan, nan, nan}})
			p.abs = append(p.abs, [2]float32{nan, nan})
		}
	}
	return p
}

// checkBatch takes one step with the mean gradient of the views.
func checkBatch(t *trial, b []*backward, step int, with adamVariant) error {
	l := t.list()
	start, c := t.started(b[0], with), ref.DefaultAdam.Batch(len(b))
	m := l.upload(start, chunkSplats, max(1, blocksOf(start.N, chunkSplats)))
	var abs [][][2]float32
	var params []layout.StepParams
	for _, view := range b {
		*view = *t.seenFrom(start, view)
		abs = append(abs, t.absolute(start.N))
		p := adamParams(view.v, step, with, c)
		p.BatchBeta1, p.BatchRest1 = float32(c.Beta1), float32(1-c.Beta1)
		p.BatchBeta2, p.BatchRest2, p.BatchEps = float32(c.Beta2), float32(1-c.Beta2), float32(c.Eps)
		params = append(params, p)
	}
	from := pack(b, abs)
	pass := shaders.ProjectBwdAdamViews{
		Params: input(l, "params", params), Counters: input(l, "counters", b[0].countersOf(with)),
		IndexOf: input(l, "index_of", from.indexOf),
		VViews:  input(l, "v_views", from.grads), VAbsViews: input(l, "v_abs_views", from.abs),
		Spec: shaders.ProjectBwdAdamViewsSpec{Absgrad: with.absgrad, Noise: with.noise > 0, NViews: uint32(len(b))},
	}
	for i, chunk := range m.chunks {
		pass.Chunk = chunk.Slice
		pass.Push = shaders.ProjectBwdAdamViewsPush{
			FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats, NParams: uint32(m.params),
			IndexStride: uint32(from.indexStride), GradStride: uint32(from.gradStride),
		}
		l.batchAdam(m, pass)
	}
	if err := l.run(); err != nil {
		return err
	}
	if with.failed != 0 {
		return m.untouched()
	}
	var views []*ref.View[float64]
	var proj []*ref.Projection[float64]
	var grads [][]ref.ProjectedGrad[float64]
	for _, view := range b {
		views, proj, grads = append(views, ref.ConvertView[float64](view.v)), append(proj, view.proj),
			append(grads, view.grad64())
	}
	g := ref.ProjectBwdViews(ref.ConvertParams[float64](b[0].p), views, proj, grads)
	want := wantStep(start, g, step, with, c)
	for w, view := range b {
		ref.Statistics(want, views[w], proj[w], view.statistic(abs[w], with))
	}
	if err := m.compareAfter(want, b[0].v.SHDegree); err != nil {
		return fmt.Errorf("%d views: %w", len(b), err)
	}
	return nil
}

// seenFrom is b with the splats of m as they were uploaded.
func (t *trial) seenFrom(m *ref.Model[float32], b *backward) *backward {
	c := t.backwardOf(m.Params.Clone(), b.v)
	c.grad = b.grad
	return c
}

// batchAdam records the step of a chunk.
func (l *list) batchAdam(m *model, pass shaders.ProjectBwdAdamViews) {
	pass.Mixed = m.mixed
	l.r.Dispatch(&pass, vk.Items(m.size, 128))
}

// countersOf are those of a step of several devices; the scene has the splats that the penalties are of, or those of
// this device alone.
func (b *backward) countersOf(with adamVariant) []uint32 {
	c := b.counters(with.failed)
	if c[layout.NTotal] = uint32(b.p.N); with.penalties.Splats > 0 {
		c[layout.NTotal] = uint32(with.penalties.Splats)
	}
	return c
}
