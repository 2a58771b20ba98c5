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
		return fault.Usagef("give 1s or more, as in 90s, 5m or 1h30m", "%q is not a time limit", s)
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

// limiter chooses the steps of a run with a time limit, and ends it.
type limiter struct {
	*setup
	timeLimit
	place     *place
	asked     func(saves cli.Steps) // has the saver keep the checkpoints of these steps
	predicted *prediction           // of a dry run with a time limit, else nil
}

// limitChooses reports whether the limit chooses the number of steps: it stays where it was given, and in a run that
// goes on.
func (o *Options) limitChooses() bool {
	return o.TimeLimit > 0 && (o.IterationsFactor > 0 || !o.Asked("iterations"))
}

func (lim *limiter) limitChooses() bool {
	return lim.Options.limitChooses() && lim.prev.from == nil && lim.prev.begun == nil && !lim.DryRun
}

// chooseSteps makes the schedule one that fits into the time limit.
func (lim *limiter) chooseSteps(ctx context.Context, h *rehearsal) error {
	if !lim.limitChooses() {
		return nil
	}
	full := lim.Config
	c, err := lim.choose(ctx, h)
	if err != nil {
		return err
	}
	lim.stop = max(1, time.Duration(lim.TimeLimit)-h.besides.of(h.growth.last(&c.short)).cut())
	again := lim.shorten(c.recipe, max(c.fit, 1), h.growth)
	switch {
	case c.fit == 0:
		lim.warnLater(fmt.Sprintf("time limit %s: %s", lim.TimeLimit.text(), noStep(lim.TimeLimit, c.least)))
	case float64(lim.Config.Iterations) < roughShare*float64(full.Iterations):
		lim.warnRough(h, &full, c.step)
	}
	if c.fit > 0 {
		lim.tellChoice(1/max(c.step, 1e-9), full.Iterations, again)
		lim.apply(scheduleRules(lim.Options, true))
	}
	// check again: the last step has changed
	return errors.Join(lim.place.refuseFolders(), lim.place.refuseForeign(),
		lim.place.refuseForeignPictures(lim.pictureNames()))
}

// choice is the schedule that a limit chooses.
type choice struct {
	recipe, short recipe.Config // of all steps, and of those that fit
	fit           int           // steps; where it is 0, the run has one
	step          float64       // the mean seconds of one
	least         float64       // seconds that a run of one step takes
}

