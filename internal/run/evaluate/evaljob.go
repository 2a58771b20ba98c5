package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
)

// Job is one thing that eval measures: a model, or a folder of pictures.
type Job struct {
	console *cli.Console
	o       Options          // with what the run recorded
	name    string           // in tables
	file    string           // of the model
	rec     *captured.Record // of the model's run, nil for none
	capture *scene.Capture
	cams    []scene.Camera // to be compared with; of a model in the training frame
	renders []scene.Camera // pictures of --renders
	folder  string         // for the files of scores, "" for none
	ours    bool           // a run of this program's is in it
	scorer  *Scorer
	Result  results.Result
	origin  [3]float64 // that was subtracted from the model's coordinates
	beside  int64      // bytes of the device that LPIPS leaves for drawing
	show    *meter.Meter
}

func ModelJob(console *cli.Console, o Options, path string) (*Job, error) {
	file, out, err := o.findModel(path)
	if err != nil {
		return nil, err
	}
	var rec *captured.Record
	if out != "" {
		if rec, err = captured.ReadRecord(out); err != nil {
			return nil, err
		}
	}
	switch {
	case rec != nil:
		if err := o.take(rec, out); err != nil {
			return nil, err
		}
	case o.Capture == "":
		return nil, fault.Usagef("name the folder of the photos with "+fault.Setting("capture")+" SCENE",
			"%s: cannot tell which capture it was trained on", path)
	}
	if rec == nil && !output.IsFolder(path) {
		out = "" // the folder may be another program's, with scores of its own
	}
	j := &Job{console: console, o: o, name: path, file: file, folder: cmp.Or(o.Out, out),
		ours: rec != nil && o.Out == ""}
	return j, j.openCapture(rec)
}

// take makes the options what a run recorded, where no flag says otherwise.
func (o *Options) take(rec *captured.Record, out string) (err error) {
	if o.Capture == "" {
		if o.Capture, err = rec.Place(out); err != nil {
			return err
		}
	}
	rec.Options(&o.Load, out, o.Given)
	if rec.AsTaken {
		if !o.Given("native-lens") {
			o.AsTaken = true
		}
		o.others = map[bool]string{false: "_undistorted"}
	}
	return nil
}

// findModel returns the file of a model and the folder of the run that it is from, "" for none.
func (o *Options) findModel(path string) (file, out string, err error) {
	if file, err = splatfile.FindStep(path, o.Iteration); err != nil {
		return "", "", plans.OfPlan(path, err)
	}
	switch {
	case file != path:
		return file, path, nil
	case o.Iteration > 0:
		return "", "", fault.Usagef("name the run's folder, or leave "+fault.Setting("iteration")+" out",
			"%s: %s is a file", fault.Named("iteration"), path)
	}
	return file, output.FolderOf(file), nil
}

// openCapture reads the capture and chooses the views. rec is nil where no run recorded them.
func (j *Job) openCapture(rec *captured.Record) error {
	o := &j.o
	c, err := load.Capture(o.Capture, o.Load.Options())
	if err != nil {
		return err
	}
	for _, w := range c.Warnings {
		// report photos without a mask, and not that all have one
		if (w.Code != "masks" || w.Count > 0) && inspect.Note(w) {
			j.console.Note(w.String())
		} else if !inspect.Note(w) {
			j.console.Warn(w.String())
		}
	}
	j.capture, j.rec = c, rec
	views, err := o.heldOutViews(c, rec)
	if err != nil {
		return err
	}
	if err := j.takeLook(c.Synthetic); err != nil {
		return err
	}
	j.warnOtherCameras(views)
	c.Normalise()
	c.Points = nil
	j.cams = captured.Pick(c.Cameras, views)
	j.setScorer()
	j.Result.Drawn = captured.DrawnOf(&o.Config, c, views)
	on := j.countTrainedOn(rec, views)
	j.Result.TrainedOn = &on
	j.warnTrainedOn()
	if o.Split == SplitTest {
		j.setNearest()
	}
	return nil
}

