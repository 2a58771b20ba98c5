package vksplat

import (
	"context"
	"errors"

	"vksplat/internal/fault"
	"vksplat/internal/run/evaluate"
	"vksplat/scene/results"
)

// Evaluate draws the held-out photos' views of a model and compares them with the photos, by the protocol of gsplat, as
// the command vksplat eval does. Held out are the photos that its training held out; of a model that no folder of a
// training surrounds, those that the capture's files name or else every 8th. It reads the model's file again, and
// writes nothing.
func Evaluate(ctx context.Context, d *Device, m *Model, c *Capture) (Scores, error) {
	if err := errors.Join(m.check(), c.check()); err != nil {
		return Scores{}, err
	}
	o := evaluate.NewOptions()
	o.Models, o.Capture, o.Load, o.Correct = []string{m.path}, c.dir, c.options, evaluate.ColorNone
	// The capture is read as it was opened, whatever the training did.
	o.Given = func(flag string) bool { return captureFlags[flag] }
	var result *results.Result
	err := d.use(ctx, func() (err error) {
		result, err = evaluate.One(ctx, console(ctx, nil), o, d.gpu)
		return err
	})
	if errors.Is(err, evaluate.ErrHeldOut) {
		err = fault.WithHint(err, "train with TrainOptions.HoldOut, and give the capture that the model was trained on")
	}
	if err != nil {
		return Scores{}, ended(ctx, err)
	}
	var s Scores
	for _, v := range result.Views {
		s.Views = append(s.Views, ViewScore{Name: v.Name, PSNR: value(v.Scores, 0), SSIM: value(v.Scores, 1)})
	}
	means := result.Means()
	s.PSNR, s.SSIM = value(means, 0), value(means, 1)
	return s, nil
}

// captureFlags are what the parts of CaptureOptions are called where runs are recorded.
var captureFlags = map[string]bool{"images": true, "masks": true, "downscale": true, "format": true}

// value returns the score of that name in evaluate.PlainNames.
func value(scores []results.Score, name int) float64 {
	for _, s := range scores {
		if s.Name == evaluate.PlainNames[name] {
			return s.Value
		}
	}
	return 0
}
