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
	photos := func(check func(*poses) error) func(t *trial) error {
		return func(t *trial) error {
			return each([]int{1, 2, 255, 256, 257, 600}, func(n int) error { return check(t.poses(n)) })
		}
	}
	hold := func(points int) func(t *trial) error {
		return func(t *trial) error {
			x := t.poses(5)
			x.hold(points)
			return x.checkAdam(9, 0)
		}
	}
	return slices.Concat(poseGradCases("pose_grad", newCase), poseGradCases("pose_grad_mixed", mixedCase), []Case{
		newCase("refine_pose", "numbers of photos", photos((*poses).checkRefined)),
		newCase("refine_pose", "a photo that stands alone", func(t *trial) error {
			x := t.poses(7)
			x.id = 7
			return x.checkRefined()
		}),
		newCase("refine_pose", "nothing is learnt yet", func(t *trial) error {
			x := t.poses(7)
			for i := range x.table {
				x.table[i].Own = [layout.PoseNumbers]float32{}
			}
			if err := x.run(false, 0); err != nil {
				return err
			}
			return sameBytes("refined", x.refined, []layout.StepParams{x.params()})
		}),
		newCase("pose_adam", "numbers of splats", func(t *trial) error {
			return each([]int{0, 1, 63, 64, 65, 64 * 256, 64*256 + 1, 64 * 1000}, func(n int) error {
				x := t.poses(5)
				x.splats = n
				return x.checkAdam(3, 0)
			})
		}),
		newCase("pose_adam", "first steps and late ones", func(t *trial) error {
			return each([]int{1, 2, 3, 100, 3000}, func(step int) error { return t.poses(5).checkAdam(step, 0) })
		}),
		newCase("pose_adam", "one point of the reconstruction", hold(1)),
		newCase("pose_adam", "points of the reconstruction", hold(256)),
		newCase("pose_adam", "many points of the reconstruction", hold(300)),
		newCase("pose_adam", "opacities were reset just now", func(t *trial) error {
			x := t.poses(5)
			x.resets = 7
			if err := x.run(true, 0); err != nil {
				return err
			}
			return sameBytes("poses", x.after, x.table)
		}),
		newCase("pose_adam", "a failed unit changes nothing", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedSplats},
				func(f uint32) error { return t.poses(5).checkAdam(7, f) })
		}),
	})
}

// poseGradCases are the cases of one precision.
func poseGradCases(kernel string, newCase func(kernel, name string, run func(t *trial) error) Case) []Case {
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 63, 64, 65, chunkSplats - 1, chunkSplats, chunkSplats + 1, 3000},
				func(n int) error { return checkPoseGrad(t, t.backward(n, 0, t.camera(123, 83)), 0) })
		}),
		newCase(kernel, "cameras, antialiasing, SH degrees", func(t *trial) error {
			return bwdModes(t, func(degree int, v *ref.View[float32]) error {
				return checkPoseGrad(t, t.backward(300, degree, v), 0)
			})
		}),
		newCase(kernel, "a view that sees nothing", func(t *trial) error {
			v := t.camera(123, 83)
			v.T[2] = -1000
			return checkPoseGrad(t, t.backward(400, 1, v), 0)
		}),
		newCase(kernel, "a failed unit has no gradient", func(t *trial) error {
			return checkPoseGrad(t, t.backward(400, 1, t.camera(123, 83)), layout.FailedIsects)
		}),
	}
}

