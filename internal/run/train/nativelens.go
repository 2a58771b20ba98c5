package train

import (
	"fmt"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/scene"
)

// takenBy is scene.AsTaken; where lenses are learnt, those that bend nothing yet count as well.
func takenBy(o *Options, cams []scene.Camera) (taken []scene.Camera, bent int, err error) {
	taken, bent, err = scene.AsTaken(cams)
	for i := range taken {
		if o.Config.RefineCameras && taken[i].Distortion == nil {
			taken[i] = taken[i].Straight()
			bent++
		}
	}
	return taken, bent, err
}

// trainedCameras returns the cameras that are trained on: with --native-lens those that took the photos, rolling
// shutters and all, and not those of photos without distortion, which all else goes by.
func (d *dataset) trainedCameras(devices int) ([]scene.Camera, error) {
	cams, moved := slices.Clone(d.training.Cameras), 0
	for i := range cams {
		if cams[i].Moved() {
			moved++
		}
	}
	if !d.Config.NativeLens {
		if moved > 0 {
			d.warnLater(fmt.Sprintf("the cameras of %d of %d photos moved while their rows were read out, which is "+
				"ignored: training with %s does not", moved, len(cams), fault.Setting("native-lens")))
		}
		return cams, nil
	}
	if err := firstOf(lensRules(d.Options, devices)); err != nil {
		return nil, err
	}
	if err := scene.CheckTravel(d.Capture.Cameras); err != nil {
		return nil, err
	}
	taken, bent, err := takenBy(d.Options, cams)
	if err == nil && bent == 0 {
		d.noteLater(fault.Setting("native-lens") +
			" changes nothing: no lens of the capture distorts, and no camera is known to have moved")
	} else if err == nil {
		text := fmt.Sprintf("%d of %d photos are trained on as taken, at %s", bent, len(cams),
			captured.Resolution(taken))
		if moved > 0 {
			text += fmt.Sprintf("; %d through a rolling shutter", moved)
		}
		d.noteLater(text)
	}
	return taken, err
}
