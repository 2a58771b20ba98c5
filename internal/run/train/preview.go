package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// PreviewOptions say where train leaves a small picture of the model.
type PreviewOptions struct {
	File  string  // "": nowhere
	Every float64 // seconds between two
}

// defaultPreviewEvery is in seconds.
const defaultPreviewEvery = 30

const (
	// previewShare is how many times as long as the device did nothing for the training because of a picture,
	// pipeline.Interludes.Lost, training continues before the next: less than a hundredth of the time is for pictures,
	// however short --preview-every is.
	previewShare = 120
	// previewSteps come before the first picture, which takes no longer than one step: the same share holds from the
	// beginning.
	previewSteps = previewShare
	// firstPreview is which part of --preview-every passes before the first picture.
	firstPreview = 10
	previewLook  = 100 * time.Millisecond // between two looks whether these steps are done
)

// resolve refuses what makes no sense.
func (o *PreviewOptions) resolve(overwrite bool) error {
	switch {
	case o.File == "" && o.Every != defaultPreviewEvery:
		return fault.Usagef("add "+fault.Setting("preview")+" FILE, or leave it out", "%s",
			cli.NoEffect("preview-every", fault.Setting("preview")))
	case !(o.Every > 0 && o.Every < maxMinutes):
		return fault.Usagef("give seconds, as in 30", "%s: %g is not a time", fault.Named("preview-every"), o.Every)
	case o.File == "":
		return nil
	}
	dir := filepath.Dir(o.File)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fault.Usagef("make it first, or name another", "%s: there is no folder %s", fault.Named("preview"),
			wording.Printable(dir))
	}
	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		return fault.Usagef("name a file, as in "+filepath.Join(o.File, "now.jpg"), "%s: %s is not a file",
			fault.Named("preview"), wording.Printable(o.File))
	}
	if isPreview(o.File) {
		return nil
	}
	return output.RefuseExisting("preview", overwrite, o.File)
}

// previewMark is a comment at the beginning of a preview, by which it is known again.
var previewMark = append([]byte{0xff, 0xd8, 0xff, 0xfe, 0, 17}, "vksplat preview"...)

// isPreview tells whether a file is one that may be replaced by the next.
func isPreview(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // only read
	begin := make([]byte, len(previewMark))
	_, err = io.ReadFull(f, begin)
	return err == nil && bytes.Equal(begin, previewMark)
}

// preview leaves a picture of the model in a file from time to time while it is trained, for whoever shows many
// trainings at once. It draws between two steps as a viewer does: it changes no byte of the model, takes no device
// memory of its own, and leaves out a picture that does not fit what training has.
type preview struct {
	PreviewOptions
	console *cli.Console
	run     Control
	camera  scene.Camera
	memory  []float32    // of pictures
	step    atomic.Int64 // done in this process
	stop    context.CancelFunc
	ended   sync.WaitGroup
	warned  bool // that a picture could not be written
}

func newPreview(o *Options, console *cli.Console) (Observer, error) {
	if err := o.Preview.resolve(o.Checkpoints.Overwrite); err != nil || o.Preview.File == "" || o.DryRun {
		return nil, err
	}
	return &preview{PreviewOptions: o.Preview, console: console}, nil
}

// Observe draws while steps are done, and once more when they are.
func (p *preview) Observe(e Event) error {
	switch e := e.(type) {
	case *Started:
		p.run, p.camera = e.Control, previewed(e)
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.ended.Go(func() { p.draw(ctx) })
	case *Stepped:
		p.step.Add(1)
	case *Trained:
		_ = p.Close() // it never fails
		p.write(p.picture())
	}
	return nil
}

// previewed is what is drawn: the first held-out view, which shows what was learnt and not what was remembered, or the
// first one, as large as a preview.
func previewed(e *Started) scene.Camera {
	c := e.Capture.Cameras[slices.Concat(e.Test, e.Train)[0]]
	f := min(1, float64(photo.PreviewSide)/float64(max(c.Width, c.Height)))
	return c.Rescaled(max(1, int(f*float64(c.Width)+0.5)), max(1, int(f*float64(c.Height)+0.5)))
}

// draw draws pictures until ctx ends.
func (p *preview) draw(ctx context.Context) {
	every, between := time.Duration(p.Every*float64(time.Second)), p.run.Between()
	wait := every / firstPreview
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if p.step.Load() < previewSteps {
			wait = previewLook
			continue
		}
		var lost time.Duration
		var img scene.Image
		err := between.Do(ctx, func() (err error) {
			lost = between.Lost()
			img, err = p.picture()
			return err
		})
		if ctx.Err() != nil || errors.Is(err, pipeline.ErrNotTraining) {
			return
		}
		p.write(img, err)
		wait = max(every, previewShare*(between.Lost()-lost))
	}
}

// picture draws the model as it is, on the goroutine that trains.
func (p *preview) picture() (scene.Image, error) {
	rgb, c, err := p.run.Show(p.memory, p.camera, pipeline.LookColor)
	if err != nil {
		return scene.Image{}, err
	}
	p.memory = rgb
	return photo.FromFloats(rgb, c.Width, c.Height), nil
}

// write replaces the file by a picture, unless it was left out. What cannot be written is no reason to lose a run: it
// is warned of once.
func (p *preview) write(img scene.Image, err error) {
	if errors.Is(err, pipeline.ErrFrameTooFull) {
		return // the one before stays
	}
	var data []byte
	if err == nil {
		data, err = photo.SmallJPEG(img, photo.PreviewSide, photo.PreviewBytes-len(previewMark))
	}
	if err == nil {
		// data begins as the mark does
		err = atomicfile.WriteText(p.File, append(slices.Clone(previewMark), data[2:]...))
	}
	if err != nil && !p.warned {
		p.warned = true
		p.console.Warn(fmt.Sprintf("there is no preview: %v", err))
	}
}

// Close ends the drawing.
func (p *preview) Close() error {
	if p.stop != nil {
		p.stop()
		p.ended.Wait()
	}
	return nil
}
