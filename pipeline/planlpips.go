package pipeline

import (
	"fmt"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/lpips"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/vk"
)

// NewLPIPS takes the weights of a network to the device.
func NewLPIPS(d *Device, w *metric.LPIPSWeights, o lpips.Options) (*lpips.Scorer, error) {
	return lpips.New(d.dev, w, o)
}

// PlanLPIPS says what drawing n splats takes of the device at least, and refuses, before anything is taken, what leaves
// no room to compare the pictures of cams by a network beside that. Without splats the pictures are there already.
// smaller is RenderConfig's.
func (d *Device) PlanLPIPS(net string, n, degree int, cams []scene.Camera, smaller string) (beside int64, err error) {
	least := lpips.LeastBytes(net, cams)
	if least == 0 {
		return 0, nil
	}
	var w renderNeeds
	if n > 0 {
		if w, err = (&renderPlan{d: d, degree: degree, cameras: cams}).needs(n); err != nil {
			return 0, err
		}
	}
	need := withSlack(w.device + least)
	if need <= d.dev.Budget() {
		return w.device, nil
	}
	return 0, fault.WithHint(fmt.Errorf("plan LPIPS: %w: the features that %s finds take %s of the device in addition "+
		"to the %s for drawing, there are %s", ErrTooSmall, net,
		vk.BytesText(need-w.device), vk.BytesText(w.device), vk.BytesText(d.dev.Budget())),
		failure.AnyOf("raise "+w.raise(d, need)+" or more", smaller, "leave LPIPS out"))
}
