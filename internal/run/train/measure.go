package train

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// picturesFolder is where the pictures of held-out photos go.
func picturesFolder(out string, step int) string {
	return filepath.Join(out, output.PictureFolder+strconv.Itoa(step))
}

// scorer measures a run on its held-out photos.
type scorer struct {
	*dataset
	*machine
	o        *Options
	past     *history
	spent    func() float64              // seconds of training in this process
	at       func(path string) string    // where a file of OUT is written
	own      func(paths ...string) error // lists files of OUT as the run's, before they are written
	emit     func(e Event) error
	measured func(photos int) // for the clock of a time limit
	resumed  bool             // OUT has scores of the run's past
}

// measure evaluates the model after step, unless that has been done, and records the scores. Files of scores are
// written in any case: a run that was killed may have left them behind what it recorded. Where ctx is cancelled
// meanwhile its error is returned.
//
// What is drawn is the model on the device, not the file that was written of it: a second copy beside the optimiser's
// state may not fit, and measurements on the way (--eval-at) have no file. The scores are the file's all the same.
// RenderInto takes what the file holds, all SH coefficients among it, with settings that the file names (startModel);
// the file differs by the rounding of coordinates to float32 in the capture's frame, which --origin keeps small: 1e-6
// dB. TestScoreIsTheFiles measures files alone and compares.
func (s *scorer) measure(ctx context.Context, step int) (views []results.ViewScore, err error) {
	if views = s.recordedScores(step); views == nil {
		if views, err = s.evaluate(ctx, step); err != nil || len(views) == 0 {
			return nil, err
		}
		line := s.past.eval(step, s.Trainer.NSplats(), s.spent(), views, s.drawn())
		if err := s.emit(&Measured{line}); err != nil {
			return nil, err
		}
	}
	steps, nearest := s.past.scores(), s.nearest()
	for i := range steps {
		steps[i].Nearest = nearest
	}
	return views, results.WriteResults(s.at(s.o.Out), evaluate.ProtocolGsplat, steps, s.resumed)
}

// recordedScores returns the scores of an evaluation of step that an earlier process recorded, nil where one of its
// pictures is not there.
func (s *scorer) recordedScores(step int) []results.ViewScore {
	views := s.past.evaluated(step, s.drawn())
	files := pictureFiles(s.Capture, s.Test)
	for _, v := range views {
		if file, known := files[v.Name]; !known || !output.IsFile(filepath.Join(picturesFolder(s.o.Out, step), file)) {
			return nil
		}
	}
	return views
}

// evaluate renders every held-out photo's view, measures it against the photo and writes both side by side.
func (s *scorer) evaluate(ctx context.Context, step int) ([]results.ViewScore, error) {
	cams, err := s.heldOut(ctx)
	if err != nil {
		return nil, err
	}
	files := captured.PictureNames(cams)
	if err := s.own(output.PathsIn(picturesFolder(s.o.Out, step), files)...); err != nil {
		return nil, err
	}
	if s.photos != nil {
		s.photos.Empty() // its memory is lent to the photos of this evaluation
	}
	s.dataset.console.LimitHeap(s.plan.HeapLimit())
	round, err := evaluate.NewViewRound(cams, &s.plan.Host)
	if err != nil {
		return nil, err
	}
	defer round.Photos.Close()
	e := &evaluation{scorer: s, step: step, files: files}
	if e.vignettings, err = s.Trainer.Vignettings(); err != nil {
		return nil, err
	}
	round.Strict, round.Warn, round.Compare = s.o.Load.Strict, s.dataset.console.Warn, e.compare
	round.Draw = func(memory []float32, i int) ([]float32, error) { return s.Trainer.RenderInto(memory, cams[i]) }
	if s.o.Config.RefineCameras {
		round.Align = func(i int, photo scene.Image) ([]float32, error) { return s.alignedPicture(cams[i], photo) }
	}
	if err := round.Run(ctx); err != nil {
		return nil, err
	}
	s.measured(len(cams))
	if len(e.views) == 0 {
		s.dataset.console.Warn("no held-out photo has pixels to compare with: nothing is measured")
	}
	return e.views, nil
}

// evaluation is one round over the held-out photos.
type evaluation struct {
	*scorer
	step  int
	files []string // of the pictures, by camera
	views []results.ViewScore
	// of the cameras of photos that are trained on; nil where it is not learnt
	vignettings []pipeline.Vignetting
}

// darken returns what makes a picture what the camera of a held-out photo would have taken of it; nil where nothing is
// known of that.
func (e *evaluation) darken(c *scene.Camera) func(picture []float32) {
	number, known := e.takers[cameraName(c)]
	if e.vignettings == nil || !known {
		return nil
	}
	return func(picture []float32) { e.vignettings[number].Darken(picture, c.Width, c.Height) }
}

// compare scores a picture and writes it.
func (e *evaluation) compare(c *evaluate.Comparison) (keep func(), err error) {
	c.Photo = photo.Over(c.Photo, e.o.Config.Background)
	view, err := c.Score(e.o.Config.Appearance(), e.darken(&c.Cam))
	if err != nil {
		return nil, err
	}
	written := make(chan error, 1)
	go func() { // both take a core about as long
		written <- output.WritePicture(filepath.Join(e.at(picturesFolder(e.o.Out, e.step)), e.files[c.Index]),
			func(path string) error { return photo.WriteSheet(path, c.Photo, c.Render) })
	}()
	err = e.emit(&Compared{e.step, c.Index, c.Photo, c.Render, view})
	if err := errors.Join(<-written, err); err != nil {
		return nil, err
	}
	return func() { e.views = append(e.views, view) }, nil
}

// alignedPicture draws a held-out photo's camera moved to where the photo fits best; nil where it cannot be.
func (s *scorer) alignedPicture(c scene.Camera, photo scene.Image) ([]float32, error) {
	moved, err := s.Trainer.Align(c, photo)
	if errors.Is(err, pipeline.ErrPhotoSize) {
		s.dataset.console.Warn("photo " + c.Name + " is not measured with an aligned camera: " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.Trainer.RenderInto(nil, moved)
}

func (s *scorer) drawn() *results.Drawn { return drawnBy(s.o, s.Capture, s.Test) }

// pictureFiles returns by the name of each held-out photo where its picture is in picturesFolder.
func pictureFiles(c *scene.Capture, test []int) map[string]string {
	files := map[string]string{}
	cams := captured.Pick(c.Cameras, test)
	for i, name := range captured.PictureNames(cams) {
		files[cams[i].Name] = name
	}
	return files
}

// drawnBy says how a run's scores come about.
func drawnBy(o *Options, capture *scene.Capture, test []int) *results.Drawn {
	c := &o.Config
	config := pipeline.RenderConfig{Background: c.Background, Near: c.Near, Antialiased: c.Antialiased}
	drawn := captured.DrawnOf(&config, capture, test)
	if cams, _, err := scene.AsTaken(captured.Pick(capture.Cameras, test)); err == nil && o.Config.NativeLens {
		drawn.Photos = captured.Resolution(cams)
	}
	return drawn
}
