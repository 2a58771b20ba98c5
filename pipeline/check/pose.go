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

func poseCases() []Case {
	hold := func(points int) func(t *trial) {
		return func(t *trial) {
			x := newPoses(t, 5)
			x.hold(points)
			x.checkAdam(9, 0)
		}
	}
	return slices.Concat(casesOf("pose_grad", poseGradRows()), casesOf("pose_grad_mixed", poseGradRows(), inMixed),
		casesOf("refine_pose", table{
			{"numbers of photos", over([]int{1, 2, 255, 256, 257, 600},
				func(t *trial, n int) { newPoses(t, n).checkRefined() })},
			{"a photo that stands alone", func(t *trial) {
				x := newPoses(t, 7)
				x.id = 7
				x.checkRefined()
			}},
			{"lenses", over(indices(numLenses), func(t *trial, n int) { newPosesOf(t, 7, n).checkRefined() })},
			{"nothing is learnt yet", func(t *trial) {
				x := newPoses(t, 7)
				for i := range x.table {
					x.table[i].Own = [layout.PoseNumbers]float32{}
				}
				x.run(false, 0)
				same("refined", x.refined, []layout.StepParams{x.params()})
			}},
		}), casesOf("pose_adam", table{
			{"numbers of splats", over([]int{0, 1, 63, 64, 65, 64 * 256, 64*256 + 1, 64 * 1000},
				func(t *trial, n int) {
					x := newPoses(t, 5)
					x.splats = n
					x.checkAdam(3, 0)
				})},
			{"first steps and late ones",
				over([]int{1, 2, 3, 100, 3000}, func(t *trial, step int) { newPoses(t, 5).checkAdam(step, 0) })},
			{"lenses", over(indices(numLenses), func(t *trial, n int) { newPosesOf(t, 5, n).checkAdam(5, 0) })},
			{"one point of the reconstruction", hold(1)}, {"points of the reconstruction", hold(256)},
			{"many points of the reconstruction", hold(300)},
			{"opacities were reset just now", func(t *trial) {
				x := newPoses(t, 5)
				x.resets = 7
				x.run(true, 0)
				same("poses", x.after, x.table)
			}},
			{"a failed unit changes nothing", over([]uint32{layout.FailedIsects, layout.FailedSplats},
				func(t *trial, f uint32) { newPoses(t, 5).checkAdam(7, f) })},
		}))
}

func poseGradRows() table {
	return table{
		{"sizes", over([]int{0, 1, 63, 64, 65, chunkSplats - 1, chunkSplats, chunkSplats + 1, 3000},
			func(t *trial, n int) { checkPoseGrad(t, t.backward(n, 0, t.bend(t.camera(123, 83), 0)), 0) })},
		{"lenses, antialiasing, SH degrees", func(t *trial) {
			eachLens(t, func(v *ref.View[float32]) { checkPoseGrad(t, t.backward(300, v.SHDegree, v), 0) })
		}},
		{"a view that sees nothing", func(t *trial) {
			v := t.bend(t.camera(123, 83), 0)
			v.T[2] = -1000
			checkPoseGrad(t, t.backward(400, 1, v), 0)
		}},
		{"a failed unit has no gradient", func(t *trial) {
			checkPoseGrad(t, t.backward(400, 1, t.bend(t.camera(123, 83), 0)), layout.FailedIsects)
		}},
	}
}

