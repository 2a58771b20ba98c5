package train

import (
	"errors"
	"fmt"
	"reflect"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline/recipe"
)

// Check refuses settings that are out of range, make no sense or contradict each other, before any work.
func (o *Options) Check() error {
	if c := &o.Config; c.MaxSplats > 0 && c.Splats > c.MaxSplats { // Validate, in checkRanges, names no remedy
		return fault.Usagef(fmt.Sprintf("give %s %d or more, or fewer %s", fault.Setting("max-splats"), c.Splats,
			fault.Setting("splats")), "%s: %d splats to end with, the ceiling is %d",
			fault.Named("splats", "max-splats"), c.Splats, c.MaxSplats)
	}
	if err := o.checkRanges(); err != nil {
		return fault.Usagef("see: "+fault.Command("train --help-all"), "%w", err)
	}
	for _, check := range []func() error{o.checkRecipe, o.checkDevices, o.checkMeasuring, o.checkLimit} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkRanges returns the errors of all settings that are out of range.
func (o *Options) checkRanges() error {
	var errs []error
	for i := range recipe.Settings {
		s := &recipe.Settings[i]
		errs = append(errs, s.Check(&o.Config, fault.Setting(cli.Dashed(s.Name)), s.Asked()))
	}
	for i := range factors {
		f := &factors[i]
		value := f.value(&o.Factors)
		number := value.Convert(reflect.TypeFor[float64]()).Float()
		errs = append(errs, f.in.Check(fault.Setting(f.name), value.Interface(), number))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return o.Config.Validate()
}

// checkRecipe refuses a recipe whose parts do not go together.
func (o *Options) checkRecipe() error {
	c, mcmc := &o.Config, o.Config.Strategy == recipe.StrategyMCMC
	follows := o.SplatsFactor > 0 && o.Given != nil && o.Given("splats-factor")
	const still = "%s: without refinement the number of splats stays what the capture has"
	switch {
	case c.RandomBackground && c.BackgroundNoise > 0:
		return fault.Usagef("leave out one of the two", "%s: both choose the background of a step",
			fault.Named("random-background", "background-noise"))
	case c.RefineEvery == 0 && c.Splats > 0:
		return fault.Usagef("give "+fault.Setting("refine-every")+" 100", still, fault.Named("splats", "refine-every"))
	case c.RefineEvery == 0 && follows:
		return fault.Usagef("give "+fault.Setting("refine-every")+" 100", still,
			fault.Named("splats-factor", "refine-every"))
	case mcmc && c.AbsGrad:
		return fault.Usagef("leave out one of the two", "%s: mcmc does not grow by gradients",
			fault.Named(o.strategyBy(), "absgrad"))
	case mcmc && c.ResetEvery > 0:
		return fault.Usagef("give "+fault.Setting("reset-every")+" 0", "%s: mcmc resets no opacities",
			fault.Named(o.strategyBy(), "reset-every"))
	case mcmc && c.MaxSplats == 0 && c.Splats == 0 && o.SplatsFactor == 0:
		return fault.Usagef("give "+fault.Setting("max-splats")+" 1000000",
			"%s: mcmc grows to a fixed number, and 0 is none", fault.Named("strategy", "max-splats"))
	}
	return nil
}

// strategyBy names the setting that chose the strategy.
func (o *Options) strategyBy() string {
	if o.presetBy == "preset" {
		return "preset"
	}
	return "strategy"
}

// checkDevices refuses devices that are no choice, and plans and settings to be printed that are not in effect.
func (o *Options) checkDevices() error {
	switch {
	case o.PrintConfig && o.Checkpoints.Resume != "":
		return fault.Usagef("leave out "+fault.Setting("resume")+"; checkpoints/begun.json in OUT holds the run's settings",
			"%s: the settings are those of a run from the start", fault.Named("print-config", "resume"))
	case o.PlanJSON && !o.DryRun:
		return fault.Usagef("add "+fault.Setting("dry-run"), "%s prints a plan, and none was asked for",
			fault.Setting("json"))
	case o.Given != nil && o.Given("devices") && !namesDevices(o.Devices):
		return fault.Usagef("give all, auto, or indices, UUIDs and PCI addresses as vksplat devices lists them, as in 0,1",
			"%s: %q names no device in one place", fault.Named("devices"), o.Devices)
	case o.Devices != "" && o.Device.Select != "":
		return fault.Usagef("leave out "+fault.Setting("device"), "%s: one names all devices",
			fault.Named("device", "devices"))
	}
	return nil
}

// checkLimit refuses a time limit where nothing is trained.
func (o *Options) checkLimit() error {
	switch {
	case o.TimeLimit != 0 && o.TimeLimit < leastLimit:
		return fault.Usagef("give 1s or more, as in 90s", "%s: %s is no time that a run may take",
			fault.Named("time-limit"), &o.TimeLimit)
	case o.TimeLimit > 0 && o.PrintConfig:
		return fault.Usagef("leave it out; a run with a limit says by which settings the same model is made",
			"%s: steps are chosen by their speed, and none is trained", fault.Named("time-limit", "print-config"))
	}
	return nil
}

// checkResume refuses changes to be accepted where nothing is resumed. It is no part of Check: the blocks of a plan are
// resumed without being told to.
func (o *Options) checkResume() error {
	if c := &o.Checkpoints; c.Accept && c.Resume == "" {
		return fault.Usagef("add "+fault.Setting("resume")+" to continue the run in OUT, or give "+
			fault.Setting("overwrite")+" to replace it",
			"%s needs %s", fault.Named("accept-changes"), fault.Setting("resume"))
	}
	return nil
}

// checkMeasuring refuses scores that nothing is measured for.
func (o *Options) checkMeasuring() error {
	if o.Given != nil {
		given := func(flag string) bool { // earlier versions took a spacing beside a list, which decides alone
			return o.Given(flag) && !(flag == "test-every" && o.Checkpoints.Resume != "")
		}
		if err := captured.CheckSplit(o.TestList, given); err != nil {
			return err
		}
	}
	switch {
	case len(o.EvalAt) > 0 && !o.Eval:
		return fault.Usagef("give "+fault.Setting("eval")+", which holds photos out",
			"%s: no photo is held out to measure on", fault.Named("eval-at"))
	case o.TestEvery < 2:
		return fault.Usagef("give 2 or more", "%s: %d leaves no photo to train on", fault.Named("test-every"),
			o.TestEvery)
	case o.MetricsEvery < 1:
		return fault.Usagef("give 1 or more", "%s: %d is no number of steps", fault.Named("metrics-every"),
			o.MetricsEvery)
	}
	return nil
}