// choose rehearses, and chooses the schedule.
func (lim *limiter) choose(ctx context.Context, h *rehearsal) (c choice, err error) {
	full, list := lim.Config, []recipe.Config{lim.Config}
	began := lim.clock.passed()
	if !lim.Asked("num-downscales") && !lim.Asked("resolution-schedule") {
		list = halvings(full, shorterSide(h.cams))
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
func (lim *limiter) shorten(cfg recipe.Config, n int, g growth) (again []Change) {
	full, short := lim.Config, g.ofSteps(cfg, n)
	smaller := cfg.NumDownscales != full.NumDownscales || cfg.ResolutionSchedule != full.ResolutionSchedule
	if n >= full.Iterations && !smaller {
		return nil
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	scaler := lim.StepsScaler
	if n < full.Iterations {
		scaler = shortNumber(scaler * float64(n) / float64(full.Iterations))
	}
	l := &limited{scaler: scaler, splatsFactor: lim.SplatsFactor,
		values: map[string]any{"steps_scaler": nil}}
	lim.choices.limited = l
	lim.configure()
	lim.scaleStops(scaler)
	again = []Change{{Setting: "steps-scaler", Value: number(scaler)}}
	if lim.Config.Refinements() > 0 && short.Splats < full.Splats { // else no splat is added in so few steps
		splatsFor := lim.choices.followed.Splats
		l.splatsFactor = shortNumber(lim.SplatsFactor * float64(short.Splats) / float64(splatsFor(lim.SplatsFactor)))
		l.values[recipe.SplatsFactor] = nil
		again = append(again, Change{Setting: cli.Dashed(recipe.SplatsFactor), Value: number(l.splatsFactor)})
	}
	if smaller {
		// of the schedule before it is scaled, which is what flags give
		share := float64(cfg.ResolutionSchedule) / float64(cfg.Iterations)
		schedule := max(1, int(share*float64(lim.Config.Iterations)/(scaler*lim.stepsShare())))
		l.values["num_downscales"], l.values["resolution_schedule"] = cfg.NumDownscales, schedule
		again = append(again, Change{Setting: "num-downscales", Value: strconv.Itoa(cfg.NumDownscales)},
			Change{Setting: "resolution-schedule", Value: strconv.Itoa(schedule)})
	}
	lim.configure()
	return again
}

// limited is the layer of settings of a time limit: what flags would give for the same schedule.
type limited struct {
	scaler, splatsFactor float64
	values               map[string]any
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

// scaleStops makes the steps that are measured and saved those of another scaler of steps.
func (lim *limiter) scaleStops(scaler float64) {
	if !isResolved(lim.Options) {
		lim.unscaledAt = stepsAt{slices.Clone(lim.EvalAt), slices.Clone(lim.Checkpoints.SaveAt)}
	}
	lim.EvalAt, lim.Checkpoints.SaveAt = slices.Clone(lim.unscaledAt.eval), slices.Clone(lim.unscaledAt.save)
	lim.EvalAt.Scale(scaler)
	lim.Checkpoints.SaveAt.Scale(scaler)
	lim.asked(slices.Clone(lim.Checkpoints.SaveAt))
}

// tellChoice says what the limit has chosen, and how the same model is made without a limit.
func (lim *limiter) tellChoice(rate float64, full int, again []Change) {
	limit, c := "time limit "+lim.TimeLimit.text(), &lim.Config
	if len(again) == 0 {
		lim.noteLater(fmt.Sprintf("%s: all %s fit, at %s; it changes nothing", limit, cli.Count(full, "step"),
			meter.RateText(rate)))
		return
	}
	also := ""
	for _, change := range again {
		switch change.Setting {
		case cli.Dashed(recipe.SplatsFactor):
			also += ", " + cli.Count(c.Splats, "splat")
		case "num-downscales":
			also += fmt.Sprintf(", the first on photos of 1/%d of width and height, %d at each size",
				1<<c.NumDownscales, c.ResolutionSchedule)
		}
	}
	gone := []Change{{Setting: "time-limit", LeftOut: true}, {Setting: "overwrite", LeftOut: true}}
	command := lim.Again(append(gone, again...)...)
	lim.noteLater(fmt.Sprintf("%s: %d of the recipe's %s fit at %s%s; the same model without a limit: %s", limit,
		c.Iterations, cli.Count(full, "step"), meter.RateText(rate), also, command))
}

// keepLimit sets when training ends where the limit did not choose the steps.
func (lim *limiter) keepLimit() error {
	if lim.TimeLimit == 0 || lim.stop != 0 {
		return nil
	}
	b, err := lim.estimateBesides(lim.Trainer)
	if err != nil {
		return err
	}
	lim.stop = max(1, time.Duration(lim.TimeLimit)-b.cut())
	why := "a resumed run keeps its number of steps"
	if lim.prev.from == nil && lim.prev.begun == nil {
		why = fault.Setting("iterations") + " sets the number of steps"
	}
	lim.noteLater(fmt.Sprintf("time limit %s: %s; the limit ends the run if it takes longer", lim.TimeLimit.text(),
		why))
	return nil
}

// timeIsUp reports whether training has to end, after a step on photos that are halved level times. It is true once.
func (lim *limiter) timeIsUp(level int) bool {
	l := &lim.timeLimit
	l.clock.trained(level)
	if l.stop == 0 || l.over || l.clock.passed() < l.stop || lim.Trainer.Step() >= lim.Config.Iterations {
		return false
	}
	l.over = true
	return true
}

// noteOverrun says by how much the run took longer than its limit.
func (lim *limiter) noteOverrun() {
	if over := lim.clock.passed() - time.Duration(lim.TimeLimit); lim.TimeLimit > 0 && over >= time.Second/10 {
		lim.console.Note(fmt.Sprintf("the run took %.1f s longer than its time limit of %s", over.Seconds(),
			lim.TimeLimit.text()))
	}
}

// ErrTimeLimit says that the time limit ended a run that had nothing to keep.
var ErrTimeLimit = fault.Sentinel(fault.ErrInterrupted, "interrupted by the time limit", "")

// interruptedBy is the error of a run that ended before its last step.
func (lim *limiter) interruptedBy() error {
	if lim.over {
		return fmt.Errorf("%w of %s", ErrTimeLimit, lim.TimeLimit.text())
	}
	return fault.ErrInterrupted
}
