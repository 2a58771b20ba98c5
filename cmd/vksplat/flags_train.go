package main

import (
	"fmt"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/run/live"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/report"
	"vksplat/internal/run/train"
	"vksplat/scene/depth"
)

// Whose defaults this command's own flags have, in the words of recipe.Sources.
const (
	from3DGS   = "3DGS"
	fromINRIA  = "INRIA"
	fromGsplat = "gsplat"
	fromBrush  = "Brush"
)

// alsoObserve are observers that tests add to every training.
var alsoObserve []func(*train.Options, *cli.Console) (train.Observer, error)

// newTrainOptions returns the defaults, with the viewer.
func newTrainOptions() *train.Options {
	o := train.NewOptions()
	o.Observers = append(append(o.Observers, live.New), alsoObserve...)
	return o
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
	follow := followOptions(o)
	return []optionGroup{
		{"Input and output", fileOptions(o)},
		settingsGroup(o, "Training", map[string][]option{
			"iterations": append(follow["iterations"], stepOptions(o)...), "carve": initOptions(o)}),
		settingsGroup(o, "How splats are added and removed", follow),
		settingsGroup(o, "Refinement, advanced", nil),
		settingsGroup(o, "Loss", map[string][]option{
			"scale_reg": follow["scale_reg"], "vignetting_reg": depthOptions(o),
			"depth_lambda_final": normalOptions(o)}),
		settingsGroup(o, "Learning rates", nil),
		{"Checkpoints", checkpointTable(&o.Checkpoints)},
		device,
		{"Logging and display", showOptions(o)},
		{"Settings from files", configOptions(o)},
	}
}

func fileOptions(o *train.Options) []option {
	list := []option{
		text(&o.Out, "model-path",
			"write to the folder `OUT` (required)").letter("m").flagOnly().isFolder().also("result-dir"),
		other(&o.Block, "block", "train only block `K` of the plan SCENE; see vksplat partition").flagOnly(),
		truth(&o.ShareSteps, "share-steps",
			"train each block of a plan for a share of the steps in proportion to its photos, at higher learning "+
				"rates").flagOnly(),
		truth(&o.Eval, "eval", "hold out every 8th photo and measure on those").from(from3DGS),
		stepList(&o.EvalAt, "eval-at",
			"with --eval, also measure after steps `N,N,...`").also("eval-steps", "test-iterations"),
		integer(&o.TestEvery, "test-every", "with --eval, hold out every `N`th photo").from(from3DGS),
		text(&o.TestList, "test-list", "hold out the photos listed in `FILE`, one per line, and measure on those"),
	}
	list = append(list, loadTable(&o.Load)...)
	return append(list,
		other(&o.Exports, "export",
			"also write the final model to `FILE`; its name chooses the format, as in model.spz; may be repeated, "+
				"see docs/convert.md").flagOnly(),
		other(&o.Origin, "origin",
			"subtract this from written coordinates: auto, keep (nothing) or x,y,z; auto: only if they are far from "+
				"zero, above 1e4 or 1e3 times the camera distance").oneOf("auto", "keep"))
}

func stepOptions(o *train.Options) []option {
	return []option{
		float(&o.StepsScaler, "steps-scaler",
			"scale all step counts by `X`, given or default").from(fromGsplat),
		other(&o.TimeLimit, "time-limit",
			"finish within `TIME`, as in 90s or 5m; with fewer steps if needed").flagOnly(),
	}
}

func initOptions(o *train.Options) []option {
	return []option{
		other(&train.InitFlag{Of: &o.Init}, "init",
			"start from points, random or ply:FILE; points are those of the capture, FILE holds points (PLY, LAS) or "+
				"is a model that convert reads").
			from(fromGsplat).oneOf("points", "random", "ply:").also("init-type"),
		integer(&o.Init.Points, "init-points",
			"number of random points, with --init random").from(fromGsplat).also("init-num-pts"),
		float(&o.Init.Grid, "init-grid",
			"thin points to one per cube of edge `X`, in the capture's units (default: keep all)"),
	}
}

// followOptions are what follows the capture, by the setting that they choose.
func followOptions(o *train.Options) map[string][]option {
	return map[string][]option{
		"iterations": {float(&o.IterationsFactor, "iterations-factor",
			fmt.Sprintf("train for `X` times (training photos)^(2/3) steps, %g to %g, and scale all schedules; "+
				"--iterations overrides it (default: off)", train.IterationsFactors.Least,
				train.IterationsFactors.Most)).in(train.IterationsFactors, &o.IterationsFactor)},
		"splats": {float(&o.SplatsFactor, "splats-factor",
			fmt.Sprintf("end with `X` times sqrt(training pixels * points of the capture) splats, %g to %g; --splats "+
				"overrides it, --max-splats limits it (default: off)", train.SplatsFactors.Least,
				train.SplatsFactors.Most)).in(train.SplatsFactors, &o.SplatsFactor)},
		"scale_reg": {integer(&o.FewPhotos, "few-photos",
			"with fewer than `N` training photos, multiply --opacity-reg and --scale-reg by sqrt(N / photos), or "+
				"more below 0.4 N, up to 10, unless they are given (default: off)")},
	}
}

