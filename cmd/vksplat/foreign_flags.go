package main

import (
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// What several flags have in common.
const (
	noPriors   = "normal priors are not here"
	ownPoses   = "poses have other learning rates: --refine-cameras, --lr-poses"
	exposure   = "--exposure --white-balance --vignetting learn the colours of each photo"
	frameStays = "models keep the capture's own frame"
	photoCache = "photos are cached under --max-ram and --max-vram"
	lensRead   = "the lens is the capture's, and every kind is read"
	resumeOut  = "vksplat resume OUT continues a run"
	allSteps   = "the model of the last step is always written"
	boards     = "--tensorboard writes curves and held-out pictures to OUT/tensorboard; nothing is sent elsewhere"
	lpipsLater = "vksplat eval OUT --lpips-weights FILE measures LPIPS"
	scales     = "its scale differs from that of "
	viewerOff  = "--viewer shows the training in the browser; without it, there is no viewer"
)

func taken(flag string) *foreignFlag {
	return &foreignFlag{mean: func(v string, _ *foreignLine) meaning { return as(cli.Switch(flag), v) }}
}

// turned is a switch that stands for flags.
func turned(flags ...string) *foreignFlag {
	return chosenBy(map[string][]string{no: nil, yes: flags}, "").alone()
}

func idle(why string) *foreignFlag {
	return &foreignFlag{mean: func(string, *foreignLine) meaning { return needless(why) }}
}

// absent is a flag without which, or with one of the values off, nothing is missing here.
func absent(instead string, off ...string) *foreignFlag {
	return &foreignFlag{mean: func(v string, _ *foreignLine) meaning {
		if slices.Contains(off, v) {
			return meaning{}
		}
		return refused(instead)
	}}
}

// alone lets a flag stand without a value.
func (f *foreignFlag) alone() *foreignFlag {
	f.bare = true
	return f
}

// chosenBy translates a flag by its value.
func chosenBy(words map[string][]string, instead string) *foreignFlag {
	return &foreignFlag{mean: func(v string, _ *foreignLine) meaning {
		if flags, known := words[v]; known {
			return as(flags...)
		}
		return refused(instead)
	}}
}

var sceneFlag = &foreignFlag{mean: func(v string, _ *foreignLine) meaning { return sceneAt(v) }}

// publishedAt is a scene that is named as only INRIA's train.py names it, whose recipe is meant then.
func publishedAt(v string, l *foreignLine) meaning {
	l.recipe = published
	return sceneAt(v)
}

// mostStops bounds the steps that "every N" is written out to.
const mostStops = 100

// every is a flag of "every N steps" where train has a list.
func every(flag string, more ...string) *foreignFlag {
	return &foreignFlag{mean: func(v string, l *foreignLine) meaning {
		n, err := strconv.Atoi(v)
		last := l.steps()
		if err != nil || n <= 0 || last/n > mostStops || last < n {
			return needless(cli.Switch(flag) + " N,N,... lists steps, and the last one always counts")
		}
		var list []string
		for at := n; at <= last; at += n {
			list = append(list, strconv.Itoa(at))
		}
		return as(append(more, cli.Switch(flag), strings.Join(list, ","))...)
	}}
}

// width is a largest width of photos.
var width = &foreignFlag{mean: func(v string, _ *foreignLine) meaning {
	if n, err := strconv.Atoi(v); err == nil && n >= 1600 {
		return needless("--downscale auto, the default, reduces widths above 1600 to 1600; --downscale 1 keeps them")
	}
	return refused("--downscale 2, 4 or 8 makes photos smaller")
}}

// foreignValues are values of flags of the same names, or of names that are aliases.
var foreignValues = map[string]map[string]string{
	"init":      {"sfm": "points"},
	"downscale": {"-1": "auto"},
	"strategy":  {"adc": "3dgs"},
	"device":    {"cuda": "auto", "cuda:0": "0", "cuda:1": "1", "cuda:2": "2", "cuda:3": "3"},
}

// foreignLetters are flags of one letter.
var foreignLetters = map[string]*foreignFlag{
	"s": {mean: func(v string, l *foreignLine) meaning {
		if digits.MatchString(v) || v == "-1" { // OpenSplat
			return needless("--save-at N,N,... lists steps; " + allSteps)
		}
		return publishedAt(v, l) // INRIA
	}},
	"w": turned("--background", "white"), // INRIA
	"d": {mean: func(v string, l *foreignLine) meaning {
		switch {
		case digits.MatchString(v): // OpenSplat
			return as("--downscale", v)
		case l.scene != "": // INRIA
			return refused(noPriors)
		}
		return sceneAt(v) // LichtFeld
	}},
	"o": {mean: func(v string, _ *foreignLine) meaning {
		if splatFile(v) { // OpenSplat
			return as("--export", v)
		}
		return as("-m", v) // LichtFeld
	}},
	"n": taken("iterations"), // OpenSplat
	"i": taken("iterations"), // LichtFeld, with a number behind it
	"c": absent("settings are kept in TOML files: --config FILE"),
	"v": idle("errors come in one line").alone(),
}

// heldOut is every how many photos one is held out.
var heldOut = &foreignFlag{mean: func(v string, _ *foreignLine) meaning {
	return as("--eval", "--test-every", v)
}}

// foreignTable are flags that train does not have, and what they mean: one meaning for all of the names, which are in
// lower case and with dashes.
var foreignTable = []struct {
	means *foreignFlag
	names string
}{
	// Of several programs.
	{sceneFlag, "data data-path input"},
	{taken("model-path"), "output-path output-dir export-path"},
	{taken("device"), "gpu gpu-id cuda-device"},
	{taken("iterations"), "max-num-iterations total-steps"},
	{taken("refine-start"), "warmup-length"},
	{taken("refine-stop"), "stop-split-at growth-stop-iter"},
	{taken("ssim-lambda"), "ssim-weight"},
	{taken("grow-grad2d"), "densify-grad-thresh"},
	{taken("grow-scale"), "densify-size-thresh"},
	{taken("downscale"), "downscale-factor"},
	{absent("--reset-every counts steps: N times --refine-every"), "reset-alpha-every"},
	{absent("splats are not split or removed by their size on the screen", "0", "0.0"),
		"split-screen-size stop-screen-size-at cull-screen-size grow-scale2d prune-scale2d refine-scale2d-stop-iter " +
			"kill-at-screen-size screen-area-penalty"},
	{absent("poses are not made wrong on purpose here", "0", "0.0"), "pose-noise"},
	{absent("there are no bilateral grids; "+exposure, no).alone(),
		"use-bilateral-grid bilateral-grid use-fused-bilagrid"},
	{turned("--depth-loss"), "use-depth-loss"},
	{absent(noPriors, no).alone(), "use-normal-loss"},
	{absent(noPriors, "0", "0.0"), "normal-loss-weight"},
	{idle(viewerOff).alone(), "disable-viewer headless no-viewer"},
	{absent(boards, no).alone(), "wandb use-wandb log-wandb enable-wandb with-wandb"},
	{absent(boards), "wandb-project wandb-name wandb-entity wandb-mode logger"},
	{absent(lpipsLater, no).alone(), "lpips eval-lpips"},
	{absent(lpipsLater), "lpips-weights"},
	{idle(viewerOff), "vis ip port"},

	// Of INRIA's code.
	{&foreignFlag{mean: publishedAt}, "source-path"},
	{turned("--background", "white"), "white-background"},
	{turned("--exposure"), "train-test-exp"},
	{turned("--progress", "none"), "quiet"},
	{idle(photoCache), "data-device"},
	{idle("there is one way to draw").alone(), "convert-shs-python compute-cov3d-python"},
	{idle("VKSPLAT_VERIFY=1 checks every pass").alone(), "debug detect-anomaly"},
	{idle("VKSPLAT_VERIFY=1 checks every pass"), "debug-from"},
	{absent(resumeOut), "start-checkpoint"},
	{absent("--depth-lambda-final X is a share of --depth-lambda"), "depth-l1-weight-final"},
	{absent("--lr-means-final X is a share of --lr-means"), "position-lr-final"},
	{absent("the rate of means decays over all steps", "1", "1.0"), "position-lr-delay-mult"},
	{idle("the rate of means decays over all steps"), "position-lr-max-steps"},
	{absent("exposure has a different model: --lr-appearance"),
		"exposure-lr-final exposure-lr-delay-steps exposure-lr-delay-mult"},
	{idle("there is one optimiser, which skips nothing"), "optimizer-type"},
	{&foreignFlag{mean: func(string, *foreignLine) meaning { return as("--exposure") }}, "exposure-lr-init"},
	{&foreignFlag{mean: func(v string, _ *foreignLine) meaning { // of SH above degree 0 there: a twentieth
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return refused("--lr-sh0 and --lr-shn")
		}
		return as("--lr-sh0", v, "--lr-shn", strconv.FormatFloat(x/20, 'g', -1, 64))
	}}, "feature-lr"},

	// Of gsplat.
	{&foreignFlag{mean: func(v string, l *foreignLine) meaning {
		l.words = append(l.words, "--eval") // which it always does
		return sceneAt(v)
	}}, "data-dir"},
	{absent("one photo is drawn in each step, on each device: --devices", "1"), "batch-size"},
	{absent("photos are trained on as a whole", "None"), "patch-size"},
	{idle(frameStays), "global-scale"},
	{idle(frameStays).alone(), "normalize-world-space"},
	{idle(lensRead), "camera-model"},
	{idle(lensRead).alone(), "with-ut with-eval3d load-exposure"},
	{idle("it changes no model").alone(), "packed sparse-grad visible-adam save-ply tb-save-image"},
	{idle("it changes no model"), "key-for-gradient far-plane"},
	{taken("save-at"), "ply-steps"},
	{idle("vksplat render OUT --trajectory NAME --video FILE makes one").alone(), "disable-video"},
	{idle("vksplat render OUT --trajectory NAME draws a flight"), "render-traj-path"},
	{idle("vksplat convert OUT model.sog compresses a model"), "compression"},
	{absent("vksplat eval OUT and vksplat render OUT take a model", "None"), "ckpt"},
	{absent("random points fill the space that the cameras see"), "init-extent"},
	{absent("refinement continues after a reset", "0"), "pause-refine-after-reset"},
	{absent("there are no embeddings of photos; "+exposure, no).alone(), "app-opt"},
	{chosenBy(map[string][]string{"ppisp": {"--exposure", "--white-balance", "--vignetting"}, "none": nil},
		"there are no bilateral grids; "+exposure), "post-processing"},
	{absent("there are no bilateral grids; " + exposure), "bilateral-grid-shape"},
	{absent(ownPoses), "pose-opt-lr pose-opt-reg"},
	{absent("there are no embeddings of photos; " + exposure), "app-opt-lr app-opt-reg app-embed-dim"},
	{idle(lpipsLater), "lpips-net"},

	// Of splatfacto.
	{idle("the folder is OUT of -m"), "experiment-name method-name project-name timestamp"},
	{idle("metrics.jsonl and --tensorboard record a run"), "local-writer.max-log-size steps-per-log"},
	{idle("held-out photos are measured at the end, and at --eval-at N,N"),
		"steps-per-eval-image steps-per-eval-batch"},
	{every("eval-at", "--eval"), "steps-per-eval-all-images eval-every"},
	{taken("checkpoint-every"), "steps-per-save"},
	{idle("it changes no model").alone(), "save-only-latest-checkpoint log-gradients mixed-precision " +
		"output-depth-during-training color-corrected-metrics quit-on-train-completion use-uniform-sampling"},
	{idle("it changes no model"), "train-num-rays-per-chunk websocket-port websocket-port-default websocket-host " +
		"max-num-display-images image-format jpeg-quality num-devices num-machines machine-rank dist-url device-type"},
	{idle(photoCache), "cache-images cache-images-type"},
	{idle(photoCache).alone(), "images-on-gpu masks-on-gpu"},
	{absent(resumeOut), "load-dir load-checkpoint load-step load-config"},
	{taken("prune-opacity"), "cull-alpha-thresh"},
	{taken("prune-scale"), "cull-scale-thresh"},
	{turned("--absgrad"), "use-absgrad"},
	{turned("--init", "random"), "random-init"},
	{taken("init-points"), "num-random"},
	{taken("max-splats"), "max-gs-num"},
	{taken("opacity-reg"), "mcmc-opacity-reg"},
	{taken("scale-reg"), "mcmc-scale-reg"},
	{absent("random points fill the space that the cameras see"), "random-scale"},
	{absent("long thin splats are not penalised; --scale-reg X penalises large ones", no).alone(),
		"use-scale-regularization"},
	{absent("long thin splats are not penalised"), "max-gauss-ratio"},
	{absent("a splat is split into two", "2"), "n-split-samples"},
	{idle("splats are removed as long as they are refined: --refine-stop").alone(),
		"continue-cull-post-densification"},
	{chosenBy(map[string][]string{"antialiased": {"--antialiased"}, "classic": nil, "mip": {"--antialiased"},
		"default": nil}, "--antialiased, or nothing"), "rasterize-mode render-mode"},
	{&foreignFlag{mean: func(v string, _ *foreignLine) meaning {
		if v == "random" {
			return as("--random-background")
		}
		return as("--background", v)
	}}, "background-color"},
	{&foreignFlag{mean: func(v string, _ *foreignLine) meaning {
		if strings.EqualFold(v, "off") {
			return meaning{}
		}
		return as("--refine-cameras")
	}}, "camera-optimizer.mode"},
	{absent("--eval holds out every 8th photo, --test-list FILE those that it lists", "all"), "eval-mode"},
	{heldOut, "eval-interval eval-split-every"},
	{absent("--test-every N holds out every Nth photo"), "train-split-fraction"},
	{idle(frameStays), "orientation-method center-method scale-factor scene-scale"},
	{idle(frameStays).alone(), "auto-scale-poses"},
	{taken("images"), "images-path colmap-image-path"},
	{taken("masks"), "masks-path"},
	{absent("SCENE is the folder above; --model N reads sparse/N"), "colmap-path"},
	{idle("points are read if there are any; --init random starts without").alone(), "load-3d-points"},
	{absent("--downscale 2, 4 or 8 makes photos smaller", "1", "1.0"), "camera-res-scale-factor"},

	// Of Brush.
	{turned("--viewer"), "with-viewer"},
	{every("save-at"), "export-every save-every"},
	{idle("--export FILE writes a copy of the model; " + allSteps), "export-name"},
	{idle("pictures are in OUT/test").alone(), "eval-save-to-disk save-eval-images save-depth"},
	{width, "max-resolution max-width"},
	{absent(resumeOut, "0"), "start-iter"},
	{absent("--test-list FILE holds photos out; others are all trained on"), "max-frames subsample-frames"},
	{absent("--init-grid X thins points out"), "subsample-points"},
	{absent("alpha of photos is transparency, and folders masks hold masks: --masks DIR"), "alpha-mode mask-mode"},
	{absent(scales + "--grow-grad2d"), "growth-grad-threshold"},
	{absent("--grow-factor X bounds growth"), "growth-select-fraction"},
	{absent(scales + "--noise-lr"), "mean-noise-weight"},
	{absent("--opacity-reg X lets opacities fall"), "opac-decay opac-loss-weight"},
	{absent("the loss has no LPIPS", "0", "0.0"), "lpips-loss-weight"},
	{taken("background-noise"), "background-noise-strength"},
	{absent(scales + "--lr-means"), "lr-mean lr-mean-end"},
	{taken("lr-sh0"), "lr-coeffs-dc"},
	{absent("--lr-shn X is the rate of higher degrees"), "lr-coeffs-sh-scale"},
	{taken("lr-logit-opacities"), "lr-opac"},
	{taken("lr-log-scales"), "lr-scale"},
	{taken("lr-quats"), "lr-rotation"},
	{absent("there are no levels of detail in training; vksplat convert --max-splats N makes models smaller", "0"),
		"lod-levels lod-refine-steps lod-decimation-keep lod-image-scale"},
	{idle("--tensorboard and --viewer show a run").alone(), "rerun-enabled"},
	{idle("--tensorboard and --viewer show a run"), "rerun-log-train-stats-every rerun-log-splats-every " +
		"rerun-max-img-size rerun-log-raw-images"},

	// Of LichtFeld Studio and OpenSplat.
	{turned("--antialiased"), "enable-mip"},
	{turned("--exposure"), "exposure-correction"},
	{turned("--exposure", "--white-balance", "--vignetting"), "ppisp"},
	{turned("--init", "random"), "random"},
	{turned("--random-background"), "bg-modulation"},
	{chosenBy(map[string][]string{"solidcolor": nil, "random": {"--random-background"},
		"modulation": {"--random-background"}}, "--background and --random-background choose it"), "bg-mode"},
	{absent("PPISP has no controller here; "+exposure, no).alone(),
		"ppisp-controller ppisp-freeze no-ppisp-exif-exposure"},
	{absent("there is no sparsity; --max-splats N limits the model", no).alone(), "enable-sparsity"},
	{absent("there is no sparsity; --max-splats N limits the model"),
		"sparsify-steps init-rho prune-ratio sparsity-method"},
	{idle(lensRead).alone(), "gut undistort"},
	{idle("it changes no model").alone(), "train no-splash no-interop no-cpu-cache no-fs-cache no-save preload-to-ram"},
	{idle("it changes no model"), "tile-mode log-level log-file morton-reorder-interval"},
	{idle("--preview FILE keeps a picture up to date"), "timelapse-images timelapse-every"},
	{turned("--eval"), "val"},
	{absent("--test-list FILE names photos to hold out"), "val-image"},
	{idle("pictures are in OUT/test"), "val-render"},
	{turned("--origin", "keep"), "keep-crs"},
	{absent("name the device: "+fault.Command("devices")+" lists them", no).alone(), "cpu"},
	{&foreignFlag{mean: func(v string, _ *foreignLine) meaning {
		if splatFile(v) {
			return as("--export", v)
		}
		return as("-m", v)
	}}, "output"},
}

// foreignFlags is the table by name.
var foreignFlags = func() map[string]*foreignFlag {
	all := map[string]*foreignFlag{}
	for _, row := range foreignTable {
		for name := range strings.FieldsSeq(row.names) {
			all[name] = row.means
		}
	}
	return all
}()
