package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// PoseTrial is a test that decides whether cameras are refined.
type PoseTrial struct {
	Step    int     // steps done
	Photos  int     // that were tried
	Better  int     // photos whose held-back part became better
	Gain    float64 // mean fraction by which the loss of that part fell
	Refined bool    // cameras are refined
	Again   int     // the step before which there is another one, 0: this was the last
}

// A trial aligns some photos, at even distances, by the last steps of an alignment each, in which cameras move by a few
// tenths of a pixel: the first ones jump over smaller errors.
const (
	trialPhotos = 32
	trialSteps  = 24
)

// Splats that are still coarse show only errors of a pixel and more, by grossGain times the gain. Smaller ones show
// after lateTrial of the steps.
const (
	grossGain = 2
	lateTrial = 0.65
)

// aligner moves cameras to where the model shows their photos best, and decides whether training does so.
type aligner struct {
	run     *training
	shard   *shard
	onTrial func(PoseTrial)
	decided bool // the trials are over
	tried   int  // 1 + the step before which the last one was
}

// lateStep is the step before which the second trial is.
func lateStep(c *recipe.Config) int { return max(c.PoseStart, int(lateTrial*float64(c.DecaySteps()))) }

func (a *aligner) trialDue(next recipe.Unit) bool {
	return a != nil && !a.decided && next.Kind == recipe.Step && next.Step >= a.tried &&
		(next.Step == a.run.cfg.PoseStart || next.Step >= lateStep(&a.run.cfg))
}

// try decides whether cameras are refined, after a number of steps. The splats have been trained with the given cameras
// until then, on every pixel, and do not change. Each photo's camera and lens are moved by nine tenths of the photo's
// tiles; then the last tenth is compared before and after. If the given ones are right there is little to find: noise
// of its pixels moves a camera, and the held-back ones do not agree with it. Any bias is in favour of the given
// cameras, which the splats have fitted. If both trials say no, not a byte of the model differs from a run without. An
// interrupted trial starts again when the run is resumed. Nothing may be in flight.
func (a *aligner) try(ctx context.Context, step int) error {
	trial, n := PoseTrial{Step: step}, len(a.run.cams)
	if a.run.cfg.PoseGain > -1 {
		for k := range min(n, trialPhotos) {
			if err := a.tryPhoto(ctx, k*n/min(n, trialPhotos), &trial); err != nil {
				return err
			}
		}
	}
	if trial.Photos > 0 {
		trial.Gain /= float64(trial.Photos)
	}
	need, late := a.run.cfg.PoseGain, step >= lateStep(&a.run.cfg)
	if a.tried = step + 1; !late && need > 0 {
		need *= grossGain
	}
	if trial.Refined = trial.Gain > need; trial.Refined || late {
		if err := a.decide(trial.Refined, step); err != nil {
			return err
		}
	} else {
		trial.Again = lateStep(&a.run.cfg)
	}
	if a.onTrial != nil {
		a.onTrial(trial)
	}
	return nil
}

// tryPhoto adds the result of one photo. One that cannot be decoded has none.
func (a *aligner) tryPhoto(ctx context.Context, view int, trial *PoseTrial) error {
	from := a.shard.photos
	m, err := from.src.Photo(ctx, view)
	if err != nil {
		if errors.Is(err, fault.ErrData) && !from.strict {
			return nil
		}
		return err
	}
	defer from.src.Release(view)
	c := a.run.cams[view]
	moved, _, err := a.align(ctx, c, withTenth(m, view, false), AlignSteps-trialSteps, 0)
	if err != nil {
		return fmt.Errorf("try poses: %w", err)
	}
	before, after, err := a.compare(ctx, c, moved, withTenth(m, view, true))
	if err != nil {
		return fmt.Errorf("try poses: %w", err)
	}
	if !(before > 0) || math.IsNaN(after) {
		return nil
	}
	trial.Photos++
	if trial.Gain += 1 - after/before; after < before {
		trial.Better++
	}
	return nil
}

// withTenth returns the photo of a view with a mask of the tenth of its tiles that is held back, or of the others.
func withTenth(m scene.Image, view int, held bool) scene.Image {
	mask := make([]uint32, photos.MaskWords(m.Width*m.Height))
	columns := layout.Tiles(m.Width)
	for p := range m.Width * m.Height {
		tile := p/m.Width/layout.TileSize*columns + p%m.Width/layout.TileSize
		counts := m.Mask == nil || m.Mask[p/32]>>(p%32)&1 != 0
		if counts && heldBack(view, tile) == held {
			mask[p/32] |= 1 << (p % 32)
		}
	}
	m.Mask = mask
	return m
}

// heldBack reports whether a tile of a view is of the tenth: of each ten in a row one is.
func heldBack(view, tile int) bool {
	x := uint32(tile/10)*0x9E3779B9 ^ uint32(view)*0x85EBCA6B
	x ^= x >> 15
	x *= 0x2C1B3C6D
	x ^= x >> 13
	return int(x%10) == tile%10
}
