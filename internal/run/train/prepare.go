package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/initial"
)

// Begin does everything that comes before the first line.
func (r *Run) Begin(ctx context.Context) (err error) {
	r.limit.startClock()
	r.Console.Verbose = r.Verbose
	if drawsBetween(r.Options) {
		r.control.between = pipeline.NewInterludes()
	}
	if err := r.find(); err != nil {
		return err
	}
	if err := r.prev.adopt(); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	r.setup.noteSlow()
	return r.prepare(ctx)
}

// find removes what processes left that were killed, and opens the checkpoint that the run resumes from. For a dry run
// it does the latter alone.
func (r *Run) find() error {
	switch {
	case r.DryRun && r.Checkpoints.Resume == "":
		return nil
	case r.DryRun:
		r.prev.dir = filepath.Join(output.Current(r.Out), output.CheckpointFolder)
	default:
		r.place.sweep()
		if err := r.place.refuseFolders(); err != nil {
			return err
		}
		if r.Checkpoints.Off {
			return r.place.refuseForeign()
		}
	}
	list, err := output.ListCheckpoints(r.prev.dir)
	if err != nil {
		return err
	}
	if r.Checkpoints.Resume != "" && !r.Checkpoints.Overwrite {
		if err := refuseDamagedBegun(r.prev.dir); err != nil {
			return err
		}
	}
	switch r.Checkpoints.Resume {
	case "":
		err = r.prev.protect(list)
	case ResumeAuto:
		err = r.prev.findNewest(list)
	default:
		err = r.prev.openFile(list)
	}
	switch {
	case err != nil:
		return err
	case !r.DryRun:
		r.saver.recall(list, r.prev.after())
		return r.place.sort()
	case r.prev.from != nil && r.TimeLimit > 0:
		return fault.Usagef("leave out "+fault.Setting("time-limit"),
			"%s: times are predicted only for runs from the start", fault.Named("dry-run", "time-limit"))
	}
	return nil
}

// open reads the capture and opens the device: quick checks before slow ones.
func (r *Run) open(ctx context.Context) error {
	if err := models.LimitHeap(r.Console, r.Options.Device); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	c := r.Capture
	if err := r.place.apart(c); err != nil {
		return err
	}
	r.apply(idleRules(r.Options, c))
	r.setup.followCapture()
	if !r.limit.limitChooses() { // else the schedule is not known yet
		r.apply(scheduleRules(r.Options, false))
	}
	if !r.DryRun { // once more: the last step may be another one
		if err := errors.Join(r.place.refuseFolders(), r.place.refuseForeign()); err != nil {
			return err
		}
	}
	r.choices.synthetic = c.Synthetic
	r.configure()
	if err := r.prev.checkConfig(); err != nil {
		return err
	}
	if err := initial.Check(r.training, r.setup.initOptions()); err != nil {
		return err
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	if !r.Checkpoints.Off {
		if err := r.id.start(ctx, c, r.Config.NativeLens, r.prev.from != nil); err != nil {
			return err
		}
	}
	return r.openDevices()
}

// prepare keeps what is to be written of the capture, moves it to the training
// frame, and hands everything to the device.
func (r *Run) prepare(ctx context.Context) (err error) {
	if r.origin, err = r.Capture.Origin(string(r.Options.Origin)); err != nil {
		return err
	}
	if near, err := r.Capture.Origin("auto"); err == nil && r.Options.Origin == "keep" && near != ([3]float64{}) {
		r.noteLater(fault.Setting("origin") + " keep writes coordinates this far from zero in float32, which is too " +
			"coarse for them: the file shows less than the scores say")
	}
	r.cameras, r.points = captured.Moved(r.Capture, r.origin)
	r.Capture.Points = nil // training moves them
	from := r.prev.from
	if from != nil {
		r.training.NormaliseTo(from.Header.Frame.Frame(), from.Header.Frame.SceneScale)
	} else {
		r.training.Normalise()
	}
	r.Capture.NormaliseTo(r.training.Frame, r.training.SceneScale)
	if from == nil {
		r.addDepthPoints()
	}
	r.clear()
	if from != nil {
		r.shell = from.Header.Shell
	} else if err := r.addSky(ctx, r.device.RAM()); err != nil {
		return err
	}
	if !r.limit.limitChooses() { // else the last step is not known yet
		if err := r.place.refuseForeignPictures(r.pictureNames()); err != nil {
			return err
		}
	}
	return r.equip(ctx)
}

// FirstLine says what is trained on what.
func (r *Run) FirstLine() string {
	images := cli.Count(len(r.Capture.Cameras), "image")
	if len(r.Test) > 0 {
		images += fmt.Sprintf(" (%d held out)", len(r.Test))
	}
	points := cli.Count(r.nPoints, "point")
	if r.ignored > 0 { // the recipe goes by all
		points += fmt.Sprintf(" (%d more ignored)", r.ignored)
	}
	return fmt.Sprintf("%s, %s of %s, %s, %s planned of %s", r.deviceNames(), images,
		r.resolution()+captured.FirstSteps(&r.Config), points,
		pipeline.BytesText(r.Trainer.MemoryStats().TotalBytes),
		pipeline.BytesText(r.deviceBudget()))
}

// slowCompile is after how many seconds compilation is worth a line.
const slowCompile = 1

// compiledText says that compiling n kernels took long, and whether it will again; "" where it did not.
func compiledText(n int, seconds float64, cached bool) string {
	switch {
	case seconds < slowCompile:
		return ""
	case cached:
		return fmt.Sprintf("compiling %s took %.1f s", cli.Count(n, "kernel"), seconds)
	}
	return fmt.Sprintf("compiling %s took %.1f s; they are kept for the next run", cli.Count(n, "kernel"), seconds)
}
