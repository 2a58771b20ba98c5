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
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/results"
)

// writeInputs writes what was trained on. That is written with the model, so that a run that ends without one leaves
// what an earlier run wrote alone.
func (r *Run) writeInputs() error {
	w := captured.Inputs{Points: r.points, Cameras: r.cameras, Test: r.Test, Cfg: r.CfgArgs(),
		Record: r.captureRecord(), Origin: r.origin}
	return w.Write(r.place.at(r.Out))
}

// modelFile is where the model of a step goes.
func modelFile(out string, step int) string {
	return filepath.Join(out, output.ModelFolder+strconv.Itoa(step), output.ModelName)
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
	r.begin()
	if err := r.useRefined(); err != nil {
		return nil, err
	}
	path := modelFile(r.Out, step)
	if err := r.place.own.Begin(path); err != nil {
		return nil, err
	}
	at := r.place.at(path)
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
func (r *Run) finish(ctx context.Context, interrupted bool) (*output.Stats, error) {
	if err := r.emit(&Trained{}); err != nil {
		return nil, err
	}
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
		views, err = r.measure(ctx, step)
	}
	if err := errors.Join(<-files, err); err != nil {
		return nil, err
	}
	_ = r.saver.ended() // conclude reports its error
	if old := r.place.at(filepath.Join(r.Out, "results.json")); len(r.Test) == 0 && output.IsFile(old) {
		r.Console.Warn(old + " and what belongs to it are left from an earlier run; this one measured nothing")
	}
	st := r.stats(interrupted || r.unmeasured, views)
	if err := output.WriteJSON(r.place.at(filepath.Join(r.Out, output.StatsFile)), st); err != nil {
		return nil, err
	}
	if err := r.place.replaceEarlier(); err != nil {
		return nil, err
	}
	if n := r.Trainer.CeilingHits(); n > 0 && r.Config.MaxSplats == 0 {
		r.Console.Warn(fmt.Sprintf("memory is full of splats: %d times one wanted to grow and could not; %s", n,
			r.moreSplats()))
	}
	done := &Finished{Stats: st, From: r.Trainer.StartStep(), Seconds: time.Since(began).Seconds(),
		Model: modelFile(r.Out, step), Checkpoint: r.saver.newest()}
	if err := r.emit(done); err != nil {
		return nil, err
	}
	return st, r.writeExports(step)
}

// moreSplats says what gives room to splats where memory limits them. The ceiling of a run stays that of its start, for
// the sake of equal bytes: more memory alone changes nothing for one that goes on.
func (r *Run) moreSplats() string {
	if from := r.prev.from; from != nil {
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
		LoopSeconds: r.Trainer.Seconds(), TrainSeconds: r.past.secondsBefore + r.Trainer.Seconds(),
		Run: r.saver.history(), Seed: r.Config.Seed, Config: r.Config,
		PeakDeviceBytes: memory.PeakDeviceBytes, Allocations: memory.Allocations, LastGrowthStep: memory.LastGrowth,
		PeakRSSBytes:   meter.PeakRSS(),
		ProcessSeconds: time.Since(cli.ProcessStart).Seconds(),
		StartSeconds:   r.control.watch.first.Sub(cli.ProcessStart).Seconds(),
	}
	_, st.PipelineSeconds, st.PipelinesCached = r.device.Pipelines()
	for _, p := range r.Trainer.PassTimes() {
		st.Passes = append(st.Passes, output.PassLine{Name: p.Name, MS: meter.Rounded(p.Milliseconds)})
	}
	if len(views) > 0 {
		st.Scores = output.Summarise(views)
	}
	return st
}

// captureRecord returns what is recorded of this run's capture.
func (r *Run) captureRecord() captured.Record {
	c := &r.Config
	rec := captured.Record{Source: captured.SourceOf(r.Scene, &r.Load), HeldOut: r.heldOutNames(),
		Background: c.Background,
		Near:       c.Near, Exposure: c.Appearance(), Resplit: r.prev.resplit}
	if r.prev.from != nil {
		if before, err := captured.ReadRecord(r.Out); err == nil && before != nil {
			rec.Resplit = rec.Resplit || before.Resplit
		}
	}
	return rec
}
