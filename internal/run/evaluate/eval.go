package evaluate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/results"
)

// Splits of a capture that a model can be measured on.
const (
	SplitTest  = "test"
	SplitTrain = "train"
)

// ErrHeldOut is the cause of an error about photos that were not held out, or are not there.
var ErrHeldOut = fault.Sentinel(fault.ErrData, fault.ErrData.Error(), "")

// Options is everything that eval is asked for.
type Options struct {
	Models    []string
	Capture   string // its folder; "": the one that the run recorded
	Split     string
	Protocol  string
	Correct   string // way of correcting colours
	Iteration int    // 0: the last
	TestEvery int
	TestList  string
	Out       string // folder for the files of scores; "": that of the run
	Compare   bool
	Overwrite bool   // scores in out that another program wrote
	Renders   string // folders of pictures, in place of a model
	Gt        string
	AsTaken   bool            // photos are compared as their lenses took them
	others    map[bool]string // by AsTaken: what names scores that are not of the pixels that train's are of
	Weights   string          // file of LPIPS's; "": it is not measured

	Antialiased bool
	Origin      captured.OriginFlag
	Load        captured.Options
	Device      pipeline.DeviceOptions
	Config      pipeline.RenderConfig
	Given       func(flag string) bool
}

// NewOptions returns the defaults, as of a call without flags.
func NewOptions() *Options {
	return &Options{Split: SplitTest, Protocol: ProtocolGsplat, Correct: metric.ColorAffine,
		TestEvery: captured.HeldOutEvery,
		Load:      captured.Options{Model: scene.AnyModel},
		Config:    pipeline.RenderConfig{Near: recipe.Default().Near},
		Given:     func(string) bool { return false }, others: map[bool]string{true: "_as_taken"}}
}

// Check reports what makes no sense, before any work.
func (o *Options) Check() error {
	pictures := o.Renders != "" || o.Gt != ""
	if !pictures {
		o.Config.Smaller = "compare smaller pictures (" + fault.Setting("downscale") + ")"
	}
	switch {
	case o.Load.Cameras == captured.CamerasAuto: // which would have to know what the run knew of held-out photos
		return fault.Usagef("leave it out, or give the cameras that train left in OUT",
			"%s auto: only training calibrates", fault.Named("cameras"))
	case pictures && (o.Renders == "" || o.Gt == ""):
		return fault.Usagef("as in: "+fault.Command("eval --renders DIR --gt DIR"), "%s and %s belong together",
			fault.Setting("renders"), fault.Setting("gt"))
	case pictures && len(o.Models) > 0:
		return fault.Usagef("leave out one of the two", "%s and %s: compare pictures, or measure a "+
			"model", fault.Setting("renders"), o.Models[0])
	case !pictures && len(o.Models) == 0:
		return fault.Usagef("as in: "+fault.Command("eval OUT")+", or "+fault.Command("eval FILE --capture SCENE"),
			"name a model: the folder of a training run, or a splat file")
	case o.Compare && len(o.Models) < 2:
		return fault.Usagef("as in: "+fault.Command("eval A B --compare"), "%s: two models or more are needed",
			fault.Named("compare"))
	case o.Out != "" && len(o.Models) > 1:
		return fault.Usagef("measure one model at a time, or leave "+fault.Setting("output")+" out",
			"%s: scores of %d models would go to one folder", fault.Named("output"), len(o.Models))
	}
	if err := captured.CheckSplit(o.TestList, o.Given); err != nil {
		return err
	}
	if pictures {
		for _, name := range []string{"capture", "split", "iteration", "test-every", "test-list", "near", "images",
			"downscale", "full-photos", "model", "format", "undo-applied-transform", "antialiased", "native-lens",
			"origin", "cameras",
			"device", "max-vram"} {
			if o.Given(name) && !(o.Weights != "" && (name == "device" || name == "max-vram")) {
				return fault.Usagef("leave it out", "%s has no meaning for folders of pictures", fault.Named(name))
			}
		}
	}
	return nil
}

