package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/results"
	"vksplat/scene/splatfile"
)

// outputs writes the results of a run.
type outputs struct {
	*Options
	*notes
	*dataset
	*machine
	prev    *previous
	place   *place
	past    *history
	watch   *stopwatch
	begin   func() error          // before any file is written
	history func() *output.RunLog // of the checkpoints
	written string                // the model that this process wrote last, "" for none
}

// modelFile is where the model of a step goes.
func modelFile(out string, step int) string {
	return filepath.Join(out, output.ModelFolder+strconv.Itoa(step), output.ModelName)
}

// finish saves the model, measures the held-out photos and writes all results.
func (r *Run) finish(ctx context.Context, interrupted bool) (*output.Stats, error) {
	if err := r.emit(&Trained{}); err != nil {
		return nil, err
	}
	step, began := r.Trainer.Step(), time.Now()
	finish, err := r.out.startModel(step)
	if err != nil {
		return nil, err
	}
	files := make(chan error, 1)
	go func() { // the disk works while the device and the cores measure
		err := finish()
		if err == nil {
			err = r.out.writeInputs()
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
	st := r.out.stats(interrupted || r.unmeasured, views)
	if err := output.WriteJSON(r.place.at(filepath.Join(r.Out, output.StatsFile)), st); err != nil {
		return nil, err
	}
	if err := r.place.replaceEarlier(); err != nil {
		return nil, err
	}
	if n := r.Trainer.MemoryStats().CeilingHits; n > 0 && r.Config.MaxSplats == 0 {
		r.Console.Warn(fmt.Sprintf("no memory for more splats: %d times one should have grown and could not; %s", n,
			r.out.moreSplats()))
	}
	done := &Finished{Stats: st, From: r.Trainer.StartStep(), Seconds: time.Since(began).Seconds(),
		Model: modelFile(r.Out, step), Checkpoint: r.saver.newest()}
	if err := r.emit(done); err != nil {
		return nil, err
	}
	return st, r.out.writeExports(step)
}

// writeInputs writes what was trained on. That is written with the model, so that a run that ends without one leaves
// what an earlier run wrote alone.
func (o *outputs) writeInputs() error {
	w := captured.Inputs{Points: o.points, Cameras: o.cameras, Test: o.Test, Cfg: o.CfgArgs(),
		Record: o.captureRecord(), Origin: o.origin}
	return errors.Join(o.writeRefined(&w.Record), w.Write(o.place.at(o.Out)))
}

// writeModel writes the model in the capture's frame, less the origin.
func (o *outputs) writeModel(step int) error {
	finish, err := o.startModel(step)
	if err != nil {
		return err
	}
	return finish()
}

// startModel is writeModel as far as the device has to do with it. finish does the rest and must be called once.
func (o *outputs) startModel(step int) (finish func() error, err error) {
	if err := o.begin(); err != nil {
		return nil, err
	}
	o.useRefined()
	path := modelFile(o.Out, step)
	if err := o.place.own.Begin(path); err != nil {
		return nil, err
	}
	at := o.place.at(path)
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return nil, err
	}
	meta := ply.Meta{Generator: "vksplat " + cli.Version(), Step: step, Seed: o.Config.Seed,
		Antialiased: o.Config.Antialiased,
		Background:  &o.Config.Background, Exposure: o.Config.Appearance()}
	if o.Config.Near != ply.DefaultNear {
		meta.Near = o.Config.Near
	}
	if o.origin != [3]float64{} {
		meta.Origin = &o.origin
	}
	// Neither what the device fails in nor its remedies have to do with the file.
	var lost error
	rest, err := ply.StartPieces(at, o.Trainer.NSplats(), o.Config.SHDegree, meta,
		func(put func(*scene.Splats) error) error {
			var refused error
			failed := o.Trainer.ReadSplats(func(piece *scene.Splats) error {
				refused = put(piece.ToCapture(o.Capture.Frame, o.origin))
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
		o.written = path
		return nil
	}, nil
}

// moreSplats says what gives room to splats where memory limits them. The ceiling of a run stays that of its start, for
// the sake of equal bytes: more memory alone changes nothing for one that is resumed.
func (o *outputs) moreSplats() string {
	if from := o.prev.from; from != nil {
		if ceiling := from.Ceiling(o.Config); ceiling > 0 {
			return fmt.Sprintf("the run's ceiling of %s is fixed since its start: for more detail give %s N with %s, "+
				"or train from scratch", cli.Count(ceiling, "splat"), fault.Setting("max-splats"),
				fault.Setting("accept-changes"))
		}
	}
	return "train from scratch with more " + fault.Setting("max-vram") + " for more detail"
}

// stats says how the run stands. views are the scores of the held-out photos.
func (o *outputs) stats(interrupted bool, views []results.ViewScore) *output.Stats {
	memory := o.Trainer.MemoryStats()
	st := &output.Stats{
		Version: cli.Version(), Commit: cli.CommitID(), Device: o.deviceNames(), Scene: o.Scene, Step: o.Trainer.Step(),
		Interrupted: interrupted,
		TrainImages: len(o.Train), TestImages: len(o.Test), EvalAt: o.EvalAt,
		Resolution: o.resolution(), Points: o.nPoints, Splats: o.Trainer.NSplats(),
		LoopSeconds: o.Trainer.Seconds(), TrainSeconds: o.past.secondsBefore + o.Trainer.Seconds(),
		Run: o.history(), Seed: o.Config.Seed, Config: o.Config,
		PeakDeviceBytes: memory.PeakDeviceBytes, Allocations: memory.Allocations, LastGrowthStep: memory.LastGrowth,
		PeakRSSBytes:   meter.PeakRSS(),
		ProcessSeconds: time.Since(cli.ProcessStart).Seconds(),
		StartSeconds:   o.watch.first.Sub(cli.ProcessStart).Seconds(),
	}
	_, st.PipelineSeconds, st.PipelinesCached = o.device.Pipelines()
	for _, p := range o.Trainer.PassTimes().List() {
		st.Passes = append(st.Passes, output.PassLine{Name: p.Name, MS: meter.Rounded(p.Milliseconds)})
	}
	if len(views) > 0 {
		st.Scores = output.Summarise(views)
	}
	return st
}

// captureRecord returns what is recorded of this run's capture.
func (o *outputs) captureRecord() captured.Record {
	c := &o.Config
	rec := captured.Record{Source: captured.SourceOf(o.Scene, &o.Load, captured.ModelFolder), HeldOut: o.heldOutNames(),
		Background: c.Background,
		Near:       c.Near, Exposure: c.Appearance(), Resplit: o.prev.resplit, AsTaken: o.Config.NativeLens}
	if o.prev.from != nil {
		if before, err := captured.ReadRecord(o.Out); err == nil && before != nil {
			rec.Resplit = rec.Resplit || before.Resplit
		}
	}
	return rec
}

// writeExports converts the model of a step, which is on disk.
func (o *outputs) writeExports(step int) error {
	var errs []error
	for _, path := range o.Exports {
		err := o.place.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = convert.ExportTo(o.console, modelFile(o.Out, step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}
