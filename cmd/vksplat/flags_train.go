package main

import (
	"vksplat/internal/fault"
	"vksplat/internal/run/live"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/report"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
)

// Where defaults come from. docs/train.md spells these out.
const (
	from3DGS    = "3DGS"
	fromINRIA   = "INRIA"
	fromGsplat  = "gsplat"
	fromMCMC    = "3DGS-MCMC"
	fromMip     = "Mip-Splatting"
	fromAbsGS   = "AbsGS"
	fromRevised = "Bulo"
	fromBrush   = "Brush"
	fromNerf    = "Splatfacto"
)

// sources says what the words of option.source stand for.
var sources = [][2]string{
	{from3DGS, "Kerbl, Kopanas, Leimkuehler, Drettakis: 3D Gaussian Splatting for Real-Time Radiance Field Rendering, SIGGRAPH 2023; INRIA's code agrees"},
	{fromINRIA, "INRIA's code graphdeco-inria/gaussian-splatting, where it adds to the paper"},
	{fromGsplat, "nerfstudio-project/gsplat, examples/simple_trainer.py and gsplat/strategy"},
	{fromMCMC, "Kheradmand et al.: 3D Gaussian Splatting as Markov Chain Monte Carlo, NeurIPS 2024; gsplat has the same values"},
	{fromMip, "Yu, Chen, Huang, Sattler, Geiger: Mip-Splatting: Alias-free 3D Gaussian Splatting, CVPR 2024"},
	{fromAbsGS, "Ye, Li, Liu, Qiao, Dou: AbsGS: Recovering Fine Details for 3D Gaussian Splatting, ACM MM 2024; the threshold is the one that gsplat advises"},
	{fromRevised, "Rota Bulo, Porzi, Kontschieder: Revising Densification in Gaussian Splatting, ECCV 2024"},
	{fromBrush, "ArthurBrussee/brush"},
	{fromNerf, "Splatfacto of nerfstudio-project/nerfstudio, where num_downscales is 2"},
}

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
	return []optionGroup{
		{"Input and output", fileOptions(o)},
		{"Training", trainingOptions(o)},
		{"How splats are added and removed", strategyOptions(o)},
		{"Refinement in detail", refineOptions(o)},
		{"Loss", lossOptions(o)},
		{"Learning rates", rateOptions(o)},
		{"Checkpoints", checkpointTable(&o.Checkpoints)},
		{"Device and memory", trainDeviceOptions(o)},
		{"What is shown and recorded", showOptions(o)},
		{"Settings from files", configOptions(o)},
	}
}

func fileOptions(o *train.Options) []option {
	list := []option{
		text(&o.Out, "model-path", "write to the folder `OUT` (required)").letter("m").essential().flagOnly().isFolder().also("result-dir"),
		other(&o.Block, "block", "train block `K` alone, of the plan that SCENE is; see vksplat partition").flagOnly(),
		truth(&o.ShareSteps, "share-steps", "train each block of a plan for its photos' share of the steps, with higher rates to match, and not for all of them").flagOnly(),
		truth(&o.Eval, "eval", "hold every 8th photo out and measure on those").from(from3DGS).essential(),
		stepList(&o.EvalAt, "eval-at", "with --eval, measure after the steps `N,N,...` too").essential().also("eval-steps", "test-iterations"),
		integer(&o.TestEvery, "test-every", "with --eval, hold every `N`th photo out").from(from3DGS),
		text(&o.TestList, "test-list", "hold out the photos that `FILE` names, one a line, and measure on those"),
	}
	list = append(list, loadTable(&o.Load)...)
	return append(list,
		other(&o.Exports, "export", "at the end, convert the model to `FILE` too, in the format that its name says, as in model.spz; may be given again, see docs/convert.md").essential().flagOnly(),
		other(&o.Origin, "origin", "what to subtract from written coordinates: auto (only far from zero: above 1e4, or 1e3 times the distance of the cameras), keep (nothing) or x,y,z").oneOf("auto", "keep"))
}

