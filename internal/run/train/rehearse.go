package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// rehearsal trains throw-away models in a few steps each, by the run's recipe with everything in it scaled: they go
// through the same sizes of photos and, unless gradients decide that, the same numbers of splats. What the device
// compiles and the photos that are decoded meanwhile are the run's, too.
type rehearsal struct {
	r       *Run
	cams    []scene.Camera
	init    *scene.Splats
	options pipeline.TrainerOptions

	steps   int     // of a measurement; 0 until kernels are compiled and photos decoded
	guess   float64 // seconds of a step, before any is measured
	start   float64 // seconds for the photos that are not decoded
	decoded int     // photos, from the first on, that steps do not wait for
	besides besides // zero until a model has grown
}

// The lengths of rehearsals, in steps. The first few are to have kernels compiled.
const (
	warmSteps = 8
	fewSteps  = 24 // of a measurement at least
	mostSteps = 1000
)

// The times of rehearsals, as shares of the limit.
const (
	decodeShare  = 0.1  // for photos ahead of the steps, which the run needs anyway
	warmShare    = 0.2  // after which the first few steps end, whatever they have seen
	mostShare    = 0.08 // likewise a measurement
	aimedShare   = 0.04 // that the steps of a measurement take, if they are not the fewest or most
	halvingShare = 0.3  // after which no smaller photos are tried
)

// growsSlower is about how many times longer steps take than the first few, which have few splats.
const growsSlower = 3

// About how many refinements a rehearsal has, if the recipe has as many: more would be most of its time. Where
// gradients decide how much each adds, half of them are before its last.
const (
	refineTimes = 12
	growTimes   = 6
)

// share returns a share of the limit.
func (h *rehearsal) share(s float64) time.Duration { return time.Duration(s * float64(h.r.TimeLimit)) }

// left returns what is left of the limit for steps.
func (h *rehearsal) left() time.Duration {
	return time.Duration(h.r.TimeLimit) - h.besides.onTheWay - h.besides.end - h.r.limit.clock.passed()
}

// smallest is the shorter side of the smallest photo.
func (h *rehearsal) smallest() int {
	least := math.MaxInt
	for i := range h.cams {
		least = min(least, h.cams[i].Width, h.cams[i].Height)
	}
	return least
}

// pace measures a recipe.
func (h *rehearsal) pace(ctx context.Context, cfg recipe.Config) (p pace, err error) {
	if h.steps == 0 {
		if err := h.decode(ctx); err != nil {
			return p, err
		}
		still := cfg
		still.RefineEvery = 0
		warm, err := h.train(ctx, still, still, warmSteps, warmShare)
		if err != nil {
			return p, err
		}
		h.guess = scene.Median(warm.times) * growsSlower
		h.steps = max(fewSteps, int(min(mostSteps, h.share(aimedShare).Seconds()/h.guess)))
	}
	share := float64(pace{h.guess, h.start}.fit(h.left().Seconds())) / float64(cfg.Iterations)
	like := cfg.Scaled(min(1, max(share, 1e-3))) // as short as the run will be
	measured, err := h.train(ctx, cfg, like, h.steps, mostShare)
	if err != nil {
		return p, err
	}
	each, once := measured.sum(h.steps)
	return pace{step: each, start: h.start + once}, nil
}

// laps are the seconds of a rehearsal's steps, at least of one. It refines every so many; 0: never.
type laps struct {
	times []float64
	every int
}

// sum returns the mean seconds of all steps of a rehearsal, of which the last may not have been done: they take as long
// as those before them. Between two refinements all are taken to be as long as the median. What they took beyond that
// is once: the model grows in a few large steps here and in many small ones in the run, but to the same size, with the
// same allocations.
func (l *laps) sum(steps int) (each, once float64) {
	every := l.every
	if every <= 0 {
		every = max(1, steps/refineTimes)
	}
	total, last := 0.0, 0.0
	for part := range slices.Chunk(l.times, every) {
		took := 0.0
		for _, t := range part {
			took += t
		}
		last = scene.Median(part)
		total += last * float64(len(part))
		once += max(0, took-last*float64(len(part)))
	}
	return max(total+last*float64(steps-len(l.times)), 1e-9) / float64(max(steps, 1)), once
}

