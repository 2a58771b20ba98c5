package train

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"vksplat/internal/run/meter"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// ViewerOptions say at which address a viewer serves.
type ViewerOptions struct {
	Address string // as given, "" without the flag
	Server  struct{ Host, CertFile, KeyFile string }
}

// Of the photos that a viewer keeps in memory.
const (
	PhotoSide   = 1600 // pixels, at most
	PhotosShown = 16   // some 300 KB each
)

// drawsBetween reports whether an observer draws between steps.
func drawsBetween(o *Options) bool {
	return !o.DryRun && (o.Viewer.Address != "" || o.Preview.File != "")
}

// drawBytes is the RAM that viewers and previews use at most: of a viewer, files of photos, one photo while it
// is decoded and reduced, one frame as floats and bytes; of a preview, a picture as floats, as bytes and twice while it
// is packed.
func drawBytes(o *Options, cams []scene.Camera) (sum int64) {
	if o.Preview.File != "" {
		sum = (12 + 3*4) * photo.PreviewSide * photo.PreviewSide
	}
	if o.Viewer.Address == "" {
		return sum
	}
	var shot, pixels int64
	for _, c := range cams {
		n := int64(c.Width) * int64(c.Height)
		shot, pixels = max(shot, photo.DecodeBytes(c)+2*4*n), max(pixels, n)
	}
	return sum + PhotosShown<<20 + 2*4*PhotoSide*PhotoSide + shot + (12+2*4)*pixels
}

// Stage is the stage of a run: what Ctrl-C does depends on it.
type Stage int32

const (
	StageTraining  Stage = iota
	StageMeasuring       // the held-out photos, which is given up
	StageEnding          // the last step is done: what is left is done as well
)

// control is the Control of a run.
type control struct {
	stage   atomic.Int32       // a Stage
	stop    context.CancelFunc // ends the training, as Ctrl-C does
	saveNow func()
	between *pipeline.Interludes // nil: no observer draws
	trainer *pipeline.Trainer
	past    *history
	watch   stopwatch
}

func (c *control) Stage() Stage                  { return Stage(c.stage.Load()) }
func (c *control) SaveNow()                      { c.saveNow() }
func (c *control) Stop()                         { c.stop() }
func (c *control) Between() *pipeline.Interludes { return c.between }
func (c *control) Spent() float64                { return c.past.secondsBefore + c.watch.seconds() }

func (c *control) Use() meter.DeviceUse {
	return meter.DeviceUse{Bytes: c.trainer.MemoryStats().DeviceBytes, Seconds: c.trainer.PassTimes().StepSeconds()}
}

// smallerTries is how many times a frame that does not fit is tried at half the width and height.
const smallerTries = 3

// Show draws a frame into memory, smaller where what training has does not hold it, and returns the camera that it was
// drawn by.
func (c *control) Show(memory []float32, cam scene.Camera, look pipeline.Look) (rgb []float32, drawn scene.Camera,
	err error) {
	for try := 0; ; try++ {
		rgb, drawn, err = c.trainer.Show(memory, cam, look)
		if !errors.Is(err, pipeline.ErrFrameTooFull) || try == smallerTries {
			return rgb, drawn, err
		}
		cam = drawn.Rescaled(max(1, drawn.Width/2), max(1, drawn.Height/2))
	}
}

// stops says what Ctrl-C does now.
func (c *control) stops() string {
	switch c.Stage() {
	case StageMeasuring:
		return "finishing this picture, then saving"
	case StageEnding:
		return "the last step is done: writing the results"
	}
	return "finishing the current steps, then saving"
}

// during makes s the run's stage until the function that it returns is called.
func (c *control) during(s Stage) (after func()) {
	before := c.stage.Swap(int32(s))
	return func() { c.stage.Store(before) }
}

// stopwatch measures the time of training in this process.
type stopwatch struct {
	first   time.Time // of the first stretch
	started time.Time // of the present one
	before  float64   // seconds of the stretches before
}

func (w *stopwatch) begin() {
	w.started = time.Now()
	if w.first.IsZero() {
		w.first = w.started
	}
}

func (w *stopwatch) end() { w.before, w.started = w.seconds(), time.Time{} }

func (w *stopwatch) seconds() float64 {
	if w.started.IsZero() {
		return w.before
	}
	return w.before + time.Since(w.started).Seconds()
}
