package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

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

	steps  int           // of a measurement; 0 until kernels are compiled and photos decoded
	guess  float64       // seconds of a step, before any is measured
	start  float64       // seconds for the photos that are not decoded
	ending time.Duration // what comes after the last step
}

// Of rehearsals. Their times are shares of the limit.
const (
	warmSteps   = 8 // that are not measured
	fewSteps    = 24
	mostSteps   = 1000
	aimedShare  = 0.04 // that steps are measured for, if they are not fewSteps or mostSteps
	mostShare   = 0.1  // after which a measurement ends, whatever it has seen
	warmShare   = 0.25 // likewise before it: kernels are compiled then
	decodeShare = 0.03 // for photos ahead of the steps
	refineTimes = 12   // refinements, about, if the recipe has as many: more would be most of the time
	growTimes   = 6    // likewise where gradients decide how much each adds: half of them are before its last
)

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
	limit := time.Duration(h.r.TimeLimit)
	if h.steps == 0 {
		if err := h.decode(ctx); err != nil {
			return p, err
		}
		warm, err := h.train(ctx, cfg, cfg, warmSteps, warmShare)
		if p = (pace{warm.each, h.start}); err != nil || warm.done < warmSteps {
			return p, err
		}
		h.guess = warm.last
		h.steps = max(fewSteps, int(min(mostSteps, aimedShare*limit.Seconds()/warm.last)))
	}
	left := limit - h.ending - h.r.limit.clock.passed()
	share := float64(pace{h.guess, h.start}.fit(left.Seconds())) / float64(cfg.Iterations)
	like := cfg.Scaled(min(1, max(share, 1e-3))) // as short as the run will be
	measured, err := h.train(ctx, cfg, like, h.steps, mostShare)
	return pace{measured.each, h.start}, err
}

// timing is what became of steps: how many were done, the mean seconds of one, and of the later ones of them.
type timing struct {
	done       int
	each, last float64
}

// train trains a model in so many steps, or fewer where they take more than a share of the limit.
func (h *rehearsal) train(ctx context.Context, cfg, like recipe.Config, steps int, share float64) (done timing,
	err error) {
	r, o := h.r, h.options
	o.Interludes, o.OnPressure, o.Warn = nil, nil, nil
	t, err := pipeline.NewTrainer(r.device, h.cams, r.photos, h.init, r.Capture.SceneScale,
		rehearsed(cfg, like, steps, h.init.N), o)
	if err != nil {
		return done, err
	}
	defer func() {
		err = errors.Join(err, t.Close())
		r.photos.Forget() // what the next steps would have been of
	}()
	part, stop := context.WithCancel(ctx)
	defer stop()
	clock, half := &r.limit.clock, time.Duration(0)
	began, most := clock.passed(), time.Duration(share*float64(r.TimeLimit))
	err = t.RunTo(part, steps, func(p pipeline.Progress) {
		if p.More {
			return
		}
		clock.rehearsed(p.Level)
		passed := clock.passed() - began
		if done.done++; done.done == steps/2 {
			half = passed
		}
		if passed > most {
			stop()
		}
	})
	if err != nil && (ctx.Err() != nil || part.Err() == nil) {
		return done, err
	}
	took := max(clock.passed()-began, 1)
	done.each = took.Seconds() / float64(max(done.done, 1))
	done.last = max(took-half, 1).Seconds() / float64(max(done.done-steps/2, 1))
	h.ending, err = r.estimateEnd(t)
	return done, err
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
	if !r.plan.Host.CacheAll {
		return nil
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	r.photos.Expect(order)
	defer r.photos.Forget()
	clock := &r.limit.clock
	began, most := clock.passed(), time.Duration(decodeShare*float64(r.TimeLimit))
	for i := range order {
		if took := clock.passed() - began; took > most {
			h.start = took.Seconds() / float64(i) * float64(n-i)
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

// estimateEnd says how long the run will take after its last step: one held-out photo is measured, and the model read,
// as the run will do it. Exports are not foreseen.
func (r *Run) estimateEnd(t *pipeline.Trainer) (time.Duration, error) {
	clock := &r.limit.clock
	if clock.tests != nil {
		return 0, nil
	}
	n := t.NSplats()
	last := max(n, r.Config.Splats)
	began := clock.passed()
	if err := t.ReadSplats(func(*scene.Splats) error { return nil }); err != nil {
		return 0, err
	}
	bytes := float64(last) * modelBytes
	if !r.Checkpoints.Off {
		bytes += float64(t.CheckpointBytes(last))
	}
	// of parameters; a checkpoint has as many numbers three times
	read := 4 * (clock.passed() - began).Seconds() * float64(last) / float64(max(n, 1))
	end := closingTime + time.Duration((read+bytes/diskRate)*float64(time.Second))
	if len(r.Test) == 0 {
		return end, nil
	}
	each, err := r.timeView(t, &r.Capture.Cameras[r.Test[0]])
	return end + each*time.Duration(len(r.Test)*(1+len(r.EvalAt))), err
}

// modelBytes is about what a splat takes in the model's file.
const modelBytes = 248

// timeView measures how long the evaluation of a view takes. What fails here fails again when the run comes to it.
func (r *Run) timeView(t *pipeline.Trainer, cam *scene.Camera) (time.Duration, error) {
	clock := &r.limit.clock
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
	return drawn + (clock.passed()-began)/time.Duration(min(4, runtime.GOMAXPROCS(0))), nil
}
