package train

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// picturesFolder is where the pictures of held-out photos go.
func (r *Run) picturesFolder(step int) string {
	return filepath.Join(r.Out, output.PictureFolder+strconv.Itoa(step))
}

// measure evaluates the model after step, unless that has been done, and records the scores. Files of scores are
// written in any case: a run that was killed may have left them behind what it recorded. Where ctx is cancelled
// meanwhile there are no scores, and r.unmeasured is set.
//
// What is drawn is the model on the device, not the file that was written of it: a second copy beside the optimiser's
// state may not fit, and measurements on the way (--eval-at) have no file. The scores are the file's all the same.
// RenderInto takes what the file holds, all SH coefficients among it, with settings that the file names (startModel);
// the file differs by the rounding of coordinates to float32 in the capture's frame, which --origin keeps small: 1e-6
// dB. TestScoreIsTheFiles measures files alone and compares.
func (r *Run) measure(ctx context.Context, step int,
	seen func(photo scene.Image, render []float32)) (views []results.ViewScore, err error) {
	r.saver.startOver()
	if ctx.Err() != nil { // Ctrl-C has stopped the training; what was trained is measured all the same
		ctx = context.Background()
	} else {
		defer r.during(StageMeasuring)()
	}
	if views = r.measured(step); views == nil {
		if views, err = r.evaluate(ctx, step, seen); err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.unmeasured, err = true, nil
		}
		if err != nil {
			return nil, err
		}
		if len(views) == 0 {
			return nil, nil
		}
		r.rec.eval(step, views)
	}
	steps, nearest := r.rec.metrics.scores(), r.nearest()
	for i := range steps {
		steps[i].Nearest = nearest
	}
	return views, results.WriteResults(r.at(r.Out), evaluate.ProtocolGsplat, steps, r.saver.from != nil)
}

// nearest says how far the held-out photos' cameras are from those that are trained on. Neither moves.
func (r *Run) nearest() map[string]scene.Nearest {
	if r.nearestTo == nil {
		r.nearestTo = scene.NearestTo(r.training.Cameras, captured.Pick(r.Capture.Cameras, r.Test))
	}
	return r.nearestTo
}

// measured returns the scores of an evaluation of step that an earlier process recorded, nil where one of its pictures
// is not there.
func (r *Run) measured(step int) []results.ViewScore {
	views := r.rec.metrics.evaluated(step, r.drawn())
	files := r.pictureFiles()
	for _, v := range views {
		if file, known := files[v.Name]; !known || !output.IsFile(filepath.Join(r.picturesFolder(step), file)) {
			return nil
		}
	}
	return views
}

// evaluate renders every held-out photo's view, measures it against the photo
// and writes both side by side.
func (r *Run) evaluate(ctx context.Context, step int,
	seen func(photo scene.Image, render []float32)) ([]results.ViewScore, error) {
	cams := captured.Pick(r.Capture.Cameras, r.Test)
	files := captured.PictureNames(cams)
	if err := r.saver.own.Begin(captured.PathsIn(r.picturesFolder(step), files)...); err != nil {
		return nil, err
	}
	if r.photos != nil {
		r.photos.Empty() // its memory is lent to the photos of this evaluation
	}
	r.Console.LimitHeap(r.plan.HeapLimit())
	round, err := evaluate.NewViewRound(cams, &r.plan.Host)
	if err != nil {
		return nil, err
	}
	defer round.Photos.Close()
	e := &evaluation{run: r, step: step, seen: seen, files: files, thumbs: &report.Thumbnails{Step: step}}
	if e.vignettings, err = r.Trainer.Vignettings(); err != nil {
		return nil, err
	}
	round.Strict, round.Warn, round.Compare = r.Load.Strict, r.Console.Warn, e.compare
	round.Draw = func(memory []float32, i int) ([]float32, error) { return r.Trainer.RenderInto(memory, cams[i]) }
	if r.Config.RefinePoses {
		round.Align = func(i int, photo scene.Image) ([]float32, error) { return r.alignedPicture(cams[i], photo) }
	}
	if err := round.Run(ctx); err != nil {
		return nil, err
	}
	r.limit.clock.evaluated(len(cams))
	if len(e.views) == 0 {
		r.Console.Warn("no held-out photo has pixels to compare with: nothing is measured")
	}
	r.thumbs = e.thumbs
	return e.views, nil
}

// evaluation is what a run makes of one round over its held-out photos.
type evaluation struct {
	run    *Run
	step   int
	seen   func(photo scene.Image, render []float32)
	files  []string // of the pictures, by camera
	views  []results.ViewScore
	thumbs *report.Thumbnails
	// of the cameras of photos that are trained on; nil where it is not learnt
	vignettings []pipeline.Vignetting
}

// darken returns what makes a picture what the camera of a held-out photo would have taken of it; nil where nothing is
// known of that.
func (e *evaluation) darken(c *scene.Camera) func(picture []float32) {
	if e.vignettings == nil {
		return nil
	}
	number, known := e.run.takers[cameraName(c)]
	if !known {
		return nil
	}
	return func(picture []float32) { e.vignettings[number].Darken(picture, c.Width, c.Height) }
}

// compare scores a picture, writes it, and makes what else is shown of it.
func (e *evaluation) compare(c *evaluate.Comparison) (take func(), err error) {
	r := e.run
	c.Photo = photo.Over(c.Photo, r.Config.Background)
	view, err := c.Score(r.Config.Appearance(), e.darken(&c.Cam))
	if err != nil {
		return nil, err
	}
	written := make(chan error, 1)
	go func() { // both take a core about as long
		written <- output.WritePicture(filepath.Join(r.at(r.picturesFolder(e.step)), e.files[c.Index]),
			func(path string) error { return photo.WriteSheet(path, c.Photo, c.Render) })
	}()
	sheet, thumb, err := e.small(c)
	if err := errors.Join(<-written, err); err != nil {
		return nil, err
	}
	return func() {
		e.views = append(e.views, view)
		r.rec.view(e.step, c.Cam.Name, sheet)
		if e.seen != nil {
			e.seen(c.Photo, c.Render)
		}
		e.thumbs.Add(thumb, view)
	}, nil
}

// small makes what the board and the report show of a picture, nil where they show nothing.
func (e *evaluation) small(c *evaluate.Comparison) (sheet *boardPicture, thumb *report.Picture, err error) {
	if e.run.rec.boards(c.Index) {
		if sheet, err = newBoardPicture(c.Photo, c.Render); err != nil {
			return nil, nil, err
		}
	}
	if e.run.Report {
		made := photo.FromFloats(c.Render, c.Photo.Width, c.Photo.Height)
		thumb, err = report.NewPicture(c.Cam.Name, photo.Fit(c.Photo, report.Side), photo.Fit(made, report.Side))
	}
	return sheet, thumb, err
}

// pictureFiles returns by the name of each held-out photo where its picture is in picturesFolder.
func (r *Run) pictureFiles() map[string]string {
	files := map[string]string{}
	cams := captured.Pick(r.Capture.Cameras, r.Test)
	for i, name := range captured.PictureNames(cams) {
		files[cams[i].Name] = name
	}
	return files
}

// drawn says how this run's scores come about.
func (r *Run) drawn() *results.Drawn {
	c := &r.Config
	config := pipeline.RenderConfig{Background: c.Background, Near: c.Near, Antialiased: c.Antialiased}
	return captured.DrawnOf(&config, r.Capture, r.Test)
}