// checkPoseGrad compares the sums of groups of splats. Random gradients of needles are as large as they come: what
// counts is the largest that a splat of the group has.
func checkPoseGrad(t *trial, b *backward, failed uint32) {
	m := t.upload(ref.NewModel(b.p), chunkSplats, 1)
	b.see(b.p) // as it was uploaded
	groups := len(m.chunks) * chunkSplats / layout.PoseSplats
	sums := out[[4]float32](t, 4*groups)
	pass := shaders.PoseGrad{Params: in(t, paramsOf(b.v)), Counters: in(t, b.counters(failed)...), DepthKeys: in(t,
		b.proj.DepthKeys...), VProjected: in(t, gradientsOf(b.grad)...), Paints: in(t, b.paints()...), Partials: sums,
		Lens: t.lensOf(b.v), Mixed: m.Mixed}
	m.dispatch(layout.PoseSplats, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		p := pass
		p.Chunk, p.Push = chunk, shaders.PoseGradPush{FirstId: first, ChunkSplats: chunkSplats}
		return &p
	})
	t.run()
	m.untouched()
	p, v, grads := ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v), b.grad64()
	is := floatsOf(got(t, sums))
	for g := range groups {
		var want, largest [layout.PoseNumbers]float64
		for i := g * layout.PoseSplats; i < min((g+1)*layout.PoseSplats, b.p.N) && failed == 0; i++ {
			one := *b.proj
			one.DepthKeys = slices.Repeat([]uint32{layout.Culled}, b.p.N)
			one.DepthKeys[i] = b.proj.DepthKeys[i]
			for k, x := range ref.PoseGrad(p, v, &one, grads) {
				want[k] += x
				largest[k] = max(largest[k], math.Abs(x))
			}
		}
		nearBy(fmt.Sprintf("partials of group %d", g), is[16*g:16*g+len(want)], want[:], func(k int) float64 {
			first, n := k/3*3, 3 // turns with turns, shifts with shifts
			if k >= layout.PoseLens {
				first, n = k, 1
			}
			return 1e-5 + 3e-3*slices.Max(largest[first:first+n])
		})
	}
}

// poses is a view, what all photos have learnt of their cameras, and gradients by one of them.
type poses struct {
	t      *trial
	v      *ref.View[float32]
	id     int
	splats int
	resets uint32 // steps between opacity resets
	rates  ref.PoseRates
	weight float32
	points []ref.AnchorPoint[float64]
	table  []layout.Pose
	grads  [][4]float32 // partials
	// What the kernels wrote.
	refined []layout.StepParams
	lens    []layout.Lens
	found   []layout.PoseOfStep
	after   []layout.Pose
}

// newPoses makes those of n photos, three of four by one camera, and of one that stands alone.
func newPoses(t *trial, n int) *poses { return newPosesOf(t, n, 0) }

// newPosesOf is newPoses where the photo was taken by a lens of a number.
func newPosesOf(t *trial, n, lens int) *poses {
	x := &poses{t: t, v: t.bend(t.camera(123, 83), lens), id: n / 2, splats: 500, weight: 0.3,
		rates: ref.PoseRates{Pose: 0.02, Lens: 0.01, Beta1: 0.5, Beta2: 0.97}, table: make([]layout.Pose, n+1)}
	for i := range x.table {
		row := &x.table[i]
		row.Rot = t.camera(10, 10).R
		if i == n {
			row.Camera = 99
		} else {
			row.Camera = float32(i % 4 / 3)
		}
		for k := range row.Own {
			row.Own[k] = float32(0.1 * t.NormFloat64())
			if k >= layout.PoseLens {
				row.Own[k] /= float32(n)
			}
			// Second moments of at least 0.5 make the step a smooth function of the gradient.
			row.M[k], row.V[k] = float32(t.NormFloat64()), float32(0.5+t.Float64())
		}
		for k := range row.Center {
			row.Center[k] = float32(t.NormFloat64())
		}
		row.Bias2 = float32(t.Float64())
	}
	for k := range 3 { // from their mean
		mean := float32(0)
		for i := range n {
			mean += x.table[i].Center[k] / float32(n)
		}
		for i := range n {
			x.table[i].Center[k] -= mean
		}
	}
	return x
}

// hold gives the photo so many points, near where it shows them.
func (x *poses) hold(n int) {
	for range n {
		p := ref.AnchorPoint[float64]{Seen: [2]float64{123 * x.t.Float64(), 83 * x.t.Float64()}}
		for k := range p.Point {
			p.Point[k] = float64(float32(x.t.NormFloat64()))
		}
		for k := range p.Seen {
			p.Seen[k] = float64(float32(p.Seen[k]))
		}
		x.points = append(x.points, p)
	}
}

