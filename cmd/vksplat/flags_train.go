package main

import (
	"vksplat/internal/fault"
	"vksplat/internal/run/live"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/report"
	"vksplat/internal/run/train"
	"vksplat/pipeline/recipe"
)

// Whose defaults this command's own flags have, in the words of recipe.Sources.
const (
	from3DGS   = "3DGS"
	fromINRIA  = "INRIA"
	fromGsplat = "gsplat"
	fromBrush  = "Brush"
)

// newTrainOptions returns the defaults, with what the flags are called.
func newTrainOptions() *train.Options {
	o := train.NewOptions()
	o.NewViewer = live.New
	o.CommandLine = train.CommandLine{Chapters: settingChapters, FlagNames: trainFlagNames}
	return o
}

// trainFlagNames are the names by which a flag of train is given.
func trainFlagNames(flag string) (names []string, letter string) {
	opt := find(trainTable(train.NewOptions()), flag)
	return append([]string{opt.name}, opt.aliases...), opt.short
}

// settingChapters lists all settings by chapter and marks those that are not the default.
func settingChapters(o *train.Options) []report.Chapter {
	var list []report.Chapter
	standard := trainTable(train.NewOptions())
	for i, g := range trainTable(o) {
		ch := report.Chapter{Title: g.title}
		for k, o := range g.options {
			if o.flag {
				continue
			}
			was := standard[i].options[k].value.String()
			row := report.Row{Key: o.key(), Value: o.value.String(), Default: was}
			row.Changed = row.Value != was
			ch.Rows = append(ch.Rows, row)
		}
		if len(ch.Rows) > 0 {
			list = append(list, ch)
		}
	}
	return list
}

// trainTable lists all options of train by chapter. Their defaults are what o holds.
func trainTable(o *train.Options) []optionGroup {
	device := settingsGroup(o, "Device and memory", nil)
	device.options = append(trainDeviceOptions(o), device.options...)
	return []optionGroup{
		{"Input and output", fileOptions(o)},
		settingsGroup(o, "Training", map[string][]option{"iterations": stepOptions(o), "carve": initOptions(o)}),
		settingsGroup(o, "How splats are added and removed", map[string][]option{"splats": followOptions(o)}),
		settingsGroup(o, "Refinement in detail", nil),
		settingsGroup(o, "Loss", nil),
		settingsGroup(o, "Learning rates", nil),
		{"Checkpoints", checkpointTable(&o.Checkpoints)},
		device,
		{"What is shown and recorded", showOptions(o)},
		{"Settings from files", configOptions(o)},
	}
}

func fileOptions(o *train.Options) []option {
	list := []option{
		text(&o.Out, "model-path",
			"write to the folder `OUT` (required)").letter("m").essential().flagOnly().isFolder().also("result-dir"),
		other(&o.Block, "block", "train block `K` alone, of the plan that SCENE is; see vksplat partition").flagOnly(),
		truth(&o.ShareSteps, "share-steps",
			"train each block of a plan for its photos' share of the steps, with higher rates to match, and not for "+
				"all of them").flagOnly(),
		truth(&o.Eval, "eval", "hold every 8th photo out and measure on those").from(from3DGS).essential(),
		stepList(&o.EvalAt, "eval-at",
			"with --eval, measure after the steps `N,N,...` too").essential().also("eval-steps", "test-iterations"),
		integer(&o.TestEvery, "test-every", "with --eval, hold every `N`th photo out").from(from3DGS),
		text(&o.TestList, "test-list", "hold out the photos that `FILE` names, one a line, and measure on those"),
	}
	list = append(list, loadTable(&o.Load)...)
	return append(list,
		other(&o.Exports, "export",
			"at the end, convert the model to `FILE` too, in the format that its name says, as in model.spz; may be "+
				"given again, see docs/convert.md").essential().flagOnly(),
		other(&o.Origin, "origin",
			"what to subtract from written coordinates: auto (only far from zero: above 1e4, or 1e3 times the "+
				"distance of the cameras), keep (nothing) or x,y,z").oneOf("auto", "keep"))
}

func stepOptions(o *train.Options) []option {
	return []option{
		float(&o.StepsScaler, "steps-scaler",
			"multiply every number of steps by `X`, given or default").from(fromGsplat).essential(),
	}
}

func initOptions(o *train.Options) []option {
	return []option{
		other(&train.InitFlag{Of: &o.Init}, "init",
			"begin with points (the capture's), random ones, or ply:FILE (a PLY file of points, or a model of any "+
				"format that convert reads)").
			from(fromGsplat).essential().oneOf("points", "random", "ply:").also("init-type"),
		integer(&o.Init.Points, "init-points",
			"number `N` of random points, with --init random").from(fromGsplat).also("init-num-pts"),
		float(&o.Init.Grid, "init-grid",
			"make one point of those in each cell of edge `X`, in the capture's units; 0: keep all").essential(),
	}
}

func followOptions(o *train.Options) []option {
	return []option{
		float(&o.SplatsFactor, "splats-factor",
			"splats to end with, over the root of (pixels of the training photos times points of the "+
				"capture), unless --splats is given and up to --max-splats: `X` (0: off)").upTo(train.MostSplatsFactor),
	}
}

