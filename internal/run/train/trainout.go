package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// writeInputs writes what was trained on. That is written with the model, so that a run that ends without one leaves
// what an earlier run wrote alone.
func (r *Run) writeInputs() error {
	w := captured.Inputs{Points: r.points, Cameras: r.cameras, Test: r.Test, Cfg: r.CfgArgs(),
		Record: r.captureRecord(), Origin: r.origin}
	return w.Write(r.at(r.Out))
}

// modelFile is where the model of a step goes.
func (r *Run) modelFile(step int) string {
	return filepath.Join(r.Out, output.ModelFolder+strconv.Itoa(step), output.ModelName)
}

// writeModel writes the model in the capture's frame, less the origin.
func (r *Run) writeModel(step int) error {
	finish, err := r.startModel(step)
	if err != nil {
		return err
	}
	return finish()
}

// startModel is writeModel as far as the device has to do with it. finish does the rest and must be called once.
func (r *Run) startModel(step int) (finish func() error, err error) {
	r.saver.startOver()
	if err := r.takeRefined(); err != nil {
		return nil, err
	}
	path := r.modelFile(step)
	if err := r.saver.own.Begin(path); err != nil {
		return nil, err
	}
	at := r.at(path)
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return nil, err
	}
	meta := ply.Meta{Generator: "vksplat " + cli.Version(), Step: step, Seed: r.Config.Seed,
		Antialiased: r.Config.Antialiased,
		Background:  &r.Config.Background, Exposure: r.Config.Appearance()}
	if r.Config.Near != ply.DefaultNear {
		meta.Near = r.Config.Near
	}
	if r.origin != [3]float64{} {
		meta.Origin = &r.origin
	}
	// Neither what the device fails in nor its remedies have to do with the file.
	var lost error
	rest, err := ply.StartPieces(at, r.Trainer.NSplats(), r.Config.SHDegree, meta,
		func(put func(*scene.Splats) error) error {
			var refused error
			failed := r.Trainer.ReadSplats(func(piece *scene.Splats) error {
				refused = put(piece.ToCapture(r.Capture.Frame, r.origin))
				return refused
			})
			if refused == nil {
				lost = failed
			}
			return failed
		})
	if lost != nil {
		err = lost
	}
	if err != nil {
		dir := filepath.Dir(at)
		_, _ = os.Remove(dir), os.Remove(filepath.Dir(dir)) // where nothing else is in them
		return nil, err
	}
	return func() error {
		if err := rest(); err != nil {
			return err
		}
		r.written = path
		return nil
	}, nil
}

// fullHint adds to the error of a full disk what of the run is complete, and how to go on.
func (r *Run) fullHint(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	checkpoint := r.saver.newest()
	state := "no model of this run has been written"
	if r.written != "" {
		state = "the model " + r.written + " is complete"
	}
	then := "try again"
	if checkpoint != "" {
		state += ", and so is the checkpoint " + checkpoint
		if r.written == "" {
			state = "no model of this run has been written; the checkpoint " + checkpoint + " is complete"
		}
		then = "continue with: " + r.Resumed(r.Options)
	}
	text := state + "; once there is room, " + then
	if before := fault.Hint(err); before != "" {
		text = before + "; " + text
	}
	return fault.WithHint(err, text)
}

// finish saves the model, measures the held-out photos and writes all results.
func (r *Run) finish(ctx context.Context, interrupted bool, seen func(scene.Image, []float32)) (*output.Stats, error) {
	r.preview.last()
	step, began := r.Trainer.Step(), time.Now()
	finish, err := r.startModel(step)
	if err != nil {
		return nil, err
	}
	files := make(chan error, 1)
	go func() { // the disk works while the device and the cores measure
		err := finish()
		if err == nil {
			err = r.writeInputs()
		}
		files <- err
	}()
	var views []results.ViewScore
	if len(r.Test) > 0 && !r.unmeasured {
		views, err = r.measure(ctx, step, seen)
	}
	if err := errors.Join(<-files, err); err != nil {
		return nil, err
	}
	_ = r.saver.ended() // conclude reports its error
	if old := r.at(filepath.Join(r.Out, "results.json")); len(r.Test) == 0 && output.IsFile(old) {
		r.Console.Warn(old + " and what belongs to it are left from an earlier run; this one measured nothing")
	}
	st := r.stats(interrupted || r.unmeasured, views)
	if err := output.WriteJSON(r.at(filepath.Join(r.Out, output.StatsFile)), st); err != nil {
		return nil, err
	}
	if err := r.saver.replaceEarlier(); err != nil {
		return nil, err
	}
	if n := r.Trainer.MemoryStats().CeilingHits; n > 0 && r.Config.MaxSplats == 0 {
		r.Console.Warn(fmt.Sprintf("memory is full of splats: %d times one wanted to grow and could not; %s", n,
			r.moreSplats()))
	}
	if err := r.writeReport(st); err != nil {
		return nil, err
	}
	printSummary(r.Console, r, st, time.Since(began).Seconds())
	r.rec.done(st)
	return st, r.writeExports(step)
}

