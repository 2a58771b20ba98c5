package main

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
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
)

// evalJob is one thing that eval measures: a model, or a folder of pictures.
type evalJob struct {
	app     *cli.Console
	o       evalOptions      // with what the run recorded
	name    string           // in tables
	file    string           // of the model
	rec     *captured.Record // of the model's run, nil for none
	capture *scene.Capture
	cams    []scene.Camera // to be compared with; of a model in the training frame
	renders []scene.Camera // pictures of --renders
	folder  string         // for the files of scores, "" for none
	ours    bool           // a run of this program's is in it
	scorer  *scorer
	result  results.Result
	origin  [3]float64 // that was subtracted from the model's coordinates
	beside  int64      // bytes of the device that LPIPS leaves for drawing
	show    *meter.Meter
}

// modelJob finds out what a model is to be compared with.
func modelJob(a *cli.Console, o evalOptions, path string) (*evalJob, error) {
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
		o.take(rec)
	case o.capture == "":
		return nil, fault.Usagef("name the folder of the photos with --capture SCENE", "%s: nothing says which capture it was trained on", path)
	}
	if rec == nil && !output.IsFolder(path) {
		out = "" // the folder may be another program's, with scores of its own
	}
	j := &evalJob{app: a, o: o, name: path, file: file, folder: cmp.Or(o.out, out), ours: rec != nil && o.out == ""}
	return j, j.openCapture(rec)
}

// take makes the options what a run recorded, where no flag says otherwise.
func (o *evalOptions) take(rec *captured.Record) {
	o.capture = cmp.Or(o.capture, rec.Scene)
	rec.Options(&o.load, o.given)
	if !o.given("exposure") {
		o.exposure = rec.Exposure
	}
}

// findModel returns the file of a model and the folder of the run that it is from, "" for none.
func (o *evalOptions) findModel(path string) (file, out string, err error) {
	if file, err = splatfile.FindStep(path, o.iteration); err != nil {
		return "", "", ofPlan(path, err)
	}
	switch {
	case file != path:
		return file, path, nil
	case o.iteration > 0:
		return "", "", fault.Usagef("name the run's folder, or leave the flag out", "flag --iteration: %s is a file", path)
	}
	return file, output.FolderOf(file), nil
}

// openCapture reads the capture and chooses the views. rec is nil where no run recorded them.
func (j *evalJob) openCapture(rec *captured.Record) error {
	o := &j.o
	c, err := load.Capture(o.capture, o.load.Options())
	if err != nil {
		return err
	}
	for _, w := range c.Warnings {
		if (w.Code != "masks" || w.Count > 0) && inspect.Note(w) { // photos without a mask are told of, that all have one is not
			j.app.Note(w.String())
		} else if !inspect.Note(w) {
			j.app.Warn(w.String())
		}
	}
	j.capture, j.rec = c, rec
	if err := captured.HoldOut(c, o.testList); err != nil {
		return err
	}
	if err := j.takeLook(c.Synthetic); err != nil {
		return err
	}
	var names []string
	if rec != nil && o.testList == "" && !o.given("test-every") {
		names = append([]string{}, rec.HeldOut...)
	}
	c.Normalise()
	c.Points = nil
	views, err := o.heldOutViews(c, names)
	if err != nil {
		return err
	}
	j.cams = captured.Pick(c.Cameras, views)
	j.setScorer()
	j.result.Drawn = captured.DrawnOf(&o.config, o.exposure, c, views)
	on := j.countTrainedOn(rec, views)
	j.result.TrainedOn = &on
	j.warnTrainedOn()
	return nil
}

func (j *evalJob) setScorer() {
	j.scorer = &scorer{protocol: protocolOf(j.o.protocol), correct: j.o.correct, unmasked: captured.AnyMasked(j.cams)}
	j.result.Protocol = j.o.protocol
}

// pictureJob pairs the pictures of two folders.
func pictureJob(a *cli.Console, o *evalOptions) (*evalJob, error) {
	pairs, err := inspect.FindPairs(o.renders, o.gt, o.load.Masks, o.load.Inverted)
	if err != nil {
		return nil, err
	}
	if n := len(pairs.Unpaired); n > 0 {
		a.Warn(scene.Warning{Count: n, Names: pairs.Unpaired[:min(n, 5)], Text: fmt.Sprintf("%s in %s have no rendering and are not measured", cli.Count(n, "photo"), o.gt)}.String())
	}
	for _, w := range pairs.Warnings {
		a.Warn(w.String())
	}
	j := &evalJob{app: a, o: *o, name: o.renders, folder: o.out, renders: pairs.Renders, cams: pairs.Photos}
	// INRIA's layout is test/ours_30000/renders.
	j.result.Method = filepath.Base(output.Absolute(o.renders))
	if parent := filepath.Base(filepath.Dir(output.Absolute(o.renders))); j.result.Method == "renders" && strings.HasPrefix(parent, "ours_") {
		j.result.Method = parent
	}
	j.setScorer()
	return j, nil
}

// What comparing takes of RAM for each pixel, beside the photo: the render, its colour-corrected copy, the photo over the background; with exposures also the
// photo and the render as it was, in single precision; a rendering from a file is bytes first.
const (
	comparedBytes = 12 + 12 + 4
	exposedBytes  = 2 * 12
	fileBytes     = 2 * 4
)

