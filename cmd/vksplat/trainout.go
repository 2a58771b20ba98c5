package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// statsFile is written when a run is done.
const statsFile = "stats.json"

// stats is stats.json: how good, how large, how long, and what made it.
type stats struct {
	Version     string `json:"version"`
	Device      string `json:"device"`
	Scene       string `json:"scene"`
	Step        int    `json:"step"`        // steps done
	Interrupted bool   `json:"interrupted"` // stopped by the user before the last step, or before all held-out photos were measured

	TrainImages int    `json:"train_images"`
	TestImages  int    `json:"test_images"`
	EvalAt      steps  `json:"eval_at,omitempty"` // steps on the way at which held-out photos were to be measured
	Resolution  string `json:"resolution"`
	Points      int    `json:"points"`
	Splats      int    `json:"splats"`

	*Scores // absent without held-out photos

	LoopSeconds     float64 `json:"loop_seconds"`      // the steps of this process alone
	TrainSeconds    float64 `json:"train_seconds"`     // with those of the processes before, as far as metrics.jsonl has them
	StartSeconds    float64 `json:"start_seconds"`     // from the process's start to the first step
	ProcessSeconds  float64 `json:"process_seconds"`   // from the process's start to this file
	PipelineSeconds float64 `json:"pipelines_seconds"` // of ProcessSeconds, to compile kernels; some drivers do that with the first step
	PipelinesCached bool    `json:"pipelines_cached"`  // those of an earlier run were there
	PeakDeviceBytes int64   `json:"peak_device_bytes"` // device memory taken at most
	Allocations     int     `json:"allocations"`       // vkAllocateMemory calls
	LastGrowthStep  int     `json:"last_growth_step"`  // step at which the last of them happened
	PeakRSSBytes    int64   `json:"peak_rss_bytes"`    // resident memory of the process at most

	Passes []passLine `json:"passes,omitempty"` // device time of a step by kernel; absent where the device has no timestamps

	Run    *runLog         `json:"run,omitempty"` // checkpoints and what the run went on with
	Seed   uint64          `json:"seed"`
	Config pipeline.Config `json:"config"`
}

// passLine is the device time of one kernel in a training step, mean over the steps that were measured.
type passLine struct {
	Name string  `json:"name"`
	MS   rounded `json:"ms"`
}

// Scores are the quality over the held-out photos: PSNR in dB, SSIM over the valid
// region. The name is exported for encoding/json, which otherwise cannot fill it.
type Scores struct {
	PSNR       float64 `json:"psnr"`
	SSIM       float64 `json:"ssim"`
	PSNRMedian float64 `json:"psnr_median"`
	SSIMMedian float64 `json:"ssim_median"`
}

// writeInputs writes what was trained on. That is written with the model, so that a run that ends without one leaves what an earlier run wrote alone.
func (r *trainRun) writeInputs() error {
	w := runInputs{points: r.points, cameras: r.cameras, test: r.test, cfg: r.cfgArgs(), record: r.captureRecord(), origin: r.origin}
	return w.write(r.out)
}

// runInputs are the files in OUT about what a model was trained on: the points, the cameras, INRIA's arguments, the capture and the origin.
type runInputs struct {
	points  []ply.FilePoint // less the origin
	cameras []scene.Camera  // likewise
	test    []int           // of these, held-out ones
	cfg     inria.CfgArgs
	record  captureRecord
	origin  [3]float64
}

// write writes the files.
func (w *runInputs) write(out string) error {
	if err := ply.WritePoints(filepath.Join(out, "input.ply"), w.points); err != nil {
		return err
	}
	if err := inria.WriteCameras(filepath.Join(out, "cameras.json"), w.cameras, w.test...); err != nil {
		return err
	}
	if err := inria.WriteCfgArgs(filepath.Join(out, "cfg_args"), w.cfg); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(out, captureFile), &w.record); err != nil {
		return err
	}
	path := filepath.Join(out, originFile)
	if w.origin != [3]float64{} {
		return writeJSON(path, originRecord{Origin: w.origin})
	}
	// One of an earlier run would move this run's model.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// modelFile is where the model of a step goes.