// Run measures all models and prints the tables.
func Run(console *cli.Console, o *Options) (err error) {
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = fault.ErrInterrupted
		}
		err = remedy.Memory(remedy.Ceiling(err, o.Device))
	}()
	if err := models.LimitHeap(console, o.Device); err != nil {
		return err
	}
	var jobs []*Job
	claimed := map[string]func(){} // folders that files of scores go to
	unclaim := func() {
		for _, release := range claimed {
			release()
		}
	}
	defer unclaim()
	if o.Renders != "" {
		job, err := pictureJob(console, o)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	for _, path := range o.Models { // report what is wrong with the last before the first is measured
		job, err := ModelJob(console, *o, path)
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
	console.OnAbort = unclaim
	ctx, stop := console.Stoppable(cli.Always("stopping after this picture; no scores are written"))
	defer stop()
	if err := MeasureAll(console, ctx, o, jobs); err != nil {
		return err
	}
	if o.Compare {
		printComparison(console, jobs)
	}
	return nil
}

// MeasureAll does the jobs, on one device, and writes their scores.
func MeasureAll(console *cli.Console, ctx context.Context, o *Options, jobs []*Job) (err error) {
	var device *pipeline.Device
	for _, job := range jobs {
		if err := job.refuseForeign(); err != nil {
			return err
		}
	}
	if o.Renders == "" || o.Weights != "" {
		if device, err = models.OpenDevice(console, o.Device); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	}
	for _, job := range jobs { // report what does not fit the device before the first is measured
		if err := job.planPerceptual(device); err != nil {
			return err
		}
	}
	lpips, err := o.openPerceptual(device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lpips.Close()) }()
	for _, job := range jobs {
		if err := lpips.use(job); err != nil {
			return err
		}
		if err := job.measure(ctx, device); err != nil {
			return err
		}
		if job.folder != "" {
			replaced, err := results.MergeResults(job.folder, &job.Result)
			if err != nil {
				return err
			}
			if len(replaced) > 0 {
				console.Note(fmt.Sprintf("%s holds scores of one protocol: those of %s by another were replaced",
					filepath.Join(job.folder, "results.json"), strings.Join(replaced, ", ")))
			}
			if err := output.AddWritten(job.folder, output.PathsIn(job.folder, output.ScoreFiles)...); err != nil {
				return err
			}
		}
		if !o.Compare {
			printResult(console, job)
		}
	}
	return nil
}

// heldOutViews returns the numbers of the cameras of the split that is measured, which flags, the record of the run
// (nil without one), the capture or its order say. Where a record says what training held out, that is what the capture
// holds out then: whatever is measured, the frame and with it the near plane are those of training.
func (o *Options) heldOutViews(c *scene.Capture, rec *captured.Record) ([]int, error) {
	if rec == nil || o.TestList != "" || o.Given("test-every") {
		if err := captured.HoldOut(c, o.TestList, o.TestEvery); err != nil {
			return nil, err
		}
	} else if lost := c.HoldOutCameras(rec.HeldOut); lost > 0 {
		return nil, fault.WithHint(fmt.Errorf("%s: %w: %d of the %d photos that were held out cannot be found",
			c.Root, ErrHeldOut, lost, len(rec.HeldOut)),
			"name the capture that the model was trained on with "+fault.Setting("capture")+
				", or other photos with "+fault.Setting("test-list")+" or "+fault.Setting("test-every"))
	}
	train, test := c.Split(0)
	if rec != nil && rec.Describes(c, o.Capture) {
		c.HoldOutCameras(rec.HeldOut)
	}
	views := test
	if o.Split == SplitTrain {
		views = train
	}
	if len(views) == 0 {
		return nil, fault.WithHint(fmt.Errorf("%s: %w: no photo was held out", c.Root, ErrHeldOut),
			"train with "+fault.Setting("eval")+", choose photos with "+fault.Setting("test-list")+" or "+
				fault.Setting("capture")+", or measure those trained on with "+fault.Setting("split")+" train")
	}
	return views, nil
}