// train trains a model in so many steps, or fewer where they take more than a share of the limit.
func (h *rehearsal) train(ctx context.Context, cfg, like recipe.Config, steps int, share float64) (done laps,
	err error) {
	r, o, scaled := h.r, h.options, rehearsed(cfg, like, steps, h.init.N)
	o.Interludes, o.OnPressure, o.Warn = nil, nil, nil
	defer r.keepBudgets()() // the run finds out for itself that memory is short, and says so
	if o.Depths != nil {
		o.Depths = o.Depths[:h.decoded]
	}
	t, err := pipeline.NewTrainer(r.device, h.cams[:h.decoded], r.photos, h.init, r.Capture.SceneScale, scaled, o)
	if err != nil {
		return done, err
	}
	defer func() {
		err = errors.Join(err, t.Close())
		r.photos.Forget() // what the next steps would have been of
	}()
	part, stop := context.WithCancel(ctx)
	defer stop()
	clock := r.limit.clock
	before := clock.passed()
	end := before + h.share(share)
	done.every = scaled.RefineEvery
	err = t.RunTo(part, steps, func(p pipeline.Progress) {
		if p.More {
			return
		}
		clock.rehearsed(p.Level)
		now := clock.passed()
		done.times = append(done.times, (now - before).Seconds())
		if before = now; now > end {
			stop()
		}
	})
	if err != nil && (ctx.Err() != nil || part.Err() == nil) {
		return done, err
	}
	if h.steps == 0 || h.besides.end > 0 { // once is enough, of a model that has grown
		return done, nil
	}
	h.besides, err = r.estimateBesides(t)
	return done, err
}

// keepBudgets notes the devices' budgets, which a trainer lowers if memory is short, and returns what restores them.
func (r *Run) keepBudgets() (restore func()) {
	devices := append([]*pipeline.Device{r.device}, r.others...)
	budgets := make([]int64, len(devices))
	for i, d := range devices {
		budgets[i] = d.Budget()
	}
	return func() {
		for i, d := range devices {
			d.SetBudget(budgets[i])
		}
	}
}

// rehearsed scales a recipe to so many steps. In the recipe as short as it will be, like, the number of splats grows as
// fast. first is the number to start with.
func rehearsed(cfg, like recipe.Config, steps, first int) recipe.Config {
	c := cfg.Scaled(float64(steps) / float64(cfg.Iterations))
	c.Iterations = steps
	c.ResetEvery = 0 // a model does not recover in so few steps
	times := refineTimes
	if c.Strategy == recipe.Strategy3DGS && c.Splats == 0 {
		times = growTimes
	}
	c.RefineEvery = min(like.RefineEvery, max(c.RefineEvery, steps/times))
	all := c.Refinements()
	switch {
	case c.Strategy == recipe.StrategyMCMC && all > 0:
		c.GrowFactor = math.Pow(c.GrowFactor, max(1, float64(like.Refinements())/float64(all)))
	case c.Strategy == recipe.StrategyMCMC:
		c.Splats = min(c.Splats, first)
	case c.Splats > 0: // they at most double at each refinement
		c.Splats = min(c.Splats, first<<min(all, 8))
	}
	return c
}