// moreSplats says what gives room to splats where memory limits them. The ceiling of a run stays that of its start, for
// the sake of equal bytes: more memory alone changes nothing for one that goes on.
func (r *Run) moreSplats() string {
	if from := r.saver.from; from != nil {
		if ceiling := from.Ceiling(r.Config); ceiling > 0 {
			return fmt.Sprintf("the run's ceiling of %s is fixed since its start: for more detail give %s N with %s, or "+
				"train from scratch", cli.Count(ceiling, "splat"), fault.Setting("max-splats"), fault.Setting("accept-changes"))
		}
	}
	return "train from scratch with more " + fault.Setting("max-vram") + " for more detail"
}

// stats says how the run stands. views are the scores of the held-out photos.
func (r *Run) stats(interrupted bool, views []results.ViewScore) *output.Stats {
	memory := r.Trainer.MemoryStats()
	st := &output.Stats{
		Version: cli.Version(), Commit: cli.CommitID(), Device: r.deviceNames(), Scene: r.Scene, Step: r.Trainer.Step(),
		Interrupted: interrupted,
		TrainImages: len(r.Train), TestImages: len(r.Test), EvalAt: r.EvalAt,
		Resolution: captured.Resolution(r.Capture.Cameras), Points: r.nPoints, Splats: r.Trainer.NSplats(),
		LoopSeconds: r.Trainer.Seconds(), TrainSeconds: r.rec.metrics.secondsBefore + r.Trainer.Seconds(),
		Run: r.saver.history(), Seed: r.Config.Seed, Config: r.Config,
		PeakDeviceBytes: memory.PeakDeviceBytes, Allocations: memory.Allocations, LastGrowthStep: memory.LastGrowth,
		PeakRSSBytes:   meter.PeakRSS(),
		ProcessSeconds: time.Since(cli.ProcessStart).Seconds(),
		StartSeconds:   r.rec.first.Sub(cli.ProcessStart).Seconds(),
	}
	_, st.PipelineSeconds, st.PipelinesCached = r.device.Pipelines()
	for _, p := range r.Trainer.PassTimes().List() {
		st.Passes = append(st.Passes, output.PassLine{Name: p.Name, MS: meter.Rounded(p.Milliseconds)})
	}
	if len(views) > 0 {
		st.Scores = output.Summarise(views)
	}
	return st
}

// printSummary prints the results and where they are.
func printSummary(console *cli.Console, r *Run, st *output.Stats, after float64) {
	steps := cli.Count(st.Step-r.rec.from, "step")
	if r.rec.from > 0 {
		steps = fmt.Sprintf("%s after the first %d", steps, r.rec.from)
	}
	console.Sayf("trained %s in %s, saved and measured in %s: %s, %s of device memory at most\n",
		steps, cli.Duration(st.LoopSeconds), cli.Duration(after), cli.Count(st.Splats, "splat"),
		pipeline.BytesText(st.PeakDeviceBytes))
	if st.Scores != nil {
		console.Sayf("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d; medians %.2f dB, %.4f)\n", st.PSNR,
			st.SSIM, st.Measured, st.PSNRMedian, st.SSIMMedian)
		if c := st.Scores; c.CCPSNR != nil {
			console.Sayf("the same after the affine colour map that fits the photo best: PSNR %.2f dB, SSIM %.4f\n",
				*c.CCPSNR, *c.CCSSIM)
		}
		if c := st.Scores; c.LensPSNR != nil {
			console.Sayf("as the cameras would have taken it, darker away from the centre: PSNR %.2f dB, SSIM %.4f\n",
				*c.LensPSNR, *c.LensSSIM)
		}
		if c := st.Scores; c.AlignedPSNR != nil {
			console.Sayf("of cameras moved to where their photos fit best: PSNR %.2f dB, SSIM %.4f; the scores above are of "+
				"the given ones\n", *c.AlignedPSNR, *c.AlignedSSIM)
		}
		console.Sayf("(measured with %s)\n", r.drawn())
		console.Sayf("pictures: %s\n", r.picturesFolder(st.Step))
	}
	if path := r.saver.newest(); path != "" {
		console.Sayf("checkpoint: %s\n", path)
	}
	if r.Report {
		console.Sayf("report: %s\n", filepath.Join(r.Out, output.ReportFile))
	}
	console.Sayf("model: %s\n", r.modelFile(st.Step))
}

// captureRecord returns what is recorded of this run's capture.
func (r *Run) captureRecord() captured.Record {
	c := &r.Config
	rec := captured.Record{Source: captured.SourceOf(r.Scene, &r.Load), HeldOut: r.heldOutNames(),
		Background: c.Background,
		Near:       c.Near, Exposure: c.Appearance(), Resplit: r.resplit}
	if r.saver.from != nil {
		if before, err := captured.ReadRecord(r.Out); err == nil && before != nil {
			rec.Resplit = rec.Resplit || before.Resplit
		}
	}
	return rec
}

// heldOutNames are those of the cameras that are held out.
func (r *Run) heldOutNames() []string {
	names := []string{}
	for _, i := range r.Test {
		names = append(names, r.Capture.Cameras[i].Name)
	}
	return names
}