// checkPoseGrad compares the sums of groups of splats. Random gradients of needles are as large as they come: what
// counts is the largest that a splat of the group has.
func checkPoseGrad(t *trial, b *backward, failed uint32) error {
	l := t.list()
	chunks := max(1, blocksOf(b.p.N, chunkSplats))
	start := ref.NewModel(b.p)
	m := l.upload(start, chunkSplats, chunks)
	b = t.seenFrom(start, b)
	groups := chunks * chunkSplats / layout.PoseSplats
	out := output[[4]float32](l, "partials", 2*groups)
	pass := shaders.PoseGrad{
		Params:    input(l, "params", []layout.StepParams{paramsOf(b.v)}),
		Counters:  input(l, "counters", b.counters(failed)),
		DepthKeys: input(l, "depth_keys", b.proj.DepthKeys), VProjected: input(l, "v_projected", gradientsOf(b.grad)),
		Paints: input(l, "paints", b.paints()), Partials: out.Slice, Mixed: m.mixed,
	}
	for i, chunk := range m.chunks {
		pass.Chunk = chunk.Slice
		pass.Push = shaders.PoseGradPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats}
		p := pass
		l.r.Dispatch(&p, vk.Items(chunkSplats, layout.PoseSplats))
	}
	if err := l.run(); err != nil {
		return err
	}
	p, v, grads := ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v), b.grad64()
	for g := range groups {
		var want, largest [7]float64
		for i := g * layout.PoseSplats; i < min((g+1)*layout.PoseSplats, b.p.N) && failed == 0; i++ {
			one := *b.proj
			one.DepthKeys = slices.Repeat([]uint32{layout.Culled}, b.p.N)
			one.DepthKeys[i] = b.proj.DepthKeys[i]
			for k, x := range ref.PoseGrad(p, v, &one, grads) {
				want[k] += x
				largest[k] = max(largest[k], math.Abs(x))
			}
		}
		a, c := out.got[2*g], out.got[2*g+1]
		got := []float32{a[0], a[1], a[2], a[3], c[0], c[1], c[2]}
		limit := func(k int) float64 { // turns with turns, shifts with shifts
			first := k / 3 * 3
			return 1e-5 + 3e-3*slices.Max(largest[first:min(first+3, len(largest))])
		}
		if err := closeScaled(fmt.Sprintf("partials of group %d", g), got, want[:], limit); err != nil {
			return err
		}
	}
	return m.untouched()
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
	found   []layout.PoseOfStep
	after   []layout.Pose
}