func trainingOptions(o *train.Options) []option {
	c := &o.Config
	return []option{
		integer(&c.Iterations, "iterations", "training steps `N`, one photo each").from(from3DGS).essential().also("max-steps", "iter", "num-iters", "total-train-iters"),
		float(&o.StepsScaler, "steps-scaler", "multiply every number of steps by `X`, given or default").from(fromGsplat).essential(),
		whole(&c.Seed, "seed", "seed `N` of every random number; same seed, same bytes").from(fromGsplat).essential(),
		integer(&c.SHDegree, "sh-degree", "degree `N` of the spherical harmonics, 0 to 3").from(from3DGS).essential(),
		integer(&c.SHInterval, "sh-degree-interval", "train one more SH degree every `N` steps").from(from3DGS),
		integer(&c.NumDownscales, "num-downscales", "begin with photos whose width and height are halved `N` times; 0: full size at once").from(fromNerf).essential(),
		integer(&c.ResolutionSchedule, "resolution-schedule", "with --num-downscales, double width and height every `N` steps until they are full").from(fromNerf),
		other((*colourFlag)(&c.Background), "background", "black, white or R,G,B from 0 to 1").from(from3DGS).essential().oneOf("black", "white"),
		truth(&c.RandomBackground, "random-background", "another background colour every step, for training alone").from(fromINRIA).also("random-bkgd"),
		truth(&c.Antialiased, "antialiased", "compensate opacity for the pixel filter").from(fromMip).essential().also("antialiasing"),
		float(&c.Near, "near", "near plane at `DISTANCE`; the median camera distance is 1").from(fromGsplat).also("near-plane"),
		float(&c.Carve, "carve", "remove splats closer to a camera than `X` times the depth of its nearest points; 0: off"),
		other(&train.InitFlag{Of: &o.Init}, "init", "begin with points (the capture's), random ones, or ply:FILE (a PLY file of points, or a model of any format that convert reads)").from(fromGsplat).essential().oneOf("points", "random", "ply:").also("init-type"),
		integer(&o.Init.Points, "init-points", "with --init random, so many: `N`").from(fromGsplat).also("init-num-pts"),
		float(&o.Init.Grid, "init-grid", "make one point of those in each cell of edge `X`, in the capture's units; 0: keep all").essential(),
		float(&c.InitOpacity, "init-opacity", "opacity `X` of the first splats; mcmc: 0.5").from(from3DGS).also("init-opa"),
		float(&c.InitScale, "init-scale", "size `X` of the first splats, times the mean distance to three neighbours; mcmc: 0.1").from(from3DGS),
		truth(&c.Exposure, "exposure", "learn a 3x4 colour map for each photo").from(fromINRIA).essential(),
	}
}

func strategyOptions(o *train.Options) []option {
	c := &o.Config
	return []option{
		chosen(&c.Strategy, "strategy", "`NAME`: default grows and prunes by gradients [3DGS]; mcmc relocates up to a fixed number [3DGS-MCMC] and brings its recipe's values where none are given",
			pipeline.StrategyDefault, pipeline.StrategyMCMC).essential(),
		integer(&c.Splats, "splats", "end with exactly `N` splats; 0: what the strategy makes of it").essential(),
		float(&o.SplatsFactor, "splats-factor", "splats to end with, over the root of (pixels of the training photos times points of the capture), unless --splats is given and up to --max-splats: `X` (0: off)").upTo(train.MostSplatsFactor),
		integer(&c.MaxSplats, "max-splats", "stop growing at `N` splats; 0: what memory allows; mcmc: 1000000").from(fromMCMC).essential().also("cap-max", "max-cap", "max-gaussians"),
		truth(&c.AbsGrad, "absgrad", "grow by absolute gradients: finer detail; --grow-grad2d is 8e-4 then unless given").from(fromAbsGS).essential(),
		truth(&c.RevisedOpacity, "revised-opacity", "a split or duplicated splat gets 1 - sqrt(1 - opacity)").from(fromRevised),
	}
}

func refineOptions(o *train.Options) []option {
	c := &o.Config
	return []option{
		integer(&c.RefineStart, "refine-start", "refine above step `N`").from(from3DGS).also("refine-start-iter", "densify-from-iter"),
		integer(&c.RefineStop, "refine-stop", "refine below step `N`; mcmc: 25000").from(from3DGS).also("refine-stop-iter", "densify-until-iter"),
		integer(&c.RefineEvery, "refine-every", "refine every `N` steps; 0: never").from(from3DGS).also("densification-interval"),
		integer(&c.ResetEvery, "reset-every", "reset opacities every `N` steps below --refine-stop; 0: never, as with mcmc").from(from3DGS).also("opacity-reset-interval"),
		float(&c.ResetOpacity, "reset-opacity", "largest opacity `X` after a reset").from(from3DGS),
		float(&c.GrowGrad2D, "grow-grad2d", "mean 2D gradient `X`, in units of half the image, above which a splat grows").from(from3DGS).also("densify-grad-threshold"),
		float(&c.GrowScale, "grow-scale", "size `X`, times the scene's, above which a growing splat is split and not duplicated").from(from3DGS).also("grow-scale3d", "percent-dense"),
		float(&c.PruneOpacity, "prune-opacity", "remove splats, or with mcmc relocate them, below opacity `X`").from(from3DGS).also("prune-opa", "min-opacity"),
		float(&c.PruneScale, "prune-scale", "remove splats larger than `X` times the scene once opacities have been reset").from(from3DGS).also("prune-scale3d"),
		float(&c.GrowFactor, "grow-factor", "mcmc: grow by the factor `X` at each refinement").from(fromMCMC),
		float(&c.NoiseLR, "noise-lr", "mcmc: exploring noise of `X` times the means' learning rate").from(fromMCMC),
	}
}

