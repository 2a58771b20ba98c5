package pipeline

import (
	"math"

	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// posePasses are the buffers between the passes of a unit that refines poses.
type posePasses struct {
	used     vk.Slice[layout.PoseOfStep] // [1]
	partials vk.Slice[[4]float32]        // [N / POSE_SPLATS][4]
	given    vk.Slice[layout.StepParams] // [1] as the host wrote them
}

func (v *view) refinesPoses() bool {
	return v.s.poses != nil && (v.s.poses.active && v.kind == recipe.Step || v.kind == recipe.Align)
}

// refinePose puts the view where training has moved it: all later passes of the unit read parameters with that view,
// and its lens.
func (v *view) refinePose() {
	if !v.refinesPoses() {
		return
	}
	x, p := v.s.poses, &v.pose
	p.given, p.used = v.f.params, vk.ScratchOf[layout.PoseOfStep](v.r, "pose", 1)
	refined, lens := vk.ScratchOf[layout.StepParams](v.r, "refined params", 1), vk.ScratchOf[layout.Lens](v.r,
		"refined lens", 1)
	v.r.Dispatch(&shaders.RefinePose{
		Params: p.given, Lens: v.f.lens.lens, Poses: x.rows, Refined: refined, RefinedLens: lens, Pose: p.used,
		Push: shaders.RefinePosePush{NViews: uint32(x.views()), NInverse: x.frame.Inverse, TurnInverse: x.frame.Turn,
			SizeInverse: x.frame.Size},
	}, vk.Groups(1))
	f := *v.f
	f.params, f.lens.lens = refined, lens
	v.f = &f
}

// poseGrad takes the gradients of projections to the camera, chunk by chunk. The splats have not been stepped yet.
func (v *view) poseGrad() {
	if !v.refinesPoses() {
		return
	}
	p := &v.pose
	p.partials = vk.ScratchOf[[4]float32](v.r, "pose partials", 4*(v.s.model.capacity()/layout.PoseSplats))
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.PoseGrad{
			Params: v.f.params, Counters: v.s.counters, DepthKeys: v.depthKeys, VProjected: v.vProjected,
			Paints: v.paints, Chunk: c.Slice, Lens: v.f.lens.lens, Partials: p.partials, Mixed: v.s.model.Mixed,
			Push: shaders.PoseGradPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats)},
		}, vk.Items(c.splats, layout.PoseSplats))
	}
}

// poseAdam steps the optimiser of the photo's pose.
func (v *view) poseAdam() {
	if !v.refinesPoses() {
		return
	}
	x, p := v.s.poses, &v.pose
	push := x.stepRates()
	if v.kind == recipe.Align {
		push = alignRates()
	}
	push.NViews = uint32(x.views())
	v.r.Dispatch(&shaders.PoseAdam{
		Params: p.given, Counters: v.s.counters, Refined: v.f.params, Lens: v.f.lens.lens, Pose: p.used,
		Partials: p.partials, Anchors: x.anchors, Poses: x.rows, Push: push,
	}, vk.Groups(1))
}

// Adam's averages of a photo's pose go back over a few of the photo's steps, one of which comes in each epoch: there
// are not many.
const (
	poseBeta1 = 0.8
	poseBeta2 = 0.95
)

// Rates are for about poseVisits steps of each photo; if it has fewer they are larger, up to a bound. Errors that show
// only late are small: lateRate of that suffices.
const (
	poseVisits   = 100
	mostPoseStep = 0.01
	lateRate     = 0.1
)

// stepRates are those of training. Rates rise over two epochs: moments begin with the sign of one gradient.
func (x *poseTable) stepRates() shaders.PoseAdamPush {
	c, n := x.cfg, x.views()
	steps := max(c.DecaySteps()-x.first, 1)
	rate := lateRate * c.LRPoses
	if x.first < lateStep(c) {
		rate = c.LRPoses * max(1, poseVisits*float64(n)/float64(steps))
		rate = min(rate, max(mostPoseStep, c.LRPoses))
	}
	push := shaders.PoseAdamPush{FirstStep: uint32(x.first), WarmUp: uint32(2 * n), DecaySteps: uint32(steps),
		// all photos of a camera step its lens
		Rate: float32(rate), LensRate: float32(rate * float64(x.lenses) / float64(n)),
		Log2Final: float32(math.Log2(c.LRPosesFinal)), Beta1: poseBeta1, Beta2: poseBeta2,
		Anchor: float32(c.PoseAnchor)}
	if c.ResetEvery > 0 && c.RefineEvery > 0 && c.Strategy == recipe.Strategy3DGS {
		push.ResetEvery, push.ResetStop, push.Rest = uint32(c.ResetEvery), uint32(c.RefineStop), poseRest
	}
	return push
}
