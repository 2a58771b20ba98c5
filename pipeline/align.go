package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// AlignSteps is how many steps a camera is moved by at most to where the model fits its photo best.
const AlignSteps = 60

// alignRates returns the rates for a camera that moves alone: by no more than about a degree in all.
func alignRates() shaders.PoseAdamPush {
	const rate = 2e-3
	return shaders.PoseAdamPush{WarmUp: 1, DecaySteps: AlignSteps, Rate: rate, LensRate: rate,
		Log2Final: float32(math.Log2(0.03)),
		Beta1:     0.8, Beta2: 0.95}
}

// recordAlign lists a step of a camera alone: the model, and whatever else is learnt, does not change.
func (v *view) recordAlign() {
	s := *v.s
	s.appearances, s.histories, s.depths, s.compare.robust, s.compare.shrunk = nil, nil, nil, false, false
	s.compare.masked = true // where a part of the photo is held back
	v.s = &s
	v.begin()
	v.refinePose()     // params poses -> refined params pose
	v.project()        // chunks -> shapes paints depth_keys
	v.forwardAndBack() // -> v_projected
	v.poseGrad()       // v_projected paints chunks -> pose_partials
	v.poseAdam()       // pose_partials pose -> poses
}

// Align moves a camera to where the model shows its photo best; the model and the lens do not change. If no step makes
// the picture better, it returns the given camera.
func (t *Trainer) Align(c scene.Camera, m scene.Image) (scene.Camera, error) {
	if err := t.queue.wait(); err != nil {
		return c, err
	}
	ctx := context.Background()
	moved, _, err := t.poses.align(ctx, c, m, 0, layout.LensHeld)
	if err != nil {
		return c, err
	}
	before, after, err := t.poses.compare(ctx, c, moved, m)
	if err != nil || !(after < before) {
		return c, err
	}
	return moved, nil
}

// compare returns the losses of the pictures of a camera before and after it was moved. Nothing may be in flight.
func (a *aligner) compare(ctx context.Context, c, moved scene.Camera, m scene.Image) (before, after float64,
	err error) {
	if _, before, err = a.align(ctx, c, m, AlignSteps-1, layout.LensHeld); err == nil {
		_, after, err = a.align(ctx, moved, m, AlignSteps-1, layout.LensHeld)
	}
	return before, after, err
}

var ErrPhotoSize = errors.New("align camera: the photo is larger than those that are trained on")

// align moves a camera by the steps of an alignment from number first on, and its lens unless it is held, and returns
// the loss before. Nothing may be in flight.
func (a *aligner) align(ctx context.Context, c scene.Camera, m scene.Image, first int, held uint32) (
	moved scene.Camera, loss float64, err error) {
	e, table := a.shard.e, a.shard.e.setup.poses
	if err := photos.Check(&c, m); err != nil {
		return c, 0, err
	}
	if c.Width*c.Height > e.setup.views.maxPixels {
		return c, 0, ErrPhotoSize
	}
	staging, err := vk.Make[uint32](e.setup.dev, vk.Upload, int(photos.Bytes(&c)/4), "photo staging")
	if err != nil {
		return c, 0, err
	}
	defer func() { err = errors.Join(err, e.setup.dev.Free(staging.View)) }()
	n, flags := photos.Stage(staging.View.Host(), m, a.shard.photos.layout.Packed)
	photo := a.shard.photos.copied(staging.View.Slice(0, n))
	if err := table.clearSpare(); err != nil {
		return c, 0, err
	}
	// A checkpoint is the same whatever was measured before.
	defer func() { err = errors.Join(err, table.clearSpare()) }()
	for k := first; k < AlignSteps; k++ {
		if err := ctx.Err(); err != nil {
			return c, 0, err
		}
		r, err := a.step(&c, k, flags, held, &photo)
		if err != nil {
			return c, 0, err
		}
		if r.Failed != 0 {
			if err := e.recover(r, e.setup.model.capacity()); err != nil {
				return c, 0, err
			}
			k--
			continue
		}
		if photo.src = (vk.View{}); k == first { // the photo is on the device now
			loss = float64(r.Loss)
		}
	}
	rows, err := table.download()
	if err != nil {
		return c, 0, err
	}
	last := &rows[len(rows)-1]
	for k, x := range last.Own {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return c, 0, fmt.Errorf("align camera %s: number %d: %w", c.Name, k, scene.ErrNotFinite)
		}
	}
	turn, shift, _ := poseParts(c.R, last)
	return withOptics(movedCamera(&c, turn, shift), opticsOf(last)), loss, nil
}

// step does step k, counted from 0, and returns the report: it may not have fit.
func (a *aligner) step(c *scene.Camera, k int, flags, held uint32, photo *stagedPhoto) (*layout.Report, error) {
	e, cfg := a.shard.e, &a.run.cfg
	f := e.programs.frames[0]
	p := f.hostParams
	f.lens.set(c)
	vk.Host(f.lens.lens)[0].Flags |= held
	viewParams(&p.View, c, cfg.Near, cfg.SHDegree, cfg.Antialiased, cfg.Background)
	cfg.OptimiserParams(p, k, a.run.sceneScale, 1)
	p.Unit, p.Step, p.PhotoFlags, p.ViewId = 0, uint32(k), flags, uint32(e.setup.poses.views())
	p.Level, p.PhotoWidth, p.PhotoHeight = 0, uint32(c.Width), uint32(c.Height)
	p.MaxSplats, p.SplatCapacity = uint32(a.shard.maxSplats), uint32(e.setup.model.capacity())
	if err := e.programs.submit(f, recipe.Unit{Kind: recipe.Align, Step: k}, false, photo); err != nil {
		return nil, err
	}
	if err := e.programs.wait(f); err != nil {
		return nil, err
	}
	r := *f.hostReport
	if r.Failed != 0 {
		return &r, nil
	}
	return &r, f.verifier.judge(f.unit)
}