func (j *Job) setScorer() {
	j.scorer = &Scorer{Protocol: ProtocolOf(j.o.Protocol), Correct: j.o.Correct, unmasked: captured.AnyMasked(j.cams)}
	j.Result.Protocol = j.o.Protocol
}

// pictureJob pairs the pictures of two folders.
func pictureJob(console *cli.Console, o *Options) (*Job, error) {
	pairs, err := inspect.FindPairs(o.Renders, o.Gt, o.Load.Masks, o.Load.Inverted)
	if err != nil {
		return nil, err
	}
	if n := len(pairs.Unpaired); n > 0 {
		console.Warn(scene.Warning{Count: n, Names: pairs.Unpaired[:min(n, 5)],
			Text: fmt.Sprintf("%s in %s have no rendering and are not measured", cli.Count(n, "photo"), o.Gt)}.String())
	}
	for _, w := range pairs.Warnings {
		console.Warn(w.String())
	}
	j := &Job{console: console, o: *o, name: o.Renders, folder: o.Out, renders: pairs.Renders, cams: pairs.Photos}
	// INRIA's layout is test/ours_30000/renders.
	j.Result.Method = filepath.Base(output.Absolute(o.Renders))
	if parent := filepath.Base(filepath.Dir(output.Absolute(o.Renders))); j.Result.Method == "renders" &&
		strings.HasPrefix(parent, "ours_") {
		j.Result.Method = parent
	}
	j.setScorer()
	return j, nil
}

// What comparing takes of RAM for each pixel, beside the photo: the render, its colour-corrected copy, the photo over
// the background; a rendering from a file is bytes first.
const (
	comparedBytes = 12 + 12 + 4
	fileBytes     = 2 * 4
)

// perPixel is the memory for comparing a picture.
func (j *Job) perPixel() int64 {
	n := int64(comparedBytes)
	if j.renders != nil {
		n += fileBytes
	}
	if j.o.Weights != "" {
		n += lpipsBytes
	}
	return n
}

// measure renders and compares all views. device is nil for pictures.
func (j *Job) measure(ctx context.Context, device *pipeline.Device) (err error) {
	if j.renders != nil {
		plan, err := pipeline.PlanMeasuringFiles(j.o.Device, j.renders, j.cams, j.perPixel())
		if err != nil {
			return err
		}
		return j.round(ctx, plan, j.readRender)
	}
	splats, info, err := models.Open(j.console, j.file)
	if err != nil {
		return err
	}
	j.nameMethod(info.Meta.Step)
	if j.refinedLater(info.Meta.Step) {
		j.console.Warn(fmt.Sprintf("%s: the cameras of the run are those of step %d; the model of step %d was trained with "+
			"others, so that scores say less of it", j.name, j.rec.RefinedAt, info.Meta.Step))
	}
	splats = splats.FromCapture(j.capture.Frame, j.origin)
	if err := models.CheckNear(j.o.Config.Near, splats, j.capture.Cameras); err != nil {
		return err
	}
	j.warnElsewhere(splats)
	if j.o.AsTaken {
		if j.cams, _, err = scene.AsTaken(j.cams); err != nil {
			return err
		}
		j.Result.Drawn.Photos = captured.Resolution(j.cams)
	}
	plan, err := device.PlanMeasuring(splats.N, splats.Degree, j.cams, j.perPixel())
	if err != nil {
		return err
	}
	j.o.Config.Part = func(done, of int) { j.show.Part(done, of) }
	renderer, err := pipeline.NewRenderer(device, splats, j.cams, j.o.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, renderer.Close()) }()
	models.TellShared(j.console, renderer)
	return j.round(ctx, plan, func(memory []float32, i int) ([]float32,
		error) {
		return renderer.RenderInto(memory, j.cams[i])
	})
}

