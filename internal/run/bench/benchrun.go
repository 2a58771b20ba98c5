package bench

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/pipeline/bench"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// bencher measures one thing after the other.
type bencher struct {
	console *cli.Console
	o       *Options
	events  io.Writer // of progress
	file    *benchFile
	round   time.Duration // of a made-up model, roughly
}

// subject is a model with its views that is measured.
type subject struct {
	name    string
	config  *recipe.Config
	cameras []scene.Camera // that are trained on
	trainer *pipeline.Trainer
	trained int           // steps of training before
	limit   time.Duration // of a round, which has fewer steps then; 0: none
}

// captures measures captures.
func (b *bencher) captures(ctx context.Context, paths []string) error {
	for _, path := range paths {
		o := b.o.Options
		o.Scene = path
		if err := b.capture(ctx, train.NewRun(&o, b.console)); err != nil {
			return err
		}
	}
	return nil
}

// capture loads a capture, trains it as far as asked, and measures.
func (b *bencher) capture(ctx context.Context, r *train.Run) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	defer r.FlushNotes()
	trained := b.o.trained()
	fixed := map[string]any{"num_downscales": b.downscales(),
		"iterations": max(r.Config.Iterations, trained+b.most())}
	if trained == 0 { // no room for more splats is planned
		if r.Config.Splats > 0 {
			b.console.Warn(cli.NoEffect("splats", fault.Setting("warm-steps")))
		}
		fixed["refine_every"], fixed["splats"] = 0, 0
	}
	r.IterationsFactor = 0 // as many as are measured
	r.Fix(fixed)
	if err := r.Begin(ctx); err != nil {
		return err
	}
	b.console.Printf("%s\n", r.FirstLine())
	r.FlushNotes()
	return b.measure(ctx, subject{
		name: b.file.name(filepath.Base(output.Absolute(r.Scene))), config: &r.Config,
		cameras: captured.Pick(r.Capture.Cameras, r.Train), trainer: r.Trainer, trained: trained,
	})
}

// downscales returns how many times photos are halved at first: not at all unless that is asked for, since a step is
// measured and not a run.
func (b *bencher) downscales() int {
	if b.o.Given("num-downscales") {
		return b.o.Config.NumDownscales
	}
	return 0
}

// most is how many steps are gone after training at most.
func (b *bencher) most() int {
	m := bench.Options{Warm: b.o.Settle.or(2 * benchEpoch), Steps: b.o.Steps.or(2 * benchSteps), Rounds: b.o.Rounds}
	return m.Total()
}

// wholeEpochs returns the number of steps, or as many more as it takes to see all of n photos equally often, where that
// is less than twice as many: then steps with timestamps have the same views as those without.
func wholeEpochs(steps, n int) int {
	if n > steps {
		return steps
	}
	return (steps + n - 1) / n * n
}

// warm returns how many steps to go after those done, settle or more: rounds then begin with an epoch of n photos,
// where there is room for so many steps.
func warm(done, settle, n, room int) int {
	return max(min(wholeEpochs(done+settle, n)-done, room), settle)
}

// measure trains as far as asked, settles, measures, and prints.
func (b *bencher) measure(ctx context.Context, s subject) error {
	n := len(s.cameras)
	m := bench.Options{Steps: b.o.Steps.or(wholeEpochs(benchSteps, n)), Rounds: b.o.Rounds}
	settle := min(max(benchSettle, n), benchEpoch)
	show := b.show(s.trainer, s.trained+b.o.Settle.or(settle)+m.Total())
	defer b.console.Follow(nil)
	if err := s.trainer.RunTo(ctx, s.trained, show.Update); err != nil {
		return err
	}
	s.trainer.Hold()
	if s.limit > 0 { // the first steps say how long the others will take; they compile and load, too
		var err error
		if settle, m.Steps, err = b.fit(ctx, s, settle, m.Steps, show); err != nil {
			return err
		}
	}
	done := s.trainer.Step()
	m.Warm = b.o.Settle.or(warm(done, settle, n, s.config.Iterations-done-m.Total()))
	show.Total = s.trainer.Step() + m.Total()
	measured, err := s.trainer.Measure(ctx, m, show.Update)
	show.Interrupt()
	if err != nil {
		return err
	}
	result := newScene(s, m.Steps, measured, b.file.Rates)
	b.file.Scenes = append(b.file.Scenes, result)
	printScene(b.console, result)
	return nil
}

// fit goes a few steps and returns how many to settle and to measure, so that neither takes longer than the subject's
// limit.
func (b *bencher) fit(ctx context.Context, s subject, settle, steps int, show *meter.Meter) (int, int, error) {
	if b.o.Steps >= 0 && b.o.Settle >= 0 {
		return settle, steps, nil
	}
	if err := s.trainer.RunTo(ctx, s.trained+1, show.Update); err != nil {
		return 0, 0, err
	}
	started := time.Now()
	probed := 0
	for ; probed < benchProbe && time.Since(started) < s.limit; probed++ {
		if err := s.trainer.RunTo(ctx, s.trained+2+probed, show.Update); err != nil {
			return 0, 0, err
		}
	}
	fits := int(s.limit * time.Duration(probed) / max(time.Since(started), 1))
	fit := max(fits/2, 2) // with timestamps and without
	if n := len(s.cameras); fit > n {
		fit -= fit % n
	}
	return min(settle, fits), b.o.Steps.or(min(steps, fit)), nil
}

// benchProbe is how many steps say how long steps take: fewer where one takes longer than a round may.
const benchProbe = 3

// show makes the progress of a trainer.
func (b *bencher) show(t *pipeline.Trainer, total int) *meter.Meter {
	p := meter.New(b.events, b.o.Progress, 0, total)
	p.Use = func() meter.DeviceUse {
		return meter.DeviceUse{Bytes: t.MemoryStats().DeviceBytes, Seconds: t.PassTimes().StepSeconds()}
	}
	p.Spent = t.Seconds
	p.Text = b.console.Follow(p)
	return p
}