// perPixel is what comparing a picture takes.
func (j *evalJob) perPixel() int64 {
	n := int64(comparedBytes)
	if j.o.exposure {
		n += exposedBytes
	}
	if j.renders != nil {
		n += fileBytes
	}
	if j.o.weights != "" {
		n += lpipsBytes
	}
	return n
}

// measure renders and compares all views. device is nil for pictures.
func (j *evalJob) measure(ctx context.Context, device *pipeline.Device) (err error) {
	if j.renders != nil {
		plan, err := pipeline.PlanMeasuringFiles(j.o.device, j.renders, j.cams, j.perPixel())
		if err != nil {
			return err
		}
		return j.round(ctx, plan, j.readRender)
	}
	splats, info, err := models.Open(j.app, j.file)
	if err != nil {
		return err
	}
	j.nameMethod(info.Meta.Step)
	splats = splats.FromCapture(j.capture.Frame, j.origin)
	if err := models.CheckNear(j.o.config.Near, splats, j.capture.Cameras); err != nil {
		return err
	}
	j.warnElsewhere(splats)
	plan, err := device.PlanMeasuring(splats.N, splats.Degree, j.cams, j.perPixel())
	if err != nil {
		return err
	}
	j.o.config.Part = func(done, of int) { j.show.Part(done, of) }
	renderer, err := pipeline.NewRenderer(device, splats, j.cams, j.o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, renderer.Close()) }()
	models.TellShared(j.app, renderer)
	return j.round(ctx, plan, func(memory []float32, i int) ([]float32, error) { return renderer.RenderInto(memory, j.cams[i]) })
}

// nameMethod names the model as INRIA's files do: by the step that its file or its folder tells.
func (j *evalJob) nameMethod(step int) {
	if output.FolderOf(j.file) != "" {
		j.result.Method = "ours_" + strings.TrimPrefix(filepath.Base(filepath.Dir(j.file)), filepath.Base(output.ModelFolder))
	} else if j.result.Method = results.MethodName(step); step == 0 {
		j.result.Method = strings.TrimSuffix(filepath.Base(j.file), filepath.Ext(j.file))
	}
	if j.o.split == splitTrain {
		j.result.Method += "_" + splitTrain
	}
}

// refuseForeign refuses to replace the scores of another program.
func (j *evalJob) refuseForeign() error {
	if j.folder == "" || j.ours || j.o.overwrite {
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
	if err := results.CheckScores(j.folder, j.result.Method); err != nil {
		return fault.Usagef("name another folder with -o, or replace them with --overwrite", "%w", err)
	}
	return nil
}

// readRender reads a picture in place of a render.
func (j *evalJob) readRender(_ []float32, i int) ([]float32, error) {
	img, err := photo.Decode(j.renders[i])
	if err != nil {
		return nil, err
	}
	return photo.FloatRGB(photo.Over(img, j.o.config.Background)), nil
}

// round compares all views.
func (j *evalJob) round(ctx context.Context, plan *pipeline.HostPlan, draw func(memory []float32, i int) ([]float32, error)) error {
	round, err := newViewRound(j.cams, plan)
	if err != nil {
		return err
	}
	defer round.photos.Close()
	show := showPictures(j.app, len(j.cams))
	j.show = show
	defer show.Interrupt()
	round.strict, round.warn, round.draw = j.o.load.Strict, j.app.Warn, draw
	round.compare = func(c *comparison) (func(), error) {
		c.photo = photo.Over(c.photo, j.o.config.Background)
		all := []uint32(nil)
		if j.o.exposure {
			all = metric.RightHalf(nil, c.cam.Width, c.cam.Height)
		}
		render, mask := c.comparable(j.o.exposure)
		c.render = render
		scores, err := j.scorer.scores(c.photo, c.render, mask, all)
		if err != nil {
			return nil, fmt.Errorf("measure %q: %w", c.cam.Name, err)
		}
		return func() {
			j.result.Views = append(j.result.Views, results.ViewScores{Name: c.cam.Name, Scores: scores})
			show.Update(pipeline.Progress{Step: len(j.result.Views)})
		}, nil
	}
	if err := round.run(ctx); err != nil {
		return err
	}
	if len(j.result.Views) == 0 {
		return &fault.HintedError{Err: fmt.Errorf("%s: %w: no photo could be measured", j.name, fault.ErrData), Hint: "the warnings above say why; " + j.otherPhotos()}
	}
	return nil
}

// otherPhotos says how to measure on other photos than those of which none could be taken.
func (j *evalJob) otherPhotos() string {
	switch {
	case j.renders == nil:
		return "name another capture with --capture"
	case j.o.load.Masks != "":
		return "name other masks with --masks, or leave them out"
	}
	return "name other folders with --renders and --gt"
}

// showPictures shows how many of n pictures are done, where there is somebody to look at that: standard output is for the tables.
func showPictures(a *cli.Console, n int) *meter.Meter {
	how := meter.None
	if f, isFile := cli.FileOf(a.Stderr); isFile && term.IsTerminal(int(f.Fd())) {
		how = meter.Bar
	}
	show := meter.New(a.Stderr, how, 0, n)
	show.Draws, show.Text = true, a.Follow(show)
	return show
}