// nameMethod names the model as INRIA's files do: by the step that its file or its folder tells.
func (j *Job) nameMethod(step int) {
	if output.FolderOf(j.file) != "" {
		j.Result.Method = "ours_" + strings.TrimPrefix(filepath.Base(filepath.Dir(j.file)),
			filepath.Base(output.ModelFolder))
	} else if j.Result.Method = results.MethodName(step); step == 0 {
		j.Result.Method = strings.TrimSuffix(filepath.Base(j.file), filepath.Ext(j.file))
	}
	if j.o.Split == SplitTrain {
		j.Result.Method += "_" + SplitTrain
	}
	if j.rec != nil && j.o.Given("cameras") || j.refinedLater(step) { // not those that the run's scores are by
		j.Result.Method += "_other_cameras"
	}
	j.Result.Method += j.o.others[j.o.AsTaken]
}

// refinedLater reports whether the cameras of the run are not those that the model of a step was trained with: see
// captured.Record.
func (j *Job) refinedLater(step int) bool {
	return j.rec != nil && j.rec.RefinedAt > 0 && step > 0 && step != j.rec.RefinedAt && !j.o.Given("cameras")
}

// refuseForeign refuses to replace the scores of another program.
func (j *Job) refuseForeign() error {
	if j.folder == "" || j.ours || j.o.Overwrite {
		return nil
	}
	if j.renders == nil {
		model, err := splatfile.Open(j.file)
		if err != nil {
			return err
		}
		j.nameMethod(model.Info().Meta.Step)
		if err := model.Close(); err != nil {
			return err
		}
	}
	if err := results.CheckScores(j.folder, j.Result.Method); err != nil {
		return fault.Usagef("name another folder with "+fault.Setting("output")+", or replace them with "+
			fault.Setting("overwrite"), "%w", err)
	}
	return nil
}

// readRender reads a picture in place of a render.
func (j *Job) readRender(_ []float32, i int) ([]float32, error) {
	img, err := photo.Decode(j.renders[i])
	if err != nil {
		return nil, err
	}
	return photo.FloatRGB(photo.Over(img, j.o.Config.Background)), nil
}

// round compares all views.
func (j *Job) round(ctx context.Context, plan *pipeline.HostPlan,
	draw func(memory []float32, i int) ([]float32, error)) error {
	round, err := NewViewRound(j.cams, plan)
	if err != nil {
		return err
	}
	defer round.Photos.Close()
	show := showPictures(j.console, len(j.cams))
	j.show = show
	defer show.Interrupt()
	round.Strict, round.Warn, round.Draw = j.o.Load.Strict, j.console.Warn, draw
	round.Compare = func(c *Comparison) (func(), error) {
		c.Photo = photo.Over(c.Photo, j.o.Config.Background)
		clamp01(c.Render)
		scores, err := j.scorer.scores(c.Photo, c.Render, c.Photo.Mask, nil)
		if err != nil {
			return nil, fmt.Errorf("measure %q: %w", c.Cam.Name, err)
		}
		return func() {
			j.Result.Views = append(j.Result.Views, results.ViewScores{Name: c.Cam.Name, Scores: scores})
			show.Update(pipeline.Progress{Step: len(j.Result.Views)})
		}, nil
	}
	if err := round.Run(ctx); err != nil {
		return err
	}
	if len(j.Result.Views) == 0 {
		return fault.WithHint(fmt.Errorf("%s: %w: no photo could be measured", j.name, fault.ErrData),
			"see the warnings above; "+j.otherPhotos())
	}
	return nil
}

// otherPhotos says how to measure on other photos than those of which none could be taken.
func (j *Job) otherPhotos() string {
	switch {
	case j.renders == nil:
		return "name another capture with " + fault.Setting("capture")
	case j.o.Load.Masks != "":
		return "name other masks with " + fault.Setting("masks") + ", or leave them out"
	}
	return "name other folders with " + fault.Setting("renders") + " and " + fault.Setting("gt")
}

// showPictures shows how many of n pictures are done, if that is visible to a person: standard output is for
// the tables.
func showPictures(console *cli.Console, n int) *meter.Meter {
	how := meter.None
	if f, isFile := cli.FileOf(console.Stderr); isFile && term.IsTerminal(int(f.Fd())) {
		how = meter.Bar
	}
	show := meter.New(console.Stderr, how, 0, n)
	show.Draws, show.Text = true, console.Follow(show)
	return show
}
