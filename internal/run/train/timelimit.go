package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/pipeline/recipe"
)

// A run with a time limit chooses its number of steps once, before step 0: as many as a rehearsal says fit, and no more
// than the recipe has. They are those of a scaler of steps, so that the same model can be made without a limit: no byte
// depends on a clock. From then on the clock can only end the run, as Ctrl-C does.

// LimitFlag is the time that a run may take; 0: any.
type LimitFlag time.Duration

// leastLimit is the shortest: nothing is trained in less.
const leastLimit = LimitFlag(time.Second)

// Type names the value.
func (f *LimitFlag) Type() string { return "TIME" }

func (f *LimitFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatFloat(time.Duration(*f).Seconds(), 'f', -1, 64) + "s"
}

// Set parses a duration as in 90s, 5m or 1h30m. A number alone is seconds.
func (f *LimitFlag) Set(s string) error {
	unit := ""
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		unit = "s"
	}
	d, err := time.ParseDuration(s + unit)
	if err != nil || d < time.Duration(leastLimit) {
		return fault.Usagef("give 1s or more, as in 90s, 5m or 1h30m", "%q is no time that a run may take", s)
	}
	*f = LimitFlag(d)
	return nil
}

// text words the limit: 60 s.
func (f LimitFlag) text() string {
	return strconv.FormatFloat(time.Duration(f).Seconds(), 'f', -1, 64) + " s"
}

// Of a limited run.
const (
	limitMargin  = 0.03 // share of the time that is left over
	fewestSteps  = 1000 // fewer are trained on smaller photos
	halvingGain  = 1.25 // times as many steps must fit for that: they make up for detail that is seen later
	mostHalvings = 2    // of photos, beyond the recipe's
	smallestSide = 32   // of photos that are halved, in pixels
	halvedShare  = 0.25 // of a shortened schedule's steps on photos of each smaller size, if the recipe has fewer
)

// timeLimit is how a run keeps to its limit.
type timeLimit struct {
	clock clock
	stop  time.Duration // training ends then, by the clock; 0: never
	over  bool          // it did
	then  string        // how to continue the run that it ended
}

// limitChooses reports whether the limit chooses the number of steps: it stays where it was given, and in a run that
// goes on.
func (o *Options) limitChooses() bool {
	return o.TimeLimit > 0 && (o.IterationsFactor > 0 || !o.known("iterations"))
}

func (r *Run) limitChooses() bool {
	return r.Options.limitChooses() && r.saver.from == nil && r.saver.begun == nil && !r.DryRun
}

// chooseSteps makes the schedule one that fits into the time limit.
func (r *Run) chooseSteps(ctx context.Context, h *rehearsal) error {
	if !r.limitChooses() {
		return nil
	}
	full := r.Config
	c, err := r.choose(ctx, h)
	if err != nil {
		return err
	}
	r.limit.stop = max(1, time.Duration(r.TimeLimit)-h.besides.of(h.growth.last(&c.short)).end())
	again := r.shorten(c.recipe, max(c.fit, 1), h.growth)
	switch {
	case c.fit == 0:
		r.warnLater(fmt.Sprintf("time limit %s: %s", r.TimeLimit.text(), noStep(r.TimeLimit, c.least)))
	case float64(r.Config.Iterations) < roughShare*float64(full.Iterations):
		r.warnRough(h, &full, c.step)
	}
	if c.fit > 0 {
		r.tellChoice(1/max(c.step, 1e-9), full.Iterations, again)
		r.warnSchedule()
	}
	// check again: the last step has changed
	return errors.Join(r.refuseFolders(), r.saver.refuseForeign(), r.refuseForeignPictures())
}

// choice is the schedule that a limit chooses.
type choice struct {
	recipe, short recipe.Config // of all steps, and of those that fit
	fit           int           // steps; where it is 0, the run has one
	step          float64       // the mean seconds of one
	least         float64       // seconds that a run of one step takes
}

