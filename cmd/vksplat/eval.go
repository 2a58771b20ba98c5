package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/results"
)

// Splits of a capture that a model can be measured on.
const (
	splitTest  = "test"
	splitTrain = "train"
)

// evalOptions is everything that eval is asked for.
type evalOptions struct {
	models    []string
	capture   string // its folder; "": the one that the run recorded
	split     string
	protocol  string
	correct   string // way of correcting colours
	iteration int    // 0: the last
	testEvery int
	testList  string
	out       string // folder for the files of scores; "": that of the run
	compare   bool
	overwrite bool   // scores in out that another program wrote
	renders   string // folders of pictures, in place of a model
	gt        string
	weights   string // file of LPIPS's; "": it is not measured

	exposure    bool
	antialiased bool
	origin      captured.OriginFlag
	load        captured.Options
	device      pipeline.DeviceOptions
	config      pipeline.RenderConfig
	given       func(flag string) bool
}

func evalCommand(a *cli.Console) *cobra.Command {
	o := &evalOptions{split: splitTest, protocol: protocolGsplat, correct: metric.ColorAffine, testEvery: captured.HeldOutEvery, load: captured.Options{Model: scene.AnyModel},
		config: pipeline.RenderConfig{Near: pipeline.DefaultConfig().Near}}
	cmd := &cobra.Command{
		Use:   "eval OUT|FILE... [--capture SCENE]",
		Short: "Measure models on held-out photos, the way papers do",
		Long: "Render the held-out photos' views of a model and compare them with the photos: PSNR\n" +
			"and SSIM of each view and their means, as a Markdown table. OUT is the folder of a\n" +
			"training run, which knows its capture and what it held out; FILE is a splat file,\n" +
			"which needs --capture. results.json and per_view.json in OUT get the scores. With\n" +
			"--renders and --gt, two folders of pictures are compared, without a model or a\n" +
			"device.",
		Example: "  vksplat eval out\n" +
			"  vksplat eval out --protocol inria\n" +
			"  vksplat eval other.ply --capture my_scene --downscale 2\n" +
			"  vksplat eval out_a out_b --compare\n" +
			"  vksplat eval --renders test/ours_30000/renders --gt test/ours_30000/gt --protocol inria",
	}
	table := []optionGroup{{options: o.table()}, {options: loadTable(&o.load)}, {options: lookOptions(&o.config.Background, &o.config.Near)}, {options: deviceOptions(&o.device)}}
	fs := cmd.Flags()
	register(fs, table)
	offerValues(a, cmd, table)
	o.given = fs.Changed
	cmd.RunE = runs(a, func(args []string) error {
		o.models = args
		if err := o.check(); err != nil {
			return err
		}
		return runEval(a, o)
	})
	return cmd
}

// table lists the options that are eval's own.
func (o *evalOptions) table() []option {
	return []option{
		text(&o.capture, "capture", "compare with the photos of `SCENE` (default: where the capture was that OUT was trained on)").isFolder(),
		chosen(&o.split, "split", "photos that are compared: those held out, or those trained on", splitTest, splitTrain),
		chosen(&o.protocol, "protocol", "gsplat: single precision, SSIM inside the photo; inria: 8 bits, SSIM with zeros around it", protocolNames()...),
		chosen(&o.correct, "color-correct", "colour map that is fitted before the cc_ scores are taken; none: no such scores", metric.ColorAffine, metric.ColorQuadratic, colorNone),
		integer(&o.iteration, "iteration", "measure OUT's model of step `N`; 0: the last"),
		integer(&o.testEvery, "test-every", "every `N`th photo is held out, unless the capture says which (default for OUT: as it was trained)"),
		text(&o.testList, "test-list", "the photos that `FILE` names, one a line, are held out"),
		truth(&o.exposure, "exposure", "fit each photo's exposure on its left half, measure on the right (default: as OUT was trained)"),
		truth(&o.antialiased, "antialiased", "compensate opacity for the pixel filter (default: as the file says)"),
		other(&o.origin, "origin", "what was subtracted from the model's coordinates, `X,Y,Z` (default: as the file says)"),
		text(&o.out, "output", "write results.json and per_view.json to the folder `DIR` (default: OUT; none for a FILE)").letter("o").isFolder(),
		overwriteOption(&o.overwrite, "what another program measured"),
		text(&o.weights, "lpips-weights", "measure LPIPS too, with the networks' weights in `FILE`, which tools/lpips_weights.py makes"),
		truth(&o.compare, "compare", "print one table with the models side by side"),
		text(&o.renders, "renders", "compare the pictures in `DIR` with those of --gt").isFolder(),
		text(&o.gt, "gt", "folder of the photos that --renders are compared with, `DIR`; names and sizes agree").isFolder(),
	}
}

