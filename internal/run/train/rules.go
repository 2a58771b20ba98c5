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
// and of the plan. A row has when it applies, how grave that is and what it says.

// rule is a row: a refusal, if it has an error, or else a notice.
type rule struct {
	when bool
	cli.Notice
	refusal error
}

func refuse(when bool, hint, format string, args ...any) rule {
	return rule{when: when, refusal: fault.Usagef(hint, format, args...)}
}

func warn(when bool, format string, args ...any) rule {
	return rule{when: when, Notice: cli.Notice{Kind: cli.KindWarning, Text: fmt.Sprintf(format, args...)}}
}

func note(when bool, format string, args ...any) rule {
	return rule{when: when, Notice: cli.Notice{Kind: cli.KindNote, Text: fmt.Sprintf(format, args...)}}
}

// apply says what applies, up to the first refusal, which it returns.
func apply(rules []rule, say func(cli.Notice)) error {
	for _, r := range rules {
		switch {
		case !r.when:
		case r.refusal != nil:
			return r.refusal
		default:
			say(r.Notice)
		}
	}
	return nil
}

// recipeRules refuse a recipe whose parts do not go together.
func recipeRules(o *Options) []rule {
	c, mcmc := &o.Config, o.Config.Strategy == recipe.StrategyMCMC
	const still = "%s: without refinement, the number of splats stays that of the capture"
	refining, strategy := "give "+fault.Setting("refine-every")+" 100", "strategy"
	if o.presetBy() == "preset" { // which chose the strategy
		strategy = "preset"
	}
	return []rule{
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
func optionRules(o *Options) []rule {
	given := func(flag string) bool { // earlier versions took a spacing beside a list, which decides alone
		return o.Given(flag) && !(flag == "test-every" && o.Checkpoints.Resume != "")
	}
	split := captured.CheckSplit(o.TestList, given)
	return []rule{
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
		{when: split != nil, refusal: split},
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
func resumeRules(o *Options) []rule {
	return []rule{refuse(o.Checkpoints.Accept && o.Checkpoints.Resume == "",
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
	masked := slices.ContainsFunc(c.Cameras, func(cam scene.Camera) bool { return cam.Mask != "" })
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
func idleRules(o *Options, c *scene.Capture) (list []rule) {
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
func scheduleRules(o *Options, chosen bool) []rule {
	c := &o.Config
	full, first := int64(c.NumDownscales)*int64(c.ResolutionSchedule), 0
	if c.RefineEvery > 0 {
		first = (c.RefineStart/c.RefineEvery + 1) * c.RefineEvery
	}
	list := []rule{
		warn(!chosen && full > 0 && full >= int64(c.Iterations),
			"training ends before it comes to photos of full size: step %d of %d (lower %s, it is %d, or %s)", full+1,
			c.Iterations, fault.Setting("resolution-schedule"), c.ResolutionSchedule, fault.Setting("num-downscales")),
		// without refinement it is meant: refine-stop is 0
		warn(c.RefineEvery > 0 && c.RefineStop > 0 && first >= c.RefineStop,
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

// poseRules refuse what poses are not refined with.
func poseRules(o *Options, cams []scene.Camera, devices int) []rule {
	c, poses := &o.Config, fault.Setting("refine-poses")
	on, part := c.RefinePoses, ""
	if i := slices.IndexFunc(cams, func(c scene.Camera) bool { return c.Photo != "" }); i >= 0 {
		part = cams[i].Photo
	}
	return []rule{
		refuse(on && o.TimeLimit > 0, "leave out one of them",
			"%s does not work with %s: how long its trial takes is not predicted", poses, fault.Setting("time-limit")),
		refuse(on && o.Divided != nil, "refine poses of the whole capture first, and divide that",
			"%s does not work with blocks: each would move its photos independently", poses),
		refuse(on && c.PoseStart >= c.Iterations,
			fmt.Sprintf("give %s less than %d", fault.Setting("pose-start"), c.Iterations),
			"%s begins after step %d, and training ends with %d", poses, c.PoseStart, c.Iterations),
		refuse(on && devices > 1, "give one device, or leave out "+poses,
			"%s works on one device alone, %d were given", poses, devices),
		refuse(on && part != "", "leave out "+poses,
			"%s does not work with photos that become several pictures, as the panorama %s does", poses, part),
	}
}

// lensRules refuse what photos are not trained on as taken with.
func lensRules(o *Options, devices int) []rule {
	c, lens := &o.Config, fault.Setting("native-lens")
	other := func(when bool, name string) rule {
		return refuse(c.NativeLens && when, "leave out one of them", "%s: they do not work together",
			fault.Named("native-lens", name))
	}
	return []rule{
		other(c.RefinePoses, "refine-poses"),
		other(c.Robust, "robust"),
		refuse(c.NativeLens && (o.Depth.used() || o.Normal.used()), "leave out one of them",
			"%s: known depths and normals are of pictures without distortion", fault.Named("native-lens")),
		refuse(c.NativeLens && devices > 1, "give one device, or leave out "+lens,
			"%s works on one device alone, %d were given", lens, devices),
	}
}

// planRules warn of a model that cannot become as large as was asked for, and of a cache that holds nothing. A run that
// is resumed had the warning at its start.
func planRules(o *Options, p *pipeline.Plan, resumed bool, memory string) []rule {
	c := &o.Config
	limited := !resumed && c.Splats == 0 && p.Ceiling < c.MaxSplats &&
		(c.Refinements() > 0 || !o.isResolved() || o.Asked("max-splats"))
	return []rule{
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
