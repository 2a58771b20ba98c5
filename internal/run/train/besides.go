package train

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Of what follows the last step.
const (
	diskRate    = 300e6                  // bytes a second that files are foreseen to take
	closingTime = 300 * time.Millisecond // for the rest
)

// estimateBesides says what the run will take beside its steps: one held-out photo is measured, and the model read, as
// the run will do it. Exports are not foreseen, nor what is written of the model while it is trained on.
func (r *Run) estimateBesides(t *pipeline.Trainer) (b besides, err error) {
	clock, n := r.limit.clock, t.NSplats()
	last := max(n, r.Config.Splats)
	began := clock.passed()
	if err := t.ReadSplats(func(*scene.Splats) error { return nil }); err != nil {
		return b, err
	}
	bytes := float64(last) * modelBytes
	if !r.Checkpoints.Off {
		bytes += float64(t.CheckpointBytes(last))
	}
	// of parameters; a checkpoint has as many numbers three times
	read := 4 * (clock.passed() - began).Seconds() * float64(last) / float64(max(n, 1))
	files := time.Duration((read + bytes/diskRate) * float64(time.Second))
	b = besides{onTheWay: time.Duration(r.ahead(r.Checkpoints.SaveAt)) * files, end: closingTime + files}
	if len(r.Test) == 0 {
		return b, nil
	}
	each, err := r.timeView(t, &r.Capture.Cameras[r.Test[0]])
	each *= time.Duration(len(r.Test))
	b.onTheWay += each * time.Duration(r.ahead(r.EvalAt))
	b.end += each
	return b, err
}

// ahead returns how many of steps are still to come, and before the last.
func (r *Run) ahead(steps cli.Steps) (n int) {
	done := -1
	if r.Trainer != nil {
		done = r.Trainer.Step()
	}
	for _, step := range steps {
		if step > done && step < r.Config.Iterations {
			n++
		}
	}
	return n
}

// modelBytes is about what a splat takes in the model's file.
const modelBytes = 248

// timeView measures how long the evaluation of a view takes. What fails here fails again when the run comes to it.
func (r *Run) timeView(t *pipeline.Trainer, cam *scene.Camera) (time.Duration, error) {
	clock := r.limit.clock
	render, err := t.RenderInto(nil, *cam) // the first has programs made
	if err != nil {
		return 0, err
	}
	began := clock.passed()
	if render, err = t.RenderInto(render, *cam); err != nil {
		return 0, err
	}
	drawn := clock.passed() - began
	began = clock.passed()
	images, errs := photo.DecodeViews([]scene.Camera{*cam})
	if errs[0] != nil {
		return drawn, nil
	}
	c := evaluate.Comparison{Cam: *cam, Photo: photo.Over(images[0], r.Config.Background), Render: render}
	made, mask := c.Comparable(r.Config.Exposure)
	if _, err := evaluate.Score(c.Cam, c.Photo, made, mask); err != nil {
		return drawn, nil
	}
	if dir, err := os.MkdirTemp("", "vksplat-rehearsal-"); err == nil {
		_ = photo.WriteSheet(filepath.Join(dir, captured.PictureNames([]scene.Camera{*cam})[0]), c.Photo, made)
		_ = os.RemoveAll(dir)
	}
	// several photos are compared at once
	each := drawn + (clock.passed()-began)/time.Duration(min(4, runtime.GOMAXPROCS(0)))
	began = clock.passed()
	clock.evaluated(1)
	return each + clock.passed() - began, nil
}
