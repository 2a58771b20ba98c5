package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// PoseTrial is what decided whether poses are refined.
type PoseTrial struct {
	Step    int     // steps done
	Photos  int     // that were tried
	Better  int     // photos of which the part that was held back became better
	Gain    float64 // by how much less the loss of that part became, as a share, in the mean
	Refined bool    // poses are refined
}

// The trial takes some photos, at even distances, a few steps each.
const (
	trialPhotos = 32
	trialSteps  = 12
)

// tryPoses decides, once training has come so far, whether poses are refined. The splats have been trained with the
// given poses until then, on every pixel, and stay as they are. Each photo's camera is moved by nine tenths of its
// tiles; then those of the last tenth, which had no say, are compared before and after. Where the given poses are right
// there is nothing to find: what moves a camera is noise of its pixels, and the others do not agree with it. Whatever
// bias there is speaks for the given poses, which the splats have fitted. Where the trial says no, the run goes on as
// if poses had never been asked for: not a byte of the model differs. again says that something before did not fit, and
// that the queue went back to it. A trial that is interrupted has not been, and begins again when the run goes on.
func (t *Trainer) tryPoses() (again bool, err error) {
	if t.e.setup.poses == nil || t.posesTried || t.next.Kind != recipe.Step || t.next.Step < t.cfg.PoseStart {
		return false, nil
	}
	if again, err := t.drain(); err != nil || again {
		return again, err
	}
	trial := PoseTrial{Step: t.next.Step}
	n := len(t.cams)
	for k := range min(n, trialPhotos) {
		if t.cfg.PoseGain <= -1 {
			break
		}
		if err := t.tryPose(k*n/min(n, trialPhotos), &trial); err != nil {
			return false, err
		}
	}
	if trial.Photos > 0 {
		trial.Gain /= float64(trial.Photos)
	}
	trial.Refined = trial.Gain > t.cfg.PoseGain
	if err := t.setRefined(trial.Refined); err != nil {
		return false, err
	}
	t.posesTried = true
	if t.o.OnTrial != nil {
		t.o.OnTrial(trial)
	}
	return false, nil
}

// tryPose takes in what a photo says. One without pixels says nothing.
func (t *Trainer) tryPose(view int, trial *PoseTrial) error {
	m, err := t.photos.src.Photo(t.ctx, view)
	if err != nil {
		if errors.Is(err, fault.ErrData) && !t.photos.strict {
			return nil
		}
		return err
	}
	if r, ok := t.photos.src.(photos.Releaser); ok {
		defer r.Release(view)
	}
	c := &t.cams[view]
	moved, _, err := t.align(*c, withTenth(m, view, false), trialSteps)
	if err != nil {
		return fmt.Errorf("try poses: %w", err)
	}
	held := withTenth(m, view, true)
	before, err := t.lossAt(*c, held)
	if err != nil {
		return fmt.Errorf("try poses: %w", err)
	}
	after, err := t.lossAt(moved, held)
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