// decode has the cache read the photos ahead of the steps, for a share of the limit: the run visits each sooner or
// later. What is left by then is foreseen to take as long a photo. Where the cache does not hold all, steps wait for
// photos in the rehearsal as they will in the run.
func (h *rehearsal) decode(ctx context.Context) error {
	r, n := h.r, len(h.cams)
	h.start, h.decoded = 0, n
	if !r.plan.Host.CacheAll {
		return nil
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	r.photos.Expect(order)
	defer r.photos.Forget()
	clock := r.limit.clock
	began, most := clock.passed(), h.share(decodeShare)
	for i := range order {
		if took := clock.passed() - began; i > 0 && took > most {
			h.decoded, h.start = i, took.Seconds()/float64(i)*float64(n-i)
			return nil
		}
		switch _, err := r.photos.Photo(ctx, i); {
		case err == nil:
			r.photos.Release(i)
		case !errors.Is(err, fault.ErrData) || r.Load.Strict: // else training goes on without it
			return err
		}
	}
	return nil
}

// Of what follows the last step.
const (
	diskRate    = 300e6                  // bytes a second that files are foreseen to take
	closingTime = 300 * time.Millisecond // for the rest
)

// estimateBesides says what the run will take beside its steps: one held-out photo is measured, and the model read, as
// the run will do it. Exports are not foreseen, nor what is written of the model while it is trained on.
func (r *Run) estimateBesides(t *pipeline.Trainer) (b besides, err error) {
	clock, n := r.limit.clock, t.NSplats()
	last := max(n, r.Config.Splats)
	began := clock.passed()
	if err := t.ReadSplats(func(*scene.Splats) error { return nil }); err != nil {
		return b, err
	}
	bytes := float64(last) * modelBytes
	if !r.Checkpoints.Off {
		bytes += float64(t.CheckpointBytes(last))
	}
	// of parameters; a checkpoint has as many numbers three times
	read := 4 * (clock.passed() - began).Seconds() * float64(last) / float64(max(n, 1))
	files := time.Duration((read + bytes/diskRate) * float64(time.Second))
	b = besides{onTheWay: time.Duration(r.ahead(r.Checkpoints.SaveAt)) * files, end: closingTime + files}
	if len(r.Test) == 0 {
		return b, nil
	}
	each, err := r.timeView(t, &r.Capture.Cameras[r.Test[0]])
	each *= time.Duration(len(r.Test))
	b.onTheWay += each * time.Duration(r.ahead(r.EvalAt))
	b.end += each
	return b, err
}

// ahead returns how many of steps are still to come, and before the last.
func (r *Run) ahead(steps cli.Steps) (n int) {
	done := -1
	if r.Trainer != nil {
		done = r.Trainer.Step()
	}
	for _, step := range steps {
		if step > done && step < r.Config.Iterations {
			n++
		}
	}
	return n
}

// modelBytes is about what a splat takes in the model's file.
const modelBytes = 248

// timeView measures how long the evaluation of a view takes. What fails here fails again when the run comes to it.
func (r *Run) timeView(t *pipeline.Trainer, cam *scene.Camera) (time.Duration, error) {
	clock := r.limit.clock
	render, err := t.RenderInto(nil, *cam) // the first has programs made
	if err != nil {
		return 0, err
	}
	began := clock.passed()
	if render, err = t.RenderInto(render, *cam); err != nil {
		return 0, err
	}
	drawn := clock.passed() - began
	began = clock.passed()
	images, errs := photo.DecodeViews([]scene.Camera{*cam})
	if errs[0] != nil {
		return drawn, nil
	}
	c := evaluate.Comparison{Cam: *cam, Photo: photo.Over(images[0], r.Config.Background), Render: render}
	made, mask := c.Comparable(false)
	if _, err := evaluate.Score(c.Cam, c.Photo, made, mask); err != nil {
		return drawn, nil
	}
	if dir, err := os.MkdirTemp("", "vksplat-rehearsal-"); err == nil {
		_ = photo.WriteSheet(filepath.Join(dir, captured.PictureNames([]scene.Camera{*cam})[0]), c.Photo, made)
		_ = os.RemoveAll(dir)
	}
	// several photos are compared at once
	each := drawn + (clock.passed()-began)/time.Duration(min(4, runtime.GOMAXPROCS(0)))
	began = clock.passed()
	clock.evaluated(1)
	return each + clock.passed() - began, nil
}
