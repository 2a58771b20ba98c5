package train

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Of what follows the last step.
const (
	closingTime = 100 * time.Millisecond // for what is not foreseen in particular
	probeBytes  = 16 << 20               // that are written to learn how fast the disk is
	doubtedRate = 100e6                  // bytes a second, taken where that fails
)

// besides is the time of a run other than its start and its steps.
type besides struct {
	splats             int // of the model that is read and written
	reading, writing   time.Duration
	measuring          time.Duration // of all held-out photos
	saves, evaluations int           // before the last step
}

// of returns the same for a model of another number of splats. What measuring takes hangs on pixels, too: it stays.
func (b besides) of(splats int) besides {
	share := float64(splats) / float64(max(b.splats, 1))
	b.splats, b.reading, b.writing = splats, seconds(share*b.reading.Seconds()), seconds(share*b.writing.Seconds())
	return b
}

// onTheWay is for measurements and files that come before the last step.
func (b besides) onTheWay() time.Duration {
	return time.Duration(b.saves)*(b.reading+b.writing) + time.Duration(b.evaluations)*b.measuring
}

// end is for what comes after it: held-out photos are measured while files are written, and both take longer then, half
// of what the shorter takes alone.
func (b besides) end() time.Duration {
	return closingTime + b.reading + max(b.writing, b.measuring) + min(b.writing, b.measuring)/2
}

// cut is the same where the clock ends the run: its checkpoint is written first.
func (b besides) cut() time.Duration { return closingTime + b.reading + b.writing + b.measuring }

// estimateBesides says what the run will take beside its steps: one held-out photo is measured, the model read, and a
// file written, as the run will do it. Exports are not foreseen, nor what is written of the model while it is trained
// on.
func (lim *limiter) estimateBesides(t *pipeline.Trainer) (b besides, err error) {
	clock, n := lim.clock, t.NSplats()
	b.splats = max(n, lim.Config.Splats)
	began := clock.passed()
	if err := t.ReadSplats(func(*scene.Splats) error { return nil }); err != nil {
		return b, err
	}
	// of parameters; a checkpoint has as many numbers three times
	read := 4 * (clock.passed() - began).Seconds() * float64(b.splats) / float64(max(n, 1))
	bytes := float64(b.splats) * modelBytes
	if !lim.Checkpoints.Off {
		bytes += float64(t.CheckpointBytes(b.splats))
	}
	b.reading, b.writing = seconds(read), seconds(bytes/lim.diskRate())
	if len(lim.Test) > 0 {
		b.measuring, err = lim.timeView(t, &lim.Capture.Cameras[lim.Test[0]])
		b.measuring *= time.Duration(len(lim.Test))
	}
	b.saves, b.evaluations = lim.ahead(lim.Checkpoints.SaveAt), lim.ahead(lim.EvalAt)
	return b, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// diskRate returns how many bytes a second the disk of the run's files takes: by its clock, of a file that is written
// where they will be, and is gone then.
func (lim *limiter) diskRate() float64 {
	dir := lim.Out
	for !atomicfile.IsDir(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".vksplat-disk-")
	if err != nil {
		return doubtedRate
	}
	bytes := make([]byte, probeBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(bytes) // some file systems make less of zeros
	began := time.Now()
	_, err = f.Write(bytes)
	err = errors.Join(err, f.Sync())
	took := time.Since(began).Seconds()
	if errors.Join(err, f.Close(), os.Remove(f.Name())) != nil {
		return doubtedRate
	}
	return probeBytes / max(took, 1e-3)
}

// ahead returns how many of steps are still to come, and before the last.
func (lim *limiter) ahead(steps cli.Steps) (n int) {
	done := -1
	if lim.Trainer != nil {
		done = lim.Trainer.Step()
	}
	for _, step := range steps {
		if step > done && step < lim.Config.Iterations {
			n++
		}
	}
	return n
}

// modelBytes is about what a splat takes in the model's file.
const modelBytes = 248

// timeView measures how long the evaluation of a view takes. What fails here fails again when the run comes to it.
func (lim *limiter) timeView(t *pipeline.Trainer, cam *scene.Camera) (time.Duration, error) {
	clock := lim.clock
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
	c := evaluate.Comparison{Cam: *cam, Photo: photo.Over(images[0], lim.Config.Background), Render: render}
	var darken func(picture []float32)
	if lim.Config.Vignetting {
		darken = func(picture []float32) { new(pipeline.Vignetting).Darken(picture, cam.Width, cam.Height) }
	}
	if _, err := c.Score(lim.Config.Appearance(), darken); err != nil {
		return drawn, nil
	}
	if dir, err := os.MkdirTemp("", "vksplat-rehearsal-"); err == nil {
		_ = photo.WriteSheet(filepath.Join(dir, captured.PictureNames([]scene.Camera{*cam})[0]), c.Photo, c.Render)
		_ = os.RemoveAll(dir)
	}
	// several photos are compared at once
	each := drawn + (clock.passed()-began)/time.Duration(min(4, runtime.GOMAXPROCS(0)))
	began = clock.passed()
	clock.evaluated(1)
	return each + clock.passed() - began, nil
}