// poses makes those of n photos, three of four by one camera, and of one that stands alone.
func (t *trial) poses(n int) *poses {
	x := &poses{t: t, v: t.camera(123, 83), id: n / 2, splats: 500, weight: 0.3,
		rates: ref.PoseRates{Pose: 0.02, Focal: 0.01, Beta1: 0.5, Beta2: 0.97}, table: make([]layout.Pose, n+1)}
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
			if k == layout.PoseFocal {
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

// rows converts the table.
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
func (x *poses) run(adam bool, failed uint32) error {
	list := x.t.list()
	n := len(x.table) - 1
	params := input(list, "params", []layout.StepParams{x.params()})
	table := inout(list, "poses", x.table)
	refined, found := output[layout.StepParams](list, "refined", 1), output[layout.PoseOfStep](list, "pose", 1)
	push := layout.NewPoseFrame(x.table[:n])
	list.r.Dispatch(&shaders.RefinePose{Params: params, Poses: table.Slice, Refined: refined.Slice, Pose: found.Slice,
		Push: shaders.RefinePosePush{NViews: uint32(n), NInverse: push.Inverse, TurnInverse: push.Turn,
			SizeInverse: push.Size}}, vk.Groups(1))
	if adam {
		counters := junkCounters(map[int]uint32{layout.NActive: uint32(x.splats), layout.Failed: failed})
		for range 2 * blocksOf(x.splats, layout.PoseSplats) {
			var g [4]float32
			for k := range g {
				g[k] = float32(x.t.NormFloat64())
			}
			x.grads = append(x.grads, g)
		}
		list.r.Dispatch(&shaders.PoseAdam{Params: params, Counters: input(list, "counters", counters),
			Refined: refined.Slice, Pose: found.Slice, Partials: input(list, "partials", x.grads),
			Anchors: input(list, "anchors", x.anchors()), Poses: table.Slice,
			Push: shaders.PoseAdamPush{NViews: uint32(n), FirstStep: 7, WarmUp: 1, DecaySteps: 1,
				Rate: float32(x.rates.Pose), FocalRate: float32(x.rates.Focal), Beta1: float32(x.rates.Beta1),
				Beta2: float32(x.rates.Beta2), Anchor: x.weight,
				ResetEvery: x.resets, ResetStop: 7, Rest: 1}}, vk.Groups(1))
	}
	if err := list.run(); err != nil {
		return err
	}
	x.refined, x.found, x.after = refined.got, found.got, table.got
	return nil
}

func (x *poses) checkRefined() error {
	if err := x.run(false, 0); err != nil {
		return err
	}
	a := x.used()
	w := ref.ConvertView[float64](x.v).Refined(&a)
	got := x.refined[0]
	want := x.params()
	want.View.Rot, want.View.Trans, want.View.Focal = got.View.Rot, got.View.Trans, got.View.Focal
	return first(
		closeTo("pose.own", x.found[0].Own[:], a[:], 2e-6, 1e-4),
		closeTo("refined.rot", got.View.Rot[:], w.R[:], 5e-6, 0),
		closeTo("refined.trans", got.View.Trans[:], w.T[:], 3e-5, 0),
		closeTo("refined.focal", got.View.Focal[:], []float64{w.Fx, w.Fy}, 0, 1e-5),
		sameBytes("refined", x.refined, []layout.StepParams{want}),
	)
}

// checkAdam takes the photo from step-1 steps to step.
func (x *poses) checkAdam(step int, failed uint32) error {
	row := &x.table[x.id]
	row.Bias1 = float32(1 - math.Pow(x.rates.Beta1, float64(step-1)))
	row.Bias2 = float32(1 - math.Pow(x.rates.Beta2, float64(step-1)))
	if step == 1 {
		row.M, row.V = [layout.PoseNumbers]float32{}, [layout.PoseNumbers]float32{}
	}
	if err := x.run(true, failed); err != nil {
		return err
	}
	if failed != 0 {
		return sameBytes("poses", x.after, x.table)
	}
	for i := range x.table {
		if i != x.id {
			if err := sameBytes("poses", x.after[i:i+1], x.table[i:i+1]); err != nil {
				return fmt.Errorf("row %d, which is of another photo: %w", i, err)
			}
		}
	}
	var up [7]float64
	for i, g := range x.grads {
		for k, f := range g {
			if at := 4*(i%2) + k; at < len(up) {
				up[at] += float64(f)
			}
		}
	}
	a := x.used()
	grad := ref.PoseChain(&a, up)
	_, held := ref.PoseHold(ref.ConvertView[float64](x.v), &a, x.points, float64(x.weight))
	for k := range grad {
		grad[k] += held[k]
	}
	number := func(x [7]float32) ref.PoseNumbers[float64] {
		return ref.PoseNumbers[float64](ref.ConvertSlice[float64](x[:]))
	}
	own, m, v := number(row.Own), number(row.M), number(row.V)
	ref.PoseAdam(&own, &m, &v, &grad, x.rates, step, x.others())
	largest := 1.0
	for _, g := range grad {
		largest = max(largest, math.Abs(g))
	}
	got := x.after[x.id]
	return first(
		closeTo("poses.m", got.M[:], m[:], 1e-4*largest, 1e-4),
		closeTo("poses.v", got.V[:], v[:], 1e-4*largest*largest, 1e-4),
		closeTo("poses.own", got.Own[:], own[:], 1e-5, 1e-4),
		closeTo("poses.bias1", []float32{got.Bias1}, []float64{1 - math.Pow(x.rates.Beta1, float64(step))}, 0, 1e-4),
		closeTo("poses.bias2", []float32{got.Bias2}, []float64{1 - math.Pow(x.rates.Beta2, float64(step))}, 0, 1e-4),
	)
}

// others sums what the other photos of the photo's camera have.
func (x *poses) others() (s [2]float64) {
	for i := range len(x.table) - 1 {
		if row := &x.table[i]; i != x.id && row.Camera == x.table[x.id].Camera {
			s[0], s[1] = s[0]+float64(row.V[layout.PoseFocal]), s[1]+float64(row.Bias2)
		}
	}
	return s
}