func lossOptions(o *train.Options) []option {
	c := &o.Config
	return []option{
		float(&c.SSIMLambda, "ssim-lambda", "share `X` of D-SSIM in the loss, the rest is L1").from(from3DGS).also("lambda-dssim"),
		truth(&c.SSIMSame, "ssim-same", "SSIM windows that leave the photo count, as INRIA has it; else only those inside").from(fromGsplat),
		float(&c.AlphaLoss, "alpha-loss", "weight `X` of the mean |alpha - photo's alpha|; 0: photos lie on the background").from(fromBrush).also("match-alpha-weight"),
		float(&c.OpacityReg, "opacity-reg", "weight `X` of the mean opacity; mcmc: 0.01").from(fromMCMC),
		float(&c.ScaleReg, "scale-reg", "weight `X` of the mean scale; mcmc: 0.01").from(fromMCMC),
		float(&c.ExposureReg, "exposure-reg", "with --exposure, weight `X` of the maps' mean squared distance from the identity"),
	}
}

// Adam moves a number by about its learning rate at each step. Ten is e^10 of a scale or an odds, ten times the scene, or ten times all there is of colour:
// far beyond what anybody trains with.
const mostRate = 10

func rateOptions(o *train.Options) []option {
	c := &o.Config
	return []option{
		float(&c.LRMeans, "lr-means", "of positions, times the scene's size: `X`").from(from3DGS).upTo(mostRate).also("means-lr", "position-lr-init"),
		float(&c.LRMeansFinal, "lr-means-final", "share `X` of it that is left at the end; decays exponentially").from(from3DGS),
		float(&c.LRLogScales, "lr-log-scales", "of log scales: `X`").from(from3DGS).upTo(mostRate).also("scales-lr", "scaling-lr"),
		float(&c.LRQuats, "lr-quats", "of rotations: `X`").from(from3DGS).upTo(mostRate).also("quats-lr", "rotation-lr"),
		float(&c.LRLogitOpacity, "lr-logit-opacities", "of logit opacities: `X`").from(from3DGS).upTo(mostRate).also("opacities-lr", "opacity-lr"),
		float(&c.LRSH0, "lr-sh0", "of colours: `X`").from(from3DGS).upTo(mostRate).also("sh0-lr"),
		float(&c.LRSHN, "lr-shn", "of higher SH coefficients: `X`").from(from3DGS).upTo(mostRate).also("shn-lr"),
		float(&c.LRExposure, "lr-exposure", "of --exposure's maps: `X`").from(fromINRIA).upTo(mostRate),
		float(&c.LRExposureFinal, "lr-exposure-final", "share `X` of it that is left at the end; decays exponentially").from(fromINRIA),
	}
}

func trainDeviceOptions(o *train.Options) []option {
	list := append(deviceOptions(&o.Device), text(&o.Devices, "devices",
		"`LIST` of devices that train the scene together, each with a share of its splats and a view of its own in every step: all (that the environment gives, as in CUDA_VISIBLE_DEVICES), auto (several of one kind where that pays, see docs/devices.md), or indices, UUIDs and PCI addresses separated by commas").essential().flagOnly())
	list = append(list, memoryTable(&o.MemoryFlags)...)
	return append(list, chosen(&o.Config.Precision, "precision",
		"`HOW`: full stores float32; mixed stores spherical harmonics and the optimiser's moments in half the bytes, so that more splats fit",
		pipeline.PrecisionFull, pipeline.PrecisionMixed).essential())
}

