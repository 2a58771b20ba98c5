package train

import (
	"fmt"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// Refusals and warnings are rows of the tables in this file: of the options, of the capture with them, of the schedule
// and of the plan. A row has when it applies and what it says. A table has refusals or notices, but not both.

// refusal is a row of the former.
type refusal struct {
	when bool
	err  error
}

func refuse(when bool, hint, format string, args ...any) refusal {
	return refusal{when, fault.Usagef(hint, format, args...)}
}

// firstOf returns the error of the first refusal that applies.
func firstOf(rules []refusal) error {
	for _, r := range rules {
		if r.when {
			return r.err
		}
	}
	return nil
}

// notice is a row of the latter.
type notice struct {
	when bool
	cli.Notice
}

func warn(when bool, format string, args ...any) notice {
	return notice{when, cli.Notice{Kind: cli.KindWarning, Text: fmt.Sprintf(format, args...)}}
}

func note(when bool, format string, args ...any) notice {
	return notice{when, cli.Notice{Kind: cli.KindNote, Text: fmt.Sprintf(format, args...)}}
}

// recipeRules refuse a recipe whose parts do not go together.
func recipeRules(o *Options) []refusal {
	c, mcmc := &o.Config, o.Config.Strategy == recipe.StrategyMCMC
	const still = "%s: without refinement, the number of splats stays that of the capture"
	refining, strategy := "give "+fault.Setting("refine-every")+" 100", "strategy"
	if o.presetBy() == "preset" { // which chose the strategy
		strategy = "preset"
	}
	return []refusal{
		refuse(c.RandomBackground && c.BackgroundNoise > 0, "leave out one of the two",
			"%s: both choose the background of a step", fault.Named("random-background", "background-noise")),
		refuse(c.RefineEvery == 0 && c.Splats > 0, refining, still, fault.Named("splats", "refine-every")),
		refuse(c.RefineEvery == 0 && o.SplatsFactor > 0 && o.Given("splats-factor"), refining, still,
			fault.Named("splats-factor", "refine-every")),
		refuse(mcmc && c.AbsGrad, "leave out one of the two", "%s: mcmc does not grow by gradients",
			fault.Named(strategy, "absgrad")),
		refuse(mcmc && c.ResetEvery > 0, "give "+fault.Setting("reset-every")+" 0", "%s: mcmc resets no opacities",
			fault.Named(strategy, "reset-every")),
		refuse(mcmc && c.MaxSplats == 0 && c.Splats == 0 && o.SplatsFactor == 0,
			"give "+fault.Setting("max-splats")+" 1000000", "%s: mcmc grows to a fixed number, and 0 is none",
			fault.Named("strategy", "max-splats")),
	}
}

// optionRules refuse what makes no sense or cannot be done.
func optionRules(o *Options) []refusal {
	given := func(flag string) bool { // earlier versions took a spacing beside a list, which decides alone
		return o.Given(flag) && !(flag == "test-every" && o.Checkpoints.Resume != "")
	}
	split := captured.CheckSplit(o.TestList, given)
	return []refusal{
		refuse(o.PrintConfig && o.Checkpoints.Resume != "",
			"leave out "+fault.Setting("resume")+"; checkpoints/begun.json in OUT holds the run's settings",
			"%s: the settings are those of a run from the start", fault.Named("print-config", "resume")),
		refuse(o.PlanJSON && !o.DryRun, "add "+fault.Setting("dry-run"), "%s prints a plan, and none was asked for",
			fault.Setting("json")),
		refuse(o.Given("devices") && !namesDevices(o.Devices),
			"give all, auto, or indices, UUIDs and PCI addresses as vksplat devices lists them, as in 0,1",
			"%s: %q has an entry that is not a device", fault.Named("devices"), o.Devices),
		refuse(o.Devices != "" && o.Device.Select != "", "leave out "+fault.Setting("device"),
			"%s: only one can name the devices", fault.Named("device", "devices")),
		{split != nil, split},
		refuse(len(o.EvalAt) > 0 && !o.Eval, "give "+fault.Setting("eval")+", which holds photos out",
			"%s: no photo is held out to measure on", fault.Named("eval-at")),
		refuse(o.TestEvery < 2, "give 2 or more", "%s: %d leaves no photo to train on", fault.Named("test-every"),
			o.TestEvery),
		refuse(o.MetricsEvery < 1, "give 1 or more", "%s: %d is not a number of steps", fault.Named("metrics-every"),
			o.MetricsEvery),
		refuse(o.TimeLimit != 0 && o.TimeLimit < leastLimit, "give 1s or more, as in 90s",
			"%s: %s is not a time limit", fault.Named("time-limit"), &o.TimeLimit),
		refuse(o.TimeLimit > 0 && o.PrintConfig,
			"leave it out; a run with a limit says by which settings the same model is made",
			"%s: steps are chosen by their speed, but none is trained", fault.Named("time-limit", "print-config")),
	}
}

// resumeRules refuse changes to be accepted where nothing is resumed. Blocks of a plan are resumed without being asked
// for it.
func resumeRules(o *Options) []refusal {
	return []refusal{refuse(o.Checkpoints.Accept && o.Checkpoints.Resume == "",
		"add "+fault.Setting("resume")+" to continue the run in OUT, or give "+fault.Setting("overwrite")+
			" to replace it", "%s needs %s", fault.Named("accept-changes"), fault.Setting("resume"))}
}

// need is the condition under which a setting has an effect.
type need struct {
	setting string
	without string
	met     bool
}

// needsOf lists the flags whose effect depends on other flags, or on what the capture holds, and then the training
// settings whose effect depends on others.
func needsOf(o *Options, c *scene.Capture) []need {
	random, atPoints := o.Init.Random(c), startsAtPoints(o)
	masked := captured.AnyMasked(c.Cameras)
	known := fault.Named("depth-loss", "depths", "depth-points")
	list := []need{
		{"test-every", fault.Setting("eval"), o.Eval},
		{"model", "a capture of COLMAP", c.Format == scene.FormatColmap},
		{"invert-masks", "masks, and none is found", masked},
		{"grow-masks", "masks, and none is found", masked},
		{"undo-applied-transform", "an applied_transform in transforms.json", c.Applied != nil},
		{"splats-factor", fault.Setting("splats") + " 0", o.Config.Splats == 0},
		{"init-points", fault.Setting("init") + " random", random},
		{"sky", "the points of a capture", atPoints && !random || !o.Config.Sky},
		{"sky", "a capture that is trained as a whole", o.Divided == nil || !o.Config.Sky},
		{"depth-lambda", known, o.Depth.used()}, {"depth-lambda-final", known, o.Depth.used()},
		{"depth-init", known, o.Depth.used()}, {"depth-init", fault.Setting("init") + " points", atPoints},
		{"depth-kind", fault.Setting("depths"), o.Depth.Maps != ""},
		{"depth-unit", fault.Setting("depths"), o.Depth.Maps != ""},
		{"normal-lambda", fault.Setting("normals"), o.Normal.used()},
		{"normal-lambda-final", fault.Setting("normals"), o.Normal.used()},
		{"normal-frame", fault.Setting("normals"), o.Normal.used()},
		{"image-cache-size", fault.Setting("image-cache"), o.ImageCache != ""},
	}
	for _, s := range recipe.Settings {
		for _, n := range s.Needs {
			list = append(list, need{cli.Dashed(s.Name), cli.WithSettings(n.String()), n.Met(&o.Config)})
		}
	}
	return list
}

// idleRules warn of what the caller gave and has no effect. Keys of a configuration file are not looked at:
// --print-config writes all of them.
func idleRules(o *Options, c *scene.Capture) (list []notice) {
	warned := map[string]bool{}
	for _, n := range needsOf(o, c) {
		if !n.met && o.Given(n.setting) && !warned[n.setting] {
			warned[n.setting] = true
			list = append(list, warn(true, "%s", cli.NoEffect(n.setting, n.without)))
		}
	}
	return list
}

// scheduleRules warn of a schedule that leaves something out. chosen is one that a time limit chose: it has the steps
// that fit.
func scheduleRules(o *Options, chosen bool) []notice {
	c := &o.Config
	full, first := int64(c.NumDownscales)*int64(c.ResolutionSchedule), 0
	if c.RefineEvery > 0 {
		first = (c.RefineStart/c.RefineEvery + 1) * c.RefineEvery
	}
	never := c.RefineEvery > 0 && c.RefineStop > 0 && first >= c.RefineStop
	asked := slices.ContainsFunc([]string{"refine-every", "refine-start", "refine-stop"}, o.Asked)
	list := []notice{
		warn(!chosen && full > 0 && full >= int64(c.Iterations),
			"training ends before it comes to photos of full size: step %d of %d (lower %s, it is %d, or %s)", full+1,
			c.Iterations, fault.Setting("resolution-schedule"), c.ResolutionSchedule, fault.Setting("num-downscales")),
		// without refinement it is meant: refine-stop is 0
		warn(never && !asked, "%s are too few to refine the model: it keeps the splats that it begins with",
			cli.Count(c.Iterations, "step")),
		warn(never && asked,
			"the model is never refined: no multiple of %s (%d) is above %s (%d) and below %s (%d)",
			fault.Setting("refine-every"), c.RefineEvery, fault.Setting("refine-start"), c.RefineStart,
			fault.Setting("refine-stop"), c.RefineStop),
		warn(c.Appearance() && c.AppearanceStart >= c.Iterations,
			"neither exposure, white balance nor vignetting is learnt: training ends with step %d (lower %s, it is %d)",
			c.Iterations, fault.Setting("appearance-start"), c.AppearanceStart),
	}
	for _, at := range []struct {
		setting string
		steps   cli.Steps
	}{{"eval-at", o.EvalAt}, {"save-at", o.Checkpoints.SaveAt}} {
		if i := slices.IndexFunc(at.steps, func(s int) bool { return s > c.Iterations }); i >= 0 {
			list = append(list, warn(true, "%s %d and later ones are beyond the last step, %d, and left out",
				fault.Setting(at.setting), at.steps[i], c.Iterations))
		}
	}
	return list
}

// refineRules refuse what cameras are not refined with.
func refineRules(o *Options, cams []scene.Camera, devices int) []refusal {
	c, refine := &o.Config, fault.Setting("refine-cameras")
	on, part, moved := c.RefineCameras, "", ""
	if i := slices.IndexFunc(cams, func(c scene.Camera) bool { return c.Photo != "" }); i >= 0 {
		part = cams[i].Photo
	}
	if i := slices.IndexFunc(cams, func(c scene.Camera) bool { return c.Moved() }); i >= 0 {
		moved = cams[i].Name
	}
	return []refusal{
		refuse(on && o.TimeLimit > 0, "leave out one of them",
			"%s does not work with %s: how long its trial takes is not predicted", refine, fault.Setting("time-limit")),
		refuse(on && c.PoseStart >= c.Iterations,
			fmt.Sprintf("give %s less than %d", fault.Setting("pose-start"), c.Iterations),
			"%s begins after step %d, and training ends with %d", refine, c.PoseStart, c.Iterations),
		refuse(on && devices > 1, "give one device, or leave out "+refine,
			"%s works on one device alone, %d were given", refine, devices),
		refuse(on && part != "", "leave out "+refine,
			"%s does not work with photos that become several pictures, as the panorama %s does", refine, part),
		refuse(on && c.NativeLens && moved != "", "leave out one of them",
			"%s: a camera that moves while its photo is read out, as that of %s does, is not refined",
			fault.Named("native-lens", "refine-cameras"), moved),
	}
}

// lensRules refuse what photos are not trained on as taken with.
func lensRules(o *Options, devices int) []refusal {
	c, lens := &o.Config, fault.Setting("native-lens")
	other := func(when bool, name string) refusal {
		return refuse(c.NativeLens && when, "leave out one of them", "%s: they do not work together",
			fault.Named("native-lens", name))
	}
	return []refusal{
		other(c.Robust, "robust"),
		refuse(c.NativeLens && (o.Depth.used() || o.Normal.used()), "leave out one of them",
			"%s: known depths and normals are of pictures without distortion", fault.Named("native-lens")),
		refuse(c.NativeLens && devices > 1, "give one device; what is begun with "+lens+"=false trains on several",
			"photos are trained on as taken, which works on one device alone: %d were given", devices),
	}
}

// planRules warn of a model that cannot become as large as was asked for, and of a cache that holds nothing. A run that
// is resumed had the warning at its start.
func planRules(o *Options, p *pipeline.Plan, resumed bool, memory string) []notice {
	c := &o.Config
	limited := !resumed && c.Splats == 0 && p.Ceiling < c.MaxSplats &&
		(c.Refinements() > 0 || !isResolved(o) || o.Asked("max-splats"))
	return []notice{
		warn(o.PhotoVRAM > 0 && p.Device.PhotoFits == 0,
			"%s %s holds no photo: each is copied to the device for its step", fault.Setting("photo-vram"),
			pipeline.BytesText(o.PhotoVRAM)),
		note(p.Shares != nil, "the devices have unequal memory: the model may grow to %s splats on them",
			cli.SharesText(p.Shares)),
		warn(limited, "memory has room for %s, fewer than %s %d: the model stops growing there (raise %s, use smaller "+
			"photos with %s, or %s mixed)", cli.Count(p.Ceiling, "splat"), fault.Setting("max-splats"), c.MaxSplats,
			fault.Setting(memory), fault.Setting("downscale"), fault.Setting("precision")),
	}
}
