package pipeline

import (
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

// AlignSteps is how many steps a camera takes at most to where a photo fits a model best.
const AlignSteps = 60

// alignRates are those of a camera that moves alone: in all it goes no further than about a degree.
func alignRates() shaders.PoseAdamPush {
	return shaders.PoseAdamPush{WarmUp: 1, DecaySteps: AlignSteps, Rate: 2e-3, Log2Final: float32(math.Log2(0.03)),
		Beta1: 0.8, Beta2: 0.95}
}

// recordAlign lists a step of a camera alone: the model, and what else is learnt, stay as they are.
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

// Align moves a camera to where the model shows its photo best, the model staying as it is. Where no step makes the
// picture better, the camera is the one that was given. Nothing of training changes.
func (t *Trainer) Align(c scene.Camera, m scene.Image) (scene.Camera, error) {
	if err := t.takeIn(); err != nil {
		return c, err
	}
	moved, _, err := t.align(c, m, AlignSteps)
	if err != nil {
		return c, err
	}
	before, err := t.lossAt(c, m)
	if err != nil {
		return c, err
	}
	after, err := t.lossAt(moved, m)
	if err != nil || !(after < before) {
		return c, err
	}
	return moved, nil
}

// lossAt returns the loss of a camera's picture. Nothing may be in flight.
func (t *Trainer) lossAt(c scene.Camera, m scene.Image) (float64, error) {
	_, loss, err := t.align(c, m, 1)
	return loss, err
}

// ErrPhotoSize says that a photo has more pixels than those trained on.
var ErrPhotoSize = errors.New("align camera: the photo is larger than those that are trained on")

// align takes a camera so many steps, and returns the loss before the first. Nothing may be in flight. Where the run is
// interrupted it ends with the error of its context.
func (t *Trainer) align(c scene.Camera, m scene.Image, steps int) (moved scene.Camera, loss float64, err error) {
	e := t.e
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
	n, flags := photos.Stage(staging.View.Host(), m, t.photos.layout.Packed)
	photo := t.photos.copied(staging.View.Slice(0, n))
	if err := e.setup.poses.clearSpare(); err != nil {
		return c, 0, err
	}
	// A checkpoint is the same whatever was measured before.
	defer func() { err = errors.Join(err, e.setup.poses.clearSpare()) }()
	for k := 0; k < steps; k++ {
		if err := t.ctx.Err(); err != nil {
			return c, 0, err
		}
		r, err := t.alignStep(&c, k, flags, &photo)
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
		if photo.src = (vk.View{}); k == 0 { // the photo stays where it is
			loss = float64(r.Loss)
		}
	}
	rows, err := e.setup.poses.download()
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
	return movedCamera(&c, turn, shift, 0), loss, nil
}

// alignStep takes step k, counted from 0, and returns the report: it may not have fit.
func (t *Trainer) alignStep(c *scene.Camera, k int, flags uint32, photo *stagedPhoto) (*layout.Report, error) {
	e, f := t.e, t.e.programs.frames[0]
	p := f.hostParams
	viewParams(&p.View, c, t.cfg.Near, t.cfg.SHDegree, t.cfg.Antialiased, t.cfg.Background)
	t.cfg.OptimiserParams(p, k, t.sceneScale, 1)
	p.Unit, p.Step, p.PhotoFlags, p.ViewId = 0, uint32(k), flags, uint32(e.setup.poses.views())
	p.Level, p.PhotoWidth, p.PhotoHeight = 0, uint32(c.Width), uint32(c.Height)
	p.MaxSplats, p.SplatCapacity = uint32(t.maxSplats), uint32(e.setup.model.capacity())
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