func showOptions(o *train.Options) []option {
	return []option{
		chosen(&o.Progress, "progress", "`HOW`: auto is a bar on a terminal and plain lines elsewhere; bar, plain, json (an object a line) and none are that",
			meter.Auto, meter.Bar, meter.Plain, meter.JSON, meter.None).essential(),
		integer(&o.MetricsEvery, "metrics-every", "a line of metrics.jsonl, and of TensorBoard's curves, every `N` steps").also("tb-every"),
		truth(&o.Tensorboard, "tensorboard", "write curves and held-out pictures to OUT/tensorboard").essential(),
		text(&o.Viewer.Address, "viewer", "show the training in the browser: --viewer alone at any free port of this machine, --viewer=`PORT` at that one (see docs/view.md)").orAlone("0").essential().flagOnly(),
		text(&o.Viewer.Server.Host, "host", "with --viewer, listen at `ADDR` of this machine, for others to see it (default: 127.0.0.1, for this machine alone)").flagOnly(),
		text(&o.Viewer.Server.CertFile, "tls-cert", "with --viewer, encrypt with the certificate in `FILE`, PEM").flagOnly(),
		text(&o.Viewer.Server.KeyFile, "tls-key", "with --viewer, the certificate's private key, `FILE`, PEM").flagOnly(),
		text(&o.Preview.File, "preview", "leave a small picture of the model in `FILE`, JPEG, every half minute: of the first held-out view, or else the first").flagOnly(),
		float(&o.Preview.Every, "preview-every", "with --preview, a picture every `SECONDS` in place of 30; less often where pictures would take more than 1 % of the time").flagOnly(),
		truth(&o.Report, "report", "write OUT/report.html at the end: curves, held-out photos, settings"),
	}
}

func configOptions(o *train.Options) []option {
	return []option{
		chosen(&o.Preset, "preset", "start from the settings `NAME` below", presetNames()...).essential(),
		text(&o.ConfigFile, "config", "read settings from the TOML file `FILE`; flags go before it, it goes before a preset").essential().flagOnly(),
		truth(&o.PrintConfig, "print-config", "print all settings in effect as such a file, and stop").essential().flagOnly(),
		truth(&o.Help, "help", "help on the flags that most people need, and stop").letter("h").essential().flagOnly(),
		truth(&o.HelpAll, "help-all", "help on every flag, and stop").essential().flagOnly(),
	}
}

// checkTrainOptions reports settings that make no sense or contradict each other, before any work.
func checkTrainOptions(o *train.Options) error {
	c := &o.Config
	for _, g := range trainTable(o) {
		for i := range g.options {
			if err := g.options[i].inRange(); err != nil {
				return err
			}
		}
	}
	if err := c.Validate(); err != nil {
		return &fault.UsageError{Err: err, Hint: "see: vksplat train --help-all"}
	}
	switch {
	case o.DryRun && o.Checkpoints.Resume != "":
		return fault.Usagef("leave out --resume", "flags --dry-run and --resume: the plan is that of a run from the start")
	case o.PlanJSON && !o.DryRun:
		return fault.Usagef("add --dry-run", "--json prints a plan, and none was asked for")
	case c.Splats > 0 && c.RefineEvery == 0:
		return fault.Usagef("give --refine-every 100", "flags --splats and --refine-every: without refinement the number of splats stays what the capture has")
	case o.SplatsFactor > 0 && c.RefineEvery == 0 && o.Given != nil && o.Given("splats-factor"):
		return fault.Usagef("give --refine-every 100", "flags --splats-factor and --refine-every: without refinement the number of splats stays what the capture has")
	case c.Strategy == pipeline.StrategyMCMC && c.AbsGrad:
		return fault.Usagef("leave out one of the two", "flags --strategy and --absgrad: mcmc does not grow by gradients")
	case c.Strategy == pipeline.StrategyMCMC && c.ResetEvery > 0:
		return fault.Usagef("give --reset-every 0", "flags --strategy and --reset-every: mcmc resets no opacities")
	case c.Strategy == pipeline.StrategyMCMC && c.MaxSplats == 0 && c.Splats == 0 && o.SplatsFactor == 0:
		return fault.Usagef("give --max-splats 1000000", "flags --strategy and --max-splats: mcmc grows to a fixed number, and 0 is none")
	case o.Given != nil && o.Given("devices") && !train.NamesDevices(o.Devices):
		return fault.Usagef("give all, auto, or indices, UUIDs and PCI addresses as vksplat devices lists them, as in 0,1", "flag --devices: %q names no device in one place", o.Devices)
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