// anchors is the table of points, of which only the photo has any.
func (x *poses) anchors() (words []uint32) {
	n := len(x.table) - 1
	for i := range n + 1 {
		at := uint32(n + 1)
		if i > x.id {
			at += uint32(layout.AnchorWords * len(x.points))
		}
		words = append(words, at)
	}
	for _, p := range x.points {
		for _, f := range [5]float64{p.Point[0], p.Point[1], p.Point[2], p.Seen[0], p.Seen[1]} {
			words = append(words, math.Float32bits(float32(f)))
		}
	}
	return words
}

func (x *poses) params() layout.StepParams {
	p := paramsOf(x.v)
	p.ViewId, p.Step = uint32(x.id), 7
	return p
}

func (x *poses) rows() (own []ref.PoseNumbers[float64], given []ref.GivenPose[float64]) {
	for i := range x.table {
		row := &x.table[i]
		own = append(own, ref.PoseNumbers[float64](ref.ConvertSlice[float64](row.Own[:])))
		given = append(given, ref.GivenPose[float64]{R: [9]float64(ref.ConvertSlice[float64](row.Rot[:])),
			Center: [3]float64(ref.ConvertSlice[float64](row.Center[:])), Camera: int(row.Camera)})
	}
	return own, given
}

// used is what the step should use of the photo.
func (x *poses) used() ref.PoseNumbers[float64] {
	own, given := x.rows()
	n := len(own) - 1
	if x.id == n {
		return own[n]
	}
	return ref.RefinedPose(own[:n], given[:n], x.id)
}

// run runs refine_pose, and pose_adam where asked for.
func (x *poses) run(adam bool, failed uint32) {
	t, n := x.t, len(x.table)-1
	params, table := in(t, x.params()), scratchOf(t, x.table)
	refined, found, lens := out[layout.StepParams](t, 1), out[layout.PoseOfStep](t, 1), out[layout.Lens](t, 1)
	push := layout.NewPoseFrame(x.table[:n])
	t.dispatch(&shaders.RefinePose{Params: params, Lens: in(t, x.optics()), Poses: table, Refined: refined,
		RefinedLens: lens, Pose: found,
		Push: shaders.RefinePosePush{NViews: uint32(n), NInverse: push.Inverse, TurnInverse: push.Turn,
			SizeInverse: push.Size}}, vk.Groups(1))
	if adam {
		for range 4 * blocksOf(x.splats, layout.PoseSplats) {
			var g [4]float32
			for k := range g {
				g[k] = float32(t.NormFloat64())
			}
			x.grads = append(x.grads, g)
		}
		counters := junkCounters(counts{layout.NActive: uint32(x.splats), layout.Failed: failed})
		t.dispatch(&shaders.PoseAdam{Params: params, Counters: in(t, counters...), Refined: refined, Lens: lens,
			Pose: found, Partials: in(t, x.grads...), Anchors: in(t, x.anchors()...), Poses: table,
			Push: shaders.PoseAdamPush{NViews: uint32(n), FirstStep: 7, WarmUp: 1, DecaySteps: 1,
				Rate: float32(x.rates.Pose), LensRate: float32(x.rates.Lens), Beta1: float32(x.rates.Beta1),
				Beta2: float32(x.rates.Beta2), Anchor: x.weight, ResetEvery: x.resets, ResetStop: 7, Rest: 1},
		}, vk.Groups(1))
	}
	t.run()
	x.refined, x.lens, x.found, x.after = got(t, refined), got(t, lens), got(t, found), got(t, table)
}