func trainDeviceOptions(o *train.Options) []option {
	list := append(deviceOptions(&o.Device), text(&o.Devices, "devices",
		"`LIST` of devices that train the scene together, each with a share of its splats and a view of its own in "+
			"every step: all (that the environment gives, as in CUDA_VISIBLE_DEVICES), auto (several of one kind "+
			"where that pays, see docs/devices.md), or indices, UUIDs and PCI addresses separated by commas").
		essential().flagOnly())
	return append(list, memoryTable(&o.MemoryFlags)...)
}

func showOptions(o *train.Options) []option {
	return []option{
		chosen(&o.Progress, "progress",
			"`HOW`: auto is a bar on a terminal and plain lines elsewhere; bar, plain, json (an object a line) and "+
				"none are that",
			meter.Auto, meter.Bar, meter.Plain, meter.JSON, meter.None).essential(),
		integer(&o.MetricsEvery, "metrics-every",
			"a line of metrics.jsonl, and of TensorBoard's curves, every `N` steps").also("tb-every"),
		truth(&o.Tensorboard, "tensorboard", "write curves and held-out pictures to OUT/tensorboard").essential(),
		text(&o.Viewer.Address, "viewer",
			"show the training in the browser: --viewer alone at any free port of this machine, --viewer=`PORT` at "+
				"that one (see docs/view.md)").orAlone("0").essential().flagOnly(),
		text(&o.Viewer.Server.Host, "host",
			"with --viewer, listen at `ADDR` of this machine, for others to see it (default: 127.0.0.1, for this "+
				"machine alone)").flagOnly(),
		text(&o.Viewer.Server.CertFile, "tls-cert",
			"with --viewer, encrypt with the certificate in `FILE`, PEM").flagOnly(),
		text(&o.Viewer.Server.KeyFile, "tls-key",
			"with --viewer, the certificate's private key, `FILE`, PEM").flagOnly(),
		text(&o.Preview.File, "preview",
			"leave a small picture of the model in `FILE`, JPEG, every half minute: of the first held-out view, or "+
				"else the first").flagOnly(),
		float(&o.Preview.Every, "preview-every",
			"with --preview, a picture every `SECONDS` in place of 30; less often where pictures would take more "+
				"than 1 % of the time").flagOnly(),
		truth(&o.Report, "report", "write OUT/report.html at the end: curves, held-out photos, settings"),
	}
}

func configOptions(o *train.Options) []option {
	return []option{
		chosen(&o.Preset, "preset", "start from the settings `NAME` below", presetNames()...).essential(),
		text(&o.ConfigFile, "config",
			"read settings from the TOML file `FILE`; flags go before it, it goes before a preset").
			essential().flagOnly(),
		truth(&o.PrintConfig, "print-config",
			"print all settings in effect as such a file, and stop").essential().flagOnly(),
		truth(&o.Help, "help", "help on the flags that most people need, and stop").letter("h").essential().flagOnly(),
		truth(&o.HelpAll, "help-all", "help on every flag, and stop").essential().flagOnly(),
	}
}

// checkTrainOptions reports settings that make no sense or contradict each other, before any work.
func checkTrainOptions(o *train.Options) error {
	c := &o.Config
	if err := checkRanges(trainTable(o)); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fault.Usagef(seeHelpAll, "%w", err)
	}
	switch {
	case o.DryRun && o.Checkpoints.Resume != "":
		return fault.Usagef("leave out --resume",
			"flags --dry-run and --resume: the plan is that of a run from the start")
	case o.PlanJSON && !o.DryRun:
		return fault.Usagef("add --dry-run", "--json prints a plan, and none was asked for")
	case c.Splats > 0 && c.RefineEvery == 0:
		return fault.Usagef("give --refine-every 100",
			"flags --splats and --refine-every: without refinement the number of splats stays what the capture has")
	case o.SplatsFactor > 0 && c.RefineEvery == 0 && o.Given != nil && o.Given("splats-factor"):
		return fault.Usagef("give --refine-every 100",
			"flags --splats-factor and --refine-every: without refinement the number of splats stays what the "+
				"capture has")
	case c.Strategy == recipe.StrategyMCMC && c.AbsGrad:
		return fault.Usagef("leave out one of the two",
			"flags --strategy and --absgrad: mcmc does not grow by gradients")
	case c.Strategy == recipe.StrategyMCMC && c.ResetEvery > 0:
		return fault.Usagef("give --reset-every 0", "flags --strategy and --reset-every: mcmc resets no opacities")
	case c.Strategy == recipe.StrategyMCMC && c.MaxSplats == 0 && c.Splats == 0 && o.SplatsFactor == 0:
		return fault.Usagef("give --max-splats 1000000",
			"flags --strategy and --max-splats: mcmc grows to a fixed number, and 0 is none")
	case o.Given != nil && o.Given("devices") && !train.NamesDevices(o.Devices):
		return fault.Usagef("give all, auto, or indices, UUIDs and PCI addresses as vksplat devices lists them, as in 0,1",
			"flag --devices: %q names no device in one place", o.Devices)
	case o.Devices != "" && o.Device.Select != "":
		return fault.Usagef("leave out --device", "flags --device and --devices: one names all devices")
	case len(o.EvalAt) > 0 && !o.Eval:
		return fault.Usagef("give --eval, which holds photos out", "flag --eval-at: no photo is held out to measure on")
	case o.TestEvery < 2:
		return fault.Usagef("give 2 or more", "flag --test-every: %d leaves no photo to train on", o.TestEvery)
	case o.MetricsEvery < 1:
		return fault.Usagef("give 1 or more", "flag --metrics-every: %d is no number of steps", o.MetricsEvery)
	}
	return nil
}