func (r *trainRun) modelFile(step int) string {
	return filepath.Join(r.out, modelFolder+strconv.Itoa(step), modelName)
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
	if err := r.saver.own.begin(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	meta := ply.Meta{Generator: "vksplat " + programVersion(), Step: step, Seed: r.config.Seed, Antialiased: r.config.Antialiased,
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
	if before := hint(err); before != "" {
		text = before + "; " + text
	}
	return &hintedError{err: err, hint: text}
}

// finish saves the model, measures the held-out photos and writes all results.
func (r *trainRun) finish(ctx context.Context, interrupted bool, seen func(scene.Image, []float32)) (*stats, error) {
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
	if old := filepath.Join(r.out, "results.json"); len(r.test) == 0 && isFile(old) {
		r.app.warn(old + " and what belongs to it are left from an earlier run; this one measured nothing")
	}
	st := r.stats(interrupted || r.unmeasured, views)
	if err := writeJSON(filepath.Join(r.out, statsFile), st); err != nil {
		return nil, err
	}
	r.saver.standing()
	if n := r.trainer.CeilingHits(); n > 0 && r.config.MaxSplats == 0 {
		r.app.warn(fmt.Sprintf("memory is full of splats: %d times one wanted to grow and could not; raise --max-vram for more detail", n))
	}
	if err := r.writeReport(st); err != nil {
		return nil, err
	}
	r.app.printSummary(r, st, time.Since(began).Seconds())
	r.rec.done(st)
	return st, r.writeExports(step)
}

// stats says how the run stands. views are the scores of the held-out photos.
func (r *trainRun) stats(interrupted bool, views []results.ViewScore) *stats {
	memory := r.trainer.MemoryStats()
	st := &stats{
		Version: programVersion(), Device: r.deviceNames(), Scene: r.scene, Step: r.trainer.Step(), Interrupted: interrupted,
		TrainImages: len(r.train), TestImages: len(r.test), EvalAt: r.evalAt, Resolution: resolution(r.capture.Cameras), Points: r.nPoints, Splats: r.trainer.NSplats(),
		LoopSeconds: r.trainer.Seconds(), TrainSeconds: r.rec.metrics.secondsBefore + r.trainer.Seconds(), Run: r.saver.history(), Seed: r.config.Seed, Config: r.config,
		PeakDeviceBytes: memory.PeakDeviceBytes, Allocations: memory.Allocations, LastGrowthStep: memory.LastGrowth, PeakRSSBytes: peakRSS(),
		ProcessSeconds: time.Since(processStart).Seconds(), StartSeconds: r.rec.first.Sub(processStart).Seconds(),
	}
	_, st.PipelineSeconds, st.PipelinesCached = r.device.Pipelines()
	for _, p := range r.trainer.PassTimes() {
		st.Passes = append(st.Passes, passLine{p.Name, rounded(p.Milliseconds)})
	}
	if len(views) > 0 {
		st.Scores = summarise(views)
	}
	return st
}

// printSummary prints the results and where they are.
func (a *app) printSummary(r *trainRun, st *stats, after float64) {
	steps := count(st.Step-r.rec.from, "step")
	if r.rec.from > 0 {
		steps = fmt.Sprintf("%s after the first %d", steps, r.rec.from)
	}
	a.printf("trained %s in %s, saved and measured in %s: %s, %s of device memory at most\n",
		steps, durationText(st.LoopSeconds), durationText(after), count(st.Splats, "splat"), pipeline.BytesText(st.PeakDeviceBytes))
	if st.Scores != nil {
		a.printf("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d; medians %.2f dB, %.4f)\n", st.PSNR, st.SSIM, st.TestImages, st.PSNRMedian, st.SSIMMedian)
		a.printf("drawn with %s\n", r.drawn())
		a.printf("pictures: %s\n", r.picturesFolder(st.Step))
	}
	if path := r.saver.newest(); path != "" {
		a.printf("checkpoint: %s\n", path)
	}
	if r.report {
		a.printf("report: %s\n", filepath.Join(r.out, reportFile))
	}
	a.printf("model: %s\n", r.modelFile(st.Step))
}

// summarise takes means and medians over the views.
func summarise(views []results.ViewScore) *Scores {
	psnr, ssim := make([]float64, len(views)), make([]float64, len(views))
	for i, v := range views {
		psnr[i], ssim[i] = v.PSNR, v.SSIM
	}
	return &Scores{PSNR: mean(psnr), SSIM: mean(ssim), PSNRMedian: scene.Median(psnr), SSIMMedian: scene.Median(ssim)}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// writeJSON writes v to path as one whole file.
func writeJSON(path string, v any) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// trainScene trains a capture.
func (a *app) trainScene(o *trainOptions, scene string) error {
	if flag := o.ofPlan(); flag != "" {
		return usagef("make one with vksplat partition, and name its folder", "flag %s: %s is no plan", flag, scene)
	}
	if o.out == "" && !o.dryRun {
		if !isFolder(scene) { // perhaps a plan, which needs none
			return usagef("check the spelling of "+scene, "no output folder: -m is required; and there is no folder %s", scene)
		}
		return usagef("name the folder to write, as in: vksplat train SCENE -m OUT", "no output folder: -m is required")
	}
	if err := o.checkpoints.check(); err != nil {
		return err
	}
	o.scene = scene
	o.checkpoints.off = o.dryRun
	_, err := a.train(o, nil)
	return err
}

// captureRecord returns what is recorded of this run's capture.
func (r *trainRun) captureRecord() captureRecord {
	c := &r.config
	rec := captureRecord{captureSource: sourceOf(r.scene, &r.load), HeldOut: []string{}, Background: c.Background, Near: c.Near, Exposure: c.Exposure}
	for _, i := range r.test {
		rec.HeldOut = append(rec.HeldOut, r.capture.Cameras[i].Name)
	}
	return rec
}
