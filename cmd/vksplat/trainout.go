package main

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
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// writeInputs writes what was trained on. That is written with the model, so that a run that ends without one leaves what an earlier run wrote alone.
func (r *trainRun) writeInputs() error {
	w := captured.Inputs{Points: r.points, Cameras: r.cameras, Test: r.test, Cfg: r.cfgArgs(), Record: r.captureRecord(), Origin: r.origin}
	return w.Write(r.out)
}

// modelFile is where the model of a step goes.
func (r *trainRun) modelFile(step int) string {
	return filepath.Join(r.out, output.ModelFolder+strconv.Itoa(step), output.ModelName)
}

// writeModel writes the model in the capture's frame, less the origin.
func (r *trainRun) writeModel(step int) error {
	finish, err := r.startModel(step)
	if err != nil {
		return err
	}
	return finish()
}

// startModel is writeModel as far as the device has to do with it. finish does the rest and must be called once.
func (r *trainRun) startModel(step int) (finish func() error, err error) {
	r.saver.startOver()
	path := r.modelFile(step)
	if err := r.saver.own.Begin(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	meta := ply.Meta{Generator: "vksplat " + cli.Version(), Step: step, Seed: r.config.Seed, Antialiased: r.config.Antialiased,
		Background: &r.config.Background, Exposure: r.config.Exposure}
	if r.config.Near != ply.DefaultNear {
		meta.Near = r.config.Near
	}
	if r.origin != [3]float64{} {
		meta.Origin = &r.origin
	}
	// Neither what the device fails in nor its remedies have to do with the file.
	var lost error
	rest, err := ply.StartPieces(path, r.trainer.NSplats(), r.config.SHDegree, meta, func(put func(*scene.Splats) error) error {
		var refused error
		failed := r.trainer.ReadSplats(func(piece *scene.Splats) error {
			refused = put(piece.ToCapture(r.capture.Frame, r.origin))
			return refused
		})
		if refused == nil {
			lost = failed
		}
		return failed
	})
	if lost != nil {
		return nil, lost
	}
	if err != nil {
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
func (r *trainRun) fullHint(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	checkpoint := r.saver.newest()
	state := "no model of this run has been written"
	if r.written != "" {
		state = "the model " + r.written + " is complete"
	}
	again := "run the command again"
	if checkpoint != "" {
		state += ", and so is the checkpoint " + checkpoint
		if r.written == "" {
			state = "no model of this run has been written; the checkpoint " + checkpoint + " is complete"
		}
		again = "go on with the same command and --resume"
	}
	text := state + "; once there is room, " + again
	if before := remedy.Of(err); before != "" {
		text = before + "; " + text
	}
	return &fault.HintedError{Err: err, Hint: text}
}

// finish saves the model, measures the held-out photos and writes all results.
func (r *trainRun) finish(ctx context.Context, interrupted bool, seen func(scene.Image, []float32)) (*output.Stats, error) {
	r.preview.last()
	step, began := r.trainer.Step(), time.Now()
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
	if len(r.test) > 0 && !r.unmeasured {
		views, err = r.measure(ctx, step, seen)
	}
	if err := errors.Join(<-files, err); err != nil {
		return nil, err
	}
	if old := filepath.Join(r.out, "results.json"); len(r.test) == 0 && output.IsFile(old) {
		r.app.Warn(old + " and what belongs to it are left from an earlier run; this one measured nothing")
	}
	st := r.stats(interrupted || r.unmeasured, views)
	if err := output.WriteJSON(filepath.Join(r.out, output.StatsFile), st); err != nil {
		return nil, err
	}
	r.saver.standing()
	if n := r.trainer.CeilingHits(); n > 0 && r.config.MaxSplats == 0 {
		r.app.Warn(fmt.Sprintf("memory is full of splats: %d times one wanted to grow and could not; raise --max-vram for more detail", n))
	}
	if err := r.writeReport(st); err != nil {
		return nil, err
	}
	printSummary(r.app, r, st, time.Since(began).Seconds())
	r.rec.done(st)
	return st, r.writeExports(step)
}

// stats says how the run stands. views are the scores of the held-out photos.
func (r *trainRun) stats(interrupted bool, views []results.ViewScore) *output.Stats {
	memory := r.trainer.MemoryStats()
	st := &output.Stats{
		Version: cli.Version(), Device: r.deviceNames(), Scene: r.scene, Step: r.trainer.Step(), Interrupted: interrupted,
		TrainImages: len(r.train), TestImages: len(r.test), EvalAt: r.evalAt, Resolution: captured.Resolution(r.capture.Cameras), Points: r.nPoints, Splats: r.trainer.NSplats(),
		LoopSeconds: r.trainer.Seconds(), TrainSeconds: r.rec.metrics.secondsBefore + r.trainer.Seconds(), Run: r.saver.history(), Seed: r.config.Seed, Config: r.config,
		PeakDeviceBytes: memory.PeakDeviceBytes, Allocations: memory.Allocations, LastGrowthStep: memory.LastGrowth, PeakRSSBytes: meter.PeakRSS(),
		ProcessSeconds: time.Since(cli.ProcessStart).Seconds(), StartSeconds: r.rec.first.Sub(cli.ProcessStart).Seconds(),
	}
	_, st.PipelineSeconds, st.PipelinesCached = r.device.Pipelines()
	for _, p := range r.trainer.PassTimes() {
		st.Passes = append(st.Passes, output.PassLine{Name: p.Name, MS: meter.Rounded(p.Milliseconds)})
	}
	if len(views) > 0 {
		st.Scores = output.Summarise(views)
	}
	return st
}

// printSummary prints the results and where they are.
func printSummary(a *cli.Console, r *trainRun, st *output.Stats, after float64) {
	steps := cli.Count(st.Step-r.rec.from, "step")
	if r.rec.from > 0 {
		steps = fmt.Sprintf("%s after the first %d", steps, r.rec.from)
	}
	a.Printf("trained %s in %s, saved and measured in %s: %s, %s of device memory at most\n",
		steps, cli.Duration(st.LoopSeconds), cli.Duration(after), cli.Count(st.Splats, "splat"), pipeline.BytesText(st.PeakDeviceBytes))
	if st.Scores != nil {
		a.Printf("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d; medians %.2f dB, %.4f)\n", st.PSNR, st.SSIM, st.TestImages, st.PSNRMedian, st.SSIMMedian)
		a.Printf("drawn with %s\n", r.drawn())
		a.Printf("pictures: %s\n", r.picturesFolder(st.Step))
	}
	if path := r.saver.newest(); path != "" {
		a.Printf("checkpoint: %s\n", path)
	}
	if r.report {
		a.Printf("report: %s\n", filepath.Join(r.out, output.ReportFile))
	}
	a.Printf("model: %s\n", r.modelFile(st.Step))
}

// trainScene trains a capture.
func trainScene(a *cli.Console, o *trainOptions, scene string) error {
	if flag := o.ofPlan(); flag != "" {
		return fault.Usagef("make one with vksplat partition, and name its folder", "flag %s: %s is no plan", flag, scene)
	}
	if o.out == "" && !o.dryRun {
		if !output.IsFolder(scene) { // perhaps a plan, which needs none
			return fault.Usagef("check the spelling of "+scene, "no output folder: -m is required; and there is no folder %s", scene)
		}
		return fault.Usagef("name the folder to write, as in: vksplat train SCENE -m OUT", "no output folder: -m is required")
	}
	if err := o.checkpoints.check(); err != nil {
		return err
	}
	o.scene = scene
	o.checkpoints.off = o.dryRun
	_, err := runTrain(a, o, nil)
	return err
}

// captureRecord returns what is recorded of this run's capture.
func (r *trainRun) captureRecord() captured.Record {
	c := &r.config
	rec := captured.Record{Source: captured.SourceOf(r.scene, &r.load), HeldOut: []string{}, Background: c.Background, Near: c.Near, Exposure: c.Exposure}
	for _, i := range r.test {
		rec.HeldOut = append(rec.HeldOut, r.capture.Cameras[i].Name)
	}
	return rec
}