// choose rehearses, and chooses the schedule.
func (r *Run) choose(ctx context.Context, h *rehearsal) (c choice, err error) {
	full, list := r.Config, []recipe.Config{r.Config}
	began := r.limit.clock.passed()
	if !r.known("num-downscales") && !r.known("resolution-schedule") {
		list = halvings(full, h.smallest())
	}
	if err := h.measure(ctx, full, list[len(list)-1].NumDownscales); err != nil {
		return c, err
	}
	if h.times.schedule(&full, h.growth) <= h.left(&full)*(1-limitMargin) {
		list = []recipe.Config{full}
	}
	for i, cfg := range list {
		fit := h.fit(cfg)
		n := max(fit, 1)
		short := h.growth.ofSteps(cfg, n)
		mean := h.times.schedule(&short, h.growth) / float64(n)
		if i > 0 && mean*halvingGain > c.step {
			break
		}
		c = choice{recipe: cfg, short: short, fit: fit, step: mean, least: began.Seconds() + h.seconds(&short)}
		if n >= min(fewestSteps, full.Iterations) {
			break
		}
	}
	return c, nil
}

// noStep says that not one step fits, and how many seconds a run takes at least.
func noStep(limit LimitFlag, least float64) string {
	text := fmt.Sprintf("not one step fits into %s on this device", limit.text())
	if least = math.Ceil(least); least > time.Duration(limit).Seconds() { // else by the margin alone
		text += "; training takes at least " + cli.Duration(least)
	}
	return text
}

// halvings returns recipes of ever fewer pixels to train on, for schedules that are shortened: the given one, but with
// its smaller photos for halvedShare of the steps each, then photos are halved once more, and have each size for as
// many steps. smallest is the shorter side of the smallest photo.
func halvings(full recipe.Config, smallest int) []recipe.Config {
	longer := full
	most := int(halvedShare * float64(full.Iterations))
	if n := full.NumDownscales; n > 0 && n*most < full.Iterations {
		longer.ResolutionSchedule = max(full.ResolutionSchedule, most)
	}
	list := []recipe.Config{longer}
	for range mostHalvings {
		c := list[len(list)-1]
		if c.NumDownscales++; smallest>>c.NumDownscales < smallestSide {
			break
		}
		c.ResolutionSchedule = max(1, full.Iterations/(c.NumDownscales+1))
		list = append(list, c)
	}
	return list
}

// shorten makes the schedule that of at most n steps by a scaler of steps, the photos' sizes those of cfg, the recipe
// of all steps as it was rehearsed, and splats fewer where they follow the steps. It returns the settings that make the
// same of the recipe; none where the steps that fit are all.
func (r *Run) shorten(cfg recipe.Config, n int, g growth) (again []Change) {
	full, short := r.Config, g.ofSteps(cfg, n)
	smaller := cfg.NumDownscales != full.NumDownscales || cfg.ResolutionSchedule != full.ResolutionSchedule
	if n >= full.Iterations && !smaller {
		return nil
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	scaler := r.StepsScaler
	if n < full.Iterations {
		scaler = shortNumber(scaler * float64(n) / float64(full.Iterations))
	}
	r.scaleSteps(scaler)
	again = []Change{{Setting: "steps-scaler", Value: number(scaler)}}
	switch {
	case r.follows && r.Config.Refinements() == 0: // in so few steps no splat is added, see followSplats
		r.Config.Splats, r.Config.MaxSplats = r.unscaled.Splats, r.unscaled.MaxSplats
	case short.Splats < full.Splats:
		factor := shortNumber(r.SplatsFactor * float64(short.Splats) / float64(r.splatsFor(r.SplatsFactor)))
		r.Config.Splats = r.splatsFor(factor)
		if full.MaxSplats == full.Splats { // it follows, too
			r.Config.MaxSplats = r.Config.Splats
		}
		again = append(again, Change{Setting: splatsFactor, Value: number(factor)})
	}
	if !smaller {
		return again
	}
	// of the schedule before it is scaled, which is what flags give
	share := float64(cfg.ResolutionSchedule) / float64(cfg.Iterations)
	given := recipe.Config{ResolutionSchedule: max(1,
		int(share*float64(r.Config.Iterations)/(scaler*r.stepsShare())))}
	scaled := given.Scaled(scaler).Scaled(r.stepsShare())
	r.Config.NumDownscales, r.Config.ResolutionSchedule = cfg.NumDownscales, scaled.ResolutionSchedule
	return append(again, Change{Setting: "num-downscales", Value: strconv.Itoa(cfg.NumDownscales)},
		Change{Setting: "resolution-schedule", Value: strconv.Itoa(given.ResolutionSchedule)})
}

// shortNumber rounds down to four digits.
func shortNumber(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-3)
	short, err := strconv.ParseFloat(strconv.FormatFloat(math.Floor(x/unit)*unit, 'g', 4, 64), 64)
	if err != nil || short <= 0 {
		return x
	}
	return short
}