func (x *poses) checkRefined() {
	x.run(false, 0)
	a := x.used()
	w := ref.ConvertView[float64](x.v).Refined(&a)
	is, want := x.refined[0], x.params()
	want.View.Rot, want.View.Trans = is.View.Rot, is.View.Trans
	want.View.Focal, want.View.Center = is.View.Focal, is.View.Center
	near("pose.own", x.found[0].Own[:], a[:], 2e-6, 1e-4)
	near("refined.rot", is.View.Rot[:], w.R[:], 5e-6, 0)
	near("refined.trans", is.View.Trans[:], w.T[:], 3e-5, 0)
	near("refined.focal", is.View.Focal[:], []float64{w.Fx, w.Fy}, 0, 1e-5)
	near("refined.center", is.View.Center[:], []float64{w.Cx, w.Cy}, 1e-4, 1e-5)
	same("refined", x.refined, []layout.StepParams{want})
	l, given := x.lens[0], x.optics()
	if w.Lens.After {
		same("refined_lens", x.lens, []layout.Lens{given})
		return
	}
	near("refined_lens.num", l.Num[:], w.Lens.Num[:], 1e-5, 1e-5)
	near("refined_lens.tangential", []float32{l.P1, l.P2}, []float64{w.Lens.P1, w.Lens.P2}, 1e-5, 1e-5)
	given.Num, given.P1, given.P2 = l.Num, l.P1, l.P2
	same("refined_lens", x.lens, []layout.Lens{given})
}

// optics is the lens that the photo was taken by.
func (x *poses) optics() layout.Lens {
	l := lensParams(x.v)
	l.Flags |= layout.LensLearnt * layout.Bit(!x.v.Lens.After)
	return l
}

// checkAdam takes the photo from step-1 steps to step.
func (x *poses) checkAdam(step int, failed uint32) {
	row := &x.table[x.id]
	row.Bias1 = float32(1 - math.Pow(x.rates.Beta1, float64(step-1)))
	row.Bias2 = float32(1 - math.Pow(x.rates.Beta2, float64(step-1)))
	if step == 1 {
		row.M, row.V = [layout.PoseNumbers]float32{}, [layout.PoseNumbers]float32{}
	}
	x.run(true, failed)
	if sameRows("poses", x.after, x.table, x.id, failed != 0); failed != 0 {
		return
	}
	var up ref.PoseNumbers[float64]
	for i, g := range x.grads {
		for k, f := range g {
			if at := 4*(i%4) + k; at < len(up) {
				up[at] += float64(f)
			}
		}
	}
	a, given := x.used(), ref.ConvertView[float64](x.v)
	grad := ref.PoseChain(given, &a, up)
	_, held := ref.PoseHold(given, &a, x.points, float64(x.weight))
	largest := 1.0
	for k := range grad {
		grad[k] += held[k]
		largest = max(largest, math.Abs(grad[k]))
	}
	number := func(x [layout.PoseNumbers]float32) ref.PoseNumbers[float64] {
		return ref.PoseNumbers[float64](ref.ConvertSlice[float64](x[:]))
	}
	own, m, v := number(row.Own), number(row.M), number(row.V)
	ref.PoseAdam(&own, &m, &v, &grad, x.rates, step, x.others(), !x.v.Lens.After)
	is := x.after[x.id]
	near("poses.m", is.M[:], m[:], 1e-4*largest, 1e-4)
	near("poses.v", is.V[:], v[:], 1e-4*largest*largest, 1e-4)
	near("poses.own", is.Own[:], own[:], 1e-5, 1e-4)
	nearBiases("poses", is.Bias1, is.Bias2, x.rates.Beta1, x.rates.Beta2, step)
}

// sameRows wants the rows of a table but one to be as they were, or all.
func sameRows[T any](name string, got, want []T, but int, all bool) {
	for i := range want {
		if i != but || all {
			during(fmt.Sprintf("row %d of %s", i, name), func() { same(name, got[i:i+1], want[i:i+1]) })
		}
	}
}

// nearBiases wants what a row of a table has of the bias of its moments at a step.
func nearBiases(name string, bias1, bias2 float32, beta1, beta2 float64, step int) {
	near(name+".bias", []float32{bias1, bias2},
		[]float64{1 - math.Pow(beta1, float64(step)), 1 - math.Pow(beta2, float64(step))}, 0, 1e-4)
}

// others sums what the other photos of the photo's camera have.
func (x *poses) others() (s ref.OtherPhotos) {
	for i := range len(x.table) - 1 {
		if row := &x.table[i]; i != x.id && row.Camera == x.table[x.id].Camera {
			s.Bias += float64(row.Bias2)
			for k := range s.Seconds {
				s.Seconds[k] += float64(row.V[layout.PoseLens+k])
			}
		}
	}
	return s
}
