package train

import (
	"errors"

	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Viewer shows a run to others while it trains. The command brings one (package live); programs that call Do need none.
type Viewer interface {
	Interludes() *pipeline.Interludes // what is drawn between two steps
	Serve() error                     // the run is about to train
	Step(p pipeline.Progress)         // after every step
	Measured(step int, psnr float64)  // the held-out photos have been measured
	// Saving reports on the checkpoint of a step that the viewer asked for, which is at path once w has ended. w is nil
	// if it has, or there is err.
	Saving(w *checkpoint.Write, path string, step int, err error)
	Over(err error) // how the run ended, before everything is closed
	Close() error
}

// ViewerOptions say at which address a Viewer serves.
type ViewerOptions struct {
	Address string // as given, "" without the flag
	Server  struct{ Host, CertFile, KeyFile string }
}

// Of the photos that a Viewer keeps in memory.
const (
	PhotoSide   = 1600 // pixels, at most
	PhotosShown = 16   // some 300 KB each
)

// viewerBytes is what a viewer keeps in RAM at most, for the plan: files of photos, one photo while it is decoded and
// reduced, one frame as floats and bytes.
func (r *Run) viewerBytes() int64 {
	if r.Viewer.Address == "" {
		return 0
	}
	var shot, pixels int64
	for _, c := range r.Capture.Cameras {
		n := int64(c.Width) * int64(c.Height)
		shot, pixels = max(shot, photo.DecodeBytes(c)+2*4*n), max(pixels, n)
	}
	return PhotosShown<<20 + 2*4*PhotoSide*PhotoSide + shot + (12+2*4)*pixels
}

// tellStep tells those of a step who want to know.
func (r *Run) tellStep(p pipeline.Progress) {
	if r.Live != nil {
		r.Live.Step(p)
	}
	if r.Stepped != nil {
		r.Stepped(p)
	}
}

// saving is Viewer.Saving.
func (r *Run) saving(w *checkpoint.Write, path string, step int, err error) {
	if r.Live != nil {
		r.Live.Saving(w, path, step, err)
	}
}

// SaveNow has a checkpoint written after the step. It may be called from any goroutine.
func (r *Run) SaveNow() { r.saver.saveNow() }

// Written is the model that the run wrote last, "" for none.
func (r *Run) Written() string { return r.written }

// Stage says what the run is at.
func (r *Run) Stage() Stage { return Stage(r.stage.Load()) }

// smallerTries is how many times a frame that does not fit is tried at half the width and height.
const smallerTries = 3

// ShowToFit draws a frame into memory, smaller where what training has does not hold it, and returns the camera that it
// was drawn by.
func (r *Run) ShowToFit(memory []float32, c scene.Camera, look pipeline.Look) (rgb []float32, drawn scene.Camera,
	err error) {
	for try := 0; ; try++ {
		rgb, drawn, err = r.Trainer.Show(memory, c, look)
		if !errors.Is(err, pipeline.ErrFrameTooFull) || try == smallerTries {
			return rgb, drawn, err
		}
		c = drawn.Rescaled(max(1, drawn.Width/2), max(1, drawn.Height/2))
	}
}
