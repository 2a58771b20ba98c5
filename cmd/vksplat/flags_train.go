package main

import (
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// Whose defaults this command's own flags have, in the words of pipeline.Sources.
const (
	from3DGS   = "3DGS"
	fromINRIA  = "INRIA"
	fromGsplat = "gsplat"
	fromBrush  = "Brush"
)

// trainOptions is everything that train is asked for. What is no part of
// pipeline.Config changes no byte of the model, but for the choice of photos.
type trainOptions struct {
	scene   string      // the capture's folder
	block   blockFlag   // of a plan
	divided *plans.Plan // that block belongs to; nil without
	// Whether a block is trained as often on each photo as the whole would be, see planFile.configOf.
	shareSteps bool
	out        string                 // the folder that is written
	claimed    bool                   // the caller has claimed out already
	given      func(flag string) bool // whether a flag is on the command line; nil: none is

	eval      bool
	testEvery int       // spacing of held-out photos
	testList  string    // file with the names of those
	evalAt    cli.Steps // evaluate after these steps too
	exports   convert.Exports
	load      captured.Options
	device    pipeline.DeviceOptions
	devices   string // that train together; "": one does
	origin    captured.OriginFlag
	init      initial.Options
	config    pipeline.Config
	// The number of splats to end with follows the capture, see followCapture; 0: it does not.
	splatsFactor float64
	// Whether the background was chosen: synthetic captures are white otherwise.
	backgroundGiven bool
	checkpoints     checkpointOptions
	memoryFlags

	preset      string
	configFile  string
	stepsScaler float64
	passedOn    []string // flags for the training of a plan's block
	printConfig bool
	help        bool
	helpAll     bool

	viewer       viewerOptions
	preview      previewOptions
	progress     string
	metricsEvery int // steps between lines of metrics.jsonl
	tensorboard  bool
	report       bool

	commandLine
}

// commandLine is what a run knows of the flags that its options come from, for the texts that it writes about them. The command fills it in.
type commandLine struct {
	chapters  func(*trainOptions) []report.Chapter              // all settings; nil: the report has none
	flagNames func(flag string) (names []string, letter string) // by which a flag is given, without dashes; nil: as it is called
}

// newTrainOptions returns the defaults, with what the flags are called.
func newTrainOptions() *trainOptions {
	o := defaultTrainOptions()
	o.commandLine = commandLine{chapters: settingChapters, flagNames: trainFlagNames}
	return o
}

// trainFlagNames are the names by which a flag of train is given.
func trainFlagNames(flag string) (names []string, letter string) {
	opt := find(defaultTrainOptions().table(), flag)
	return append([]string{opt.name}, opt.aliases...), opt.short
}

// settingChapters lists all settings by chapter and marks those that are not the default.
func settingChapters(o *trainOptions) []report.Chapter {
	var list []report.Chapter
	standard := defaultTrainOptions().table()
	for i, g := range o.table() {
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

// defaultTrainOptions returns the defaults.
func defaultTrainOptions() *trainOptions {
	return &trainOptions{load: captured.Options{Model: scene.AnyModel}, origin: "auto", block: noBlock, config: pipeline.DefaultConfig(), testEvery: captured.HeldOutEvery, stepsScaler: 1, checkpoints: newCheckpointOptions(),
		progress: meter.Auto, metricsEvery: 100, report: true, preview: previewOptions{every: defaultPreviewEvery}}
}

// table lists all options of train by chapter. Their defaults are what o holds.
func (o *trainOptions) table() []optionGroup {
	device := o.settings("Device and memory", nil)
	device.options = append(o.deviceOptions(), device.options...)
	return []optionGroup{
		{"Input and output", o.fileOptions()},
		o.settings("Training", map[string][]option{"iterations": o.stepOptions(), "carve": o.initOptions()}),
		o.settings("How splats are added and removed", map[string][]option{"splats": o.followOptions()}),
		o.settings("Refinement in detail", nil),
		o.settings("Loss", nil),
		o.settings("Learning rates", nil),
		{"Checkpoints", o.checkpoints.table()},
		device,
		{"What is shown and recorded", o.showOptions()},
		{"Settings from files", o.configOptions()},
	}
}

func (o *trainOptions) fileOptions() []option {
	list := []option{
		text(&o.out, "model-path",
			"write to the folder `OUT` (required)").letter("m").essential().flagOnly().isFolder().also("result-dir"),
		other(&o.block, "block", "train block `K` alone, of the plan that SCENE is; see vksplat partition").flagOnly(),
		truth(&o.shareSteps, "share-steps",
			"train each block of a plan for its photos' share of the steps, with higher rates to match, and not for "+
				"all of them").flagOnly(),
		truth(&o.eval, "eval", "hold every 8th photo out and measure on those").from(from3DGS).essential(),
		stepList(&o.evalAt, "eval-at",
			"with --eval, measure after the steps `N,N,...` too").essential().also("eval-steps", "test-iterations"),
		integer(&o.testEvery, "test-every", "with --eval, hold every `N`th photo out").from(from3DGS),
		text(&o.testList, "test-list", "hold out the photos that `FILE` names, one a line, and measure on those"),
	}
	list = append(list, loadTable(&o.load)...)
	return append(list,
		other(&o.exports, "export",
			"at the end, convert the model to `FILE` too, in the format that its name says, as in model.spz; may be "+
				"given again, see docs/convert.md").essential().flagOnly(),
		other(&o.origin, "origin",
			"what to subtract from written coordinates: auto (only far from zero: above 1e4, or 1e3 times the "+
				"distance of the cameras), keep (nothing) or x,y,z").oneOf("auto", "keep"))
}

func (o *trainOptions) stepOptions() []option {
	return []option{
		float(&o.stepsScaler, "steps-scaler",
			"multiply every number of steps by `X`, given or default").from(fromGsplat).essential(),
	}
}

func (o *trainOptions) initOptions() []option {
	return []option{
		other(&initFlag{&o.init}, "init",
			"begin with points (the capture's), random ones, or ply:FILE (a PLY file of points, or a model of any "+
				"format that convert reads)").
			from(fromGsplat).essential().oneOf("points", "random", "ply:").also("init-type"),
		integer(&o.init.Points, "init-points",
			"number `N` of random points, with --init random").from(fromGsplat).also("init-num-pts"),
		float(&o.init.Grid, "init-grid",
			"make one point of those in each cell of edge `X`, in the capture's units; 0: keep all").essential(),
	}
}

func (o *trainOptions) followOptions() []option {
	return []option{
		float(&o.splatsFactor, "splats-factor",
			"splats to end with, over the root of (pixels of the training photos times points of the "+
				"capture), unless --splats is given and up to --max-splats: `X` (0: off)").upTo(mostSplatsFactor),
	}
}

func (o *trainOptions) deviceOptions() []option {
	list := append(deviceOptions(&o.device), text(&o.devices, "devices",
		"`LIST` of devices that train the scene together, each with a share of its splats and a view of its own in "+
			"every step: all (that the environment gives, as in CUDA_VISIBLE_DEVICES), auto (several of one kind "+
			"where that pays, see docs/devices.md), or indices, UUIDs and PCI addresses separated by commas").
		essential().flagOnly())
	return append(list, o.memoryFlags.table()...)
}

func (o *trainOptions) showOptions() []option {
	return []option{
		chosen(&o.progress, "progress",
			"`HOW`: auto is a bar on a terminal and plain lines elsewhere; bar, plain, json (an object a line) and "+
				"none are that",
			meter.Auto, meter.Bar, meter.Plain, meter.JSON, meter.None).essential(),
		integer(&o.metricsEvery, "metrics-every",
			"a line of metrics.jsonl, and of TensorBoard's curves, every `N` steps").also("tb-every"),
		truth(&o.tensorboard, "tensorboard", "write curves and held-out pictures to OUT/tensorboard").essential(),
		text(&o.viewer.address, "viewer",
			"show the training in the browser: --viewer alone at any free port of this machine, --viewer=`PORT` at "+
				"that one (see docs/view.md)").orAlone("0").essential().flagOnly(),
		text(&o.viewer.server.Host, "host",
			"with --viewer, listen at `ADDR` of this machine, for others to see it (default: 127.0.0.1, for this "+
				"machine alone)").flagOnly(),
		text(&o.viewer.server.CertFile, "tls-cert",
			"with --viewer, encrypt with the certificate in `FILE`, PEM").flagOnly(),
		text(&o.viewer.server.KeyFile, "tls-key",
			"with --viewer, the certificate's private key, `FILE`, PEM").flagOnly(),
		text(&o.preview.file, "preview",
			"leave a small picture of the model in `FILE`, JPEG, every half minute: of the first held-out view, or "+
				"else the first").flagOnly(),
		float(&o.preview.every, "preview-every",
			"with --preview, a picture every `SECONDS` in place of 30; less often where pictures would take more "+
				"than 1 % of the time").flagOnly(),
		truth(&o.report, "report", "write OUT/report.html at the end: curves, held-out photos, settings"),
	}
}

func (o *trainOptions) configOptions() []option {
	return []option{
		chosen(&o.preset, "preset", "start from the settings `NAME` below", presetNames()...).essential(),
		text(&o.configFile, "config",
			"read settings from the TOML file `FILE`; flags go before it, it goes before a preset").
			essential().flagOnly(),
		truth(&o.printConfig, "print-config",
			"print all settings in effect as such a file, and stop").essential().flagOnly(),
		truth(&o.help, "help", "help on the flags that most people need, and stop").letter("h").essential().flagOnly(),
		truth(&o.helpAll, "help-all", "help on every flag, and stop").essential().flagOnly(),
	}
}

// check reports settings that make no sense or contradict each other, before any work.
func (o *trainOptions) check() error {
	c := &o.config
	if err := checkRanges(o.table()); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return fault.Usagef(seeHelpAll, "%w", err)
	}
	switch {
	case o.dryRun && o.checkpoints.resume != "":
		return fault.Usagef("leave out --resume", "flags --dry-run and --resume: the plan is that of a run from the start")
	case o.planJSON && !o.dryRun:
		return fault.Usagef("add --dry-run", "--json prints a plan, and none was asked for")
	case c.Splats > 0 && c.RefineEvery == 0:
		return fault.Usagef("give --refine-every 100",
			"flags --splats and --refine-every: without refinement the number of splats stays what the capture has")
	case o.splatsFactor > 0 && c.RefineEvery == 0 && o.given != nil && o.given("splats-factor"):
		return fault.Usagef("give --refine-every 100",
			"flags --splats-factor and --refine-every: without refinement the number of splats stays what the "+
				"capture has")
	case c.Strategy == pipeline.StrategyMCMC && c.AbsGrad:
		return fault.Usagef("leave out one of the two", "flags --strategy and --absgrad: mcmc does not grow by gradients")
	case c.Strategy == pipeline.StrategyMCMC && c.ResetEvery > 0:
		return fault.Usagef("give --reset-every 0", "flags --strategy and --reset-every: mcmc resets no opacities")
	case c.Strategy == pipeline.StrategyMCMC && c.MaxSplats == 0 && c.Splats == 0 && o.splatsFactor == 0:
		return fault.Usagef("give --max-splats 1000000",
			"flags --strategy and --max-splats: mcmc grows to a fixed number, and 0 is none")
	case o.given != nil && o.given("devices") && !namesDevices(o.devices):
		return fault.Usagef("give all, auto, or indices, UUIDs and PCI addresses as vksplat devices lists them, as in 0,1",
			"flag --devices: %q names no device in one place", o.devices)
	case o.devices != "" && o.device.Select != "":
		return fault.Usagef("leave out --device", "flags --device and --devices: one names all devices")
	case len(o.evalAt) > 0 && !o.eval:
		return fault.Usagef("give --eval, which holds photos out", "flag --eval-at: no photo is held out to measure on")
	case o.testEvery < 2:
		return fault.Usagef("give 2 or more", "flag --test-every: %d leaves no photo to train on", o.testEvery)
	case o.metricsEvery < 1:
		return fault.Usagef("give 1 or more", "flag --metrics-every: %d is no number of steps", o.metricsEvery)
	}
	return nil
}