// depthOptions say what depths are compared.
func depthOptions(o *train.Options) []option {
	return []option{
		truth(&o.Depth.Points, "depth-loss",
			"supervise depth with the capture's points").from(fromGsplat),
		text(&o.Depth.Maps, "depths", "supervise depth with maps in `DIR`, below SCENE or absolute; 16-bit PNG, NPY "+
			"or EXR").letter("d").from(fromINRIA).isFolder().also("depths-path"),
		chosen(&o.Depth.Kind, "depth-kind", "--depths hold `KIND`: depth along the axis, inverse depth or distances "+
			"along rays; auto: depth with --depth-unit or in files of floats, else inverse", depth.Kinds...),
		float(&o.Depth.Unit, "depth-unit", "unit of --depths in the capture's units, as in 0.001 (default: fitted to "+
			"the capture's points)"),
		text(&o.Depth.Cloud, "depth-points",
			"supervise depth with the unoccluded points of the PLY `FILE`, for example from LiDAR"),
		truth(&o.Depth.Init, "depth-init",
			"also initialise with points at known depths, up to 100,000, in the photos' colours"),
	}
}

// normalOptions say what normals are compared.
func normalOptions(o *train.Options) []option {
	return []option{
		text(&o.Normal.Maps, "normals", "supervise normals with maps in `DIR`, below SCENE or absolute; PNG, NPY or "+
			"EXR").isFolder(),
		chosen(&o.Normal.Frame, "normal-frame", "--normals are in `AXES`: opencv is right, down, ahead of the camera; "+
			"opengl right, up, back; world the capture's own; auto: the axes in which most normals face the "+
			"camera", depth.Frames...),
	}
}

func trainDeviceOptions(o *train.Options) []option {
	list := append(deviceOptions(&o.Device), text(&o.Devices, "devices",
		"train on several devices: all, auto, or a `LIST` as in 0,1; each holds a share of the splats and draws its "+
			"own view in every step; all: those that the environment allows, as in CUDA_VISIBLE_DEVICES; auto: "+
			"several of one kind if that pays; a LIST has indices, UUIDs or PCI addresses; see docs/devices.md").
		flagOnly())
	return append(list, memoryTable(&o.MemoryFlags)...)
}

// progressOption is that of commands which show how far they are.
func progressOption(how *string) option {
	return chosen(how, "progress",
		"show progress as `HOW`: auto, bar, plain, json or none; auto: a bar on a terminal, else plain lines; json: "+
			"one object per line",
		meter.Auto, meter.Bar, meter.Plain, meter.JSON, meter.None)
}

func showOptions(o *train.Options) []option {
	return slices.Concat([]option{
		progressOption(&o.Progress),
		integer(&o.MetricsEvery, "metrics-every",
			"write to metrics.jsonl and TensorBoard every `N` steps").also("tb-every"),
		truth(&o.Tensorboard, "tensorboard", "write curves and held-out pictures to OUT/tensorboard"),
	}, viewerOptions(&o.Viewer, "the training"), []option{
		text(&o.Preview.File, "preview",
			"write a small JPEG of the first held-out view, or else the first view, to `FILE` every half "+
				"minute").flagOnly(),
		float(&o.Preview.Every, "preview-every",
			"with --preview, render every `SECONDS`; less often if rendering takes over 1 % of the time").flagOnly(),
		truth(&o.Verbose, "verbose", "print all notes; minor ones are otherwise only in report.html").flagOnly(),
		truth(&o.Report, "report", "write OUT/report.html at the end; curves, held-out photos, settings"),
	})
}

// viewerOptions are those of a viewer of what is being done.
func viewerOptions(o *train.ViewerOptions, what string) []option {
	return []option{
		text(&o.Address, "viewer",
			"show "+what+" in the browser; at `PORT` or any free port of this machine; see docs/view.md").
			orAlone("0").flagOnly(),
		text(&o.Server.Host, "host",
			"with --viewer, listen on `ADDR`, for other machines (default: 127.0.0.1, this machine only)").flagOnly(),
		text(&o.Server.CertFile, "tls-cert",
			"with --viewer, encrypt with the PEM certificate in `FILE`").flagOnly(),
		text(&o.Server.KeyFile, "tls-key",
			"with --viewer, the certificate's private key, a PEM `FILE`").flagOnly(),
	}
}

func configOptions(o *train.Options) []option {
	preset := &choice{p: &o.Preset, words: train.PresetNames()}
	return []option{
		other(preset, "preset", "start from the preset `NAME`; without it, from default").oneOf(preset.words...),
		other((*onceValue)(&o.ConfigFile), "config",
			"read settings from a TOML `FILE`; it overrides a preset, flags override it").flagOnly(),
		truth(&o.PrintConfig, "print-config", "print all settings in effect as a TOML file and stop").flagOnly(),
	}
}

// trainFirst are the flags that train --help shows.
var trainFirst = []string{"model-path", "eval", "preset", "config", "iterations", "time-limit", "max-splats",
	"downscale", "masks", "export", "resume", "overwrite", "viewer", "device", "max-vram", "dry-run"}