// check reports what makes no sense, before any work.
func (o *evalOptions) check() error {
	pictures := o.renders != "" || o.gt != ""
	if !pictures {
		o.config.Smaller = "compare smaller pictures (--downscale)"
	}
	switch {
	case pictures && (o.renders == "" || o.gt == ""):
		return fault.Usagef("as in: vksplat eval --renders DIR --gt DIR", "--renders and --gt belong together")
	case pictures && len(o.models) > 0:
		return fault.Usagef("leave out one of the two", "--renders and %s: pictures are compared, or a model is measured", o.models[0])
	case !pictures && len(o.models) == 0:
		return fault.Usagef("as in: vksplat eval OUT, or vksplat eval FILE --capture SCENE", "name a model: the folder of a training run, or a splat file")
	case o.compare && len(o.models) < 2:
		return fault.Usagef("as in: vksplat eval A B --compare", "flag --compare: two models or more are needed")
	case o.out != "" && len(o.models) > 1:
		return fault.Usagef("measure one model at a time, or leave -o out", "flag -o: scores of %d models would go to one folder", len(o.models))
	case o.testEvery < 2:
		return fault.Usagef("give 2 or more", "flag --test-every: %d leaves no photo to train on", o.testEvery)
	case o.iteration < 0:
		return fault.Usagef("give the number of a step that OUT has a model of, or 0", "flag --iteration: %d is no step", o.iteration)
	case !(o.config.Near > 0) || math.IsInf(o.config.Near, 0):
		return fault.Usagef("give a distance above 0, as in 0.01", "flag --near: %g is no distance", o.config.Near)
	}
	if pictures {
		for _, name := range []string{"capture", "split", "iteration", "test-every", "test-list", "near", "images", "downscale", "full-photos", "model", "format", "undo-applied-transform", "antialiased", "origin", "device", "max-vram"} {
			if o.given(name) && !(o.weights != "" && (name == "device" || name == "max-vram")) {
				return fault.Usagef("leave it out", "flag --%s has no meaning for folders of pictures", name)
			}
		}
	}
	return nil
}

// runEval measures all models and prints the tables.
func runEval(a *cli.Console, o *evalOptions) (err error) {
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = fault.ErrInterrupted
		}
		err = remedy.Memory(err)
	}()
	if err := pipeline.LimitHeap(o.device); err != nil {
		return err
	}
	var jobs []*evalJob
	claimed := map[string]func(){} // folders that files of scores go to
	unclaim := func() {
		for _, release := range claimed {
			release()
		}
	}
	defer unclaim()
	if o.renders != "" {
		job, err := pictureJob(a, o)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	for _, path := range o.models { // what is wrong with the last is told before the first is measured
		job, err := modelJob(a, *o, path)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	for _, job := range jobs {
		if job.folder == "" || claimed[output.Absolute(job.folder)] != nil {
			continue
		}
		release, err := output.Claim(job.folder, true)
		if err != nil {
			return err
		}
		claimed[output.Absolute(job.folder)] = release
	}
	a.OnAbort = unclaim
	ctx, stop := a.Stoppable(cli.Always("stopping after this picture; no scores are written"))
	defer stop()
	if err := measureAll(a, ctx, o, jobs); err != nil {
		return err
	}
	if o.compare {
		printComparison(a, jobs)
	}
	return nil
}

// measureAll does the jobs, on one device, and writes their scores.
func measureAll(a *cli.Console, ctx context.Context, o *evalOptions, jobs []*evalJob) (err error) {
	var device *pipeline.Device
	for _, job := range jobs {
		if err := job.refuseForeign(); err != nil {
			return err
		}
	}
	if o.renders == "" || o.weights != "" {
		if device, err = pipeline.OpenDevice(o.device); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
		device.LimitHeap()
		if note := device.Note(); note != "" {
			a.Note(note)
		}
	}
	for _, job := range jobs { // what has no room in the device is told before the first is measured
		if err := job.planPerceptual(device); err != nil {
			return err
		}
	}
	lpips, err := o.openPerceptual(device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lpips.close()) }()
	for _, job := range jobs {
		if err := lpips.use(job); err != nil {
			return err
		}
		if err := job.measure(ctx, device); err != nil {
			return err
		}
		if job.folder != "" {
			if err := results.MergeResults(job.folder, &job.result); err != nil {
				return err
			}
			if text := captured.HiddenScores(job.folder, job.rec); text != "" {
				a.Note(text)
			}
			if err := output.AddWritten(job.folder, output.ScoreFilesIn(job.folder)...); err != nil {
				return err
			}
		}
		if !o.compare {
			printResult(a, job)
		}
	}
	return nil
}

// heldOutViews returns the numbers of the cameras of a split. names are those that a run recorded as held out; nil: the capture or every says.
func (o *evalOptions) heldOutViews(c *scene.Capture, names []string) ([]int, error) {
	train, test := c.Split(o.testEvery)
	if names != nil {
		held := map[string]bool{}
		for _, n := range names {
			held[n] = true
		}
		train, test = nil, nil
		for i, cam := range c.Cameras {
			if held[cam.Name] {
				test = append(test, i)
			} else {
				train = append(train, i)
			}
		}
		if lost := len(held) - len(test); lost > 0 {
			return nil, &fault.HintedError{Err: fmt.Errorf("%s: %w: %d of the %d photos that were held out are not there", c.Root, fault.ErrData, lost, len(held)),
				Hint: "name the capture that the model was trained on with --capture, or other photos with --test-list or --test-every"}
		}
	}
	views := test
	if o.split == splitTrain {
		views = train
	}
	if len(views) == 0 {
		return nil, &fault.HintedError{Err: fmt.Errorf("%s: %w: no photo was held out", c.Root, fault.ErrData),
			Hint: "train with --eval, choose photos with --test-list or --capture, or measure those trained on with --split train"}
	}
	return views, nil
}