// scaleSteps makes the schedule what it would be with another scaler of steps.
func (r *Run) scaleSteps(scaler float64) {
	if r.unscaled.Iterations == 0 { // Resolve was not called
		r.unscaled, r.unscaledAt = r.Config, stepsAt{slices.Clone(r.EvalAt), slices.Clone(r.Checkpoints.SaveAt)}
	}
	scaled := r.unscaled.Scaled(scaler).Scaled(r.stepsShare())
	r.Config.TakeSteps(&scaled, func(string) bool { return true })
	if r.IterationsFactor > 0 {
		r.stretchSteps(len(r.Train), scaler)
	}
	r.EvalAt, r.Checkpoints.SaveAt = slices.Clone(r.unscaledAt.eval), slices.Clone(r.unscaledAt.save)
	r.EvalAt.Scale(scaler)
	r.Checkpoints.SaveAt.Scale(scaler)
	r.saver.asked = slices.Clone(r.Checkpoints.SaveAt)
}

// tellChoice says what the limit has chosen, and how the same model is made without a limit.
func (r *Run) tellChoice(rate float64, full int, again []Change) {
	limit, c := "time limit "+r.TimeLimit.text(), &r.Config
	if len(again) == 0 {
		r.noteLater(fmt.Sprintf("%s: all %s fit, at %s; it changes nothing", limit, cli.Count(full, "step"),
			meter.RateText(rate)))
		return
	}
	also := ""
	for _, change := range again {
		switch change.Setting {
		case splatsFactor:
			also += ", " + cli.Count(c.Splats, "splat")
		case "num-downscales":
			also += fmt.Sprintf(", the first on photos of 1/%d of width and height, %d at each size",
				1<<c.NumDownscales, c.ResolutionSchedule)
		}
	}
	command := r.Again(append([]Change{{Setting: "time-limit", LeftOut: true}}, again...)...)
	r.noteLater(fmt.Sprintf("%s: %d of the recipe's %s fit at %s%s; the same model without a limit: %s", limit,
		c.Iterations, cli.Count(full, "step"), meter.RateText(rate), also, command))
}

// keepLimit sets when training ends where the limit did not choose the steps.
func (r *Run) keepLimit() error {
	if r.TimeLimit == 0 || r.limit.stop != 0 {
		return nil
	}
	b, err := r.estimateBesides(r.Trainer)
	if err != nil {
		return err
	}
	r.limit.stop = max(1, time.Duration(r.TimeLimit)-b.end())
	why := "a resumed run keeps its number of steps"
	if r.saver.from == nil && r.saver.begun == nil {
		why = fault.Setting("iterations") + " sets the number of steps"
	}
	r.noteLater(fmt.Sprintf("time limit %s: %s; the limit ends the run if it takes longer", r.TimeLimit.text(), why))
	return nil
}

// timeIsUp reports whether training has to end, after a step on photos that are halved so many times. It is true once.
func (r *Run) timeIsUp(level int) bool {
	l := &r.limit
	l.clock.trained(level)
	if l.stop == 0 || l.over || l.clock.passed() < l.stop || r.Trainer.Step() >= r.Config.Iterations {
		return false
	}
	l.over = true
	return true
}

// noteOverrun says by how much the run took longer than its limit.
func (r *Run) noteOverrun() {
	if over := r.limit.clock.passed() - time.Duration(r.TimeLimit); r.TimeLimit > 0 && over >= time.Second/10 {
		r.Console.Note(fmt.Sprintf("the run took %.1f s longer than its time limit of %s", over.Seconds(),
			r.TimeLimit.text()))
	}
}

// Limited says how to continue a run that its time limit ended, "" for any other.
func (r *Run) Limited() string { return r.limit.then }

// ErrTimeLimit says that the time limit ended a run that had nothing to keep.
var ErrTimeLimit = fault.Sentinel(fault.ErrInterrupted, "interrupted by the time limit", "")

// interruptedBy is the error of a run that ended before its last step.
func (r *Run) interruptedBy() error {
	if r.limit.over {
		return fmt.Errorf("%w of %s", ErrTimeLimit, r.TimeLimit.text())
	}
	return fault.ErrInterrupted
}
