package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene/initial"
	"vksplat/scene/load"
)

// What bench measures unless the user says otherwise.
const (
	benchSteps  = 200 // of a round
	benchRounds = 3
	benchSettle = 50   // least steps before the first round
	benchEpoch  = 500  // most, where one visit of every photo is more
	benchTrain  = 1000 // steps of training before, without a trained model: refinement has begun then
)

// benchOptions is everything that bench is asked for.
type benchOptions struct {
	train.Options
	suite       string
	trainSteps  autoFlag
	settle      autoFlag
	steps       autoFlag
	rounds      int
	json        string
	against     string
	maxSlowdown float64
	overwrite   bool // the file of --json
}

// benchLeavesOut are the options of train that mean nothing to bench.
var benchLeavesOut = []string{"block", "share-steps", "export", "model-path", "eval-at", "origin", "checkpoint-every", "save-at", "keep-checkpoints", "resume", "accept-changes", "overwrite", "dry-run", "json",
	"metrics-every", "tensorboard", "report", "print-config", "help", "help-all"}

func benchCommand(a *cli.Console) *cobra.Command {
	o := &benchOptions{Options: *newTrainOptions(), suite: suiteQuick, trainSteps: -1, settle: -1, steps: -1, rounds: benchRounds}
	o.Checkpoints.Off = true
	cmd := &cobra.Command{
		Use:   "bench [SCENE]...",
		Short: "Measure training steps, pass by pass",
		Long: "Measure how long training steps take on a device, pass by pass, and how far each\n" +
			"pass is from what the device can do. Without SCENE, made-up models of several\n" +
			"sizes are measured. A model stays as it is meanwhile: steps do all their work,\n" +
			"with learning rates of zero, and nothing is refined.\n\n" +
			"Beside the flags below, bench understands all flags of train that say what is\n" +
			"trained and how: vksplat train --help-all lists them.",
		Example: "  vksplat bench\n" +
			"  vksplat bench my_scene --init ply:out/point_cloud/iteration_30000/point_cloud.ply\n" +
			"  vksplat bench my_scene --preset mcmc --warm-steps 2000 --json new.json --against old.json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	own := o.benchTable()
	table := append([]optionGroup{{options: own}}, dropOptions(trainTable(&o.Options), benchLeavesOut...)...)
	fs := cmd.Flags()
	register(fs, table)
	o.Given = fs.Changed
	offerValues(a, cmd, table)
	hideOthers(fs, own, "device", "max-vram", "downscale", "init", "preset", "progress")
	cmd.RunE = runs(a, func(captures []string) error {
		if err := resolveSettings(&o.Options, fs.Changed); err != nil {
			return err
		}
		if err := o.checkBench(captures); err != nil {
			return err
		}
		return runBench(a, o, captures)
	})
	return cmd
}

// benchTable lists the options that train does not have.
func (o *benchOptions) benchTable() []option {
	return []option{
		chosen(&o.suite, "suite", "without SCENE, measure the models of `NAME`: quick has a few sizes, full goes from 0.1 to 10 million splats and from 0.25 to 8 megapixels", suiteNames()...),
		other(&o.trainSteps, "warm-steps", "train `N` steps of the recipe before; auto: 0 with --init ply:FILE, else 1000"),
		other(&o.settle, "settle", "go `N` steps before the first round; auto: 50, or more to see every photo once"),
		other(&o.steps, "steps", "measure `N` steps a round; auto: 200, or without SCENE fewer where these take more than a few seconds"),
		integer(&o.rounds, "repeat", "measure `N` rounds"),
		text(&o.json, "json", "write the results to `FILE` as JSON"),
		overwriteOption(&o.overwrite, "the file of --json"),
		text(&o.against, "against", "compare with the results in `FILE`, which --json wrote"),
		float(&o.maxSlowdown, "max-slowdown", "with --against, fail where a step takes more than `X` times as long; 0: never"),
	}
}

// checkBench reports what makes no sense.
func (o *benchOptions) checkBench(captures []string) error {
	switch {
	case len(captures) > 0 && o.Given("suite"):
		return fault.Usagef("leave out one of the two", "flag --suite: these models are measured without SCENE, and %s is given", captures[0])
	case len(captures) == 0 && (o.trainSteps > 0 || o.Init.Kind != initial.InitAuto):
		return fault.Usagef("name a capture, or leave the flag out", "flags --init and --warm-steps: without SCENE nothing is trained before")
	case len(captures) > 0 && o.trained() > o.Config.Iterations:
		return fault.Usagef("give --iterations too", "flag --warm-steps: the recipe has %d steps, fewer than %d", o.Config.Iterations, o.trained())
	case o.steps == 0:
		return fault.Usagef("give 1 or more, as in 200", "flag --steps: 0 is no number of steps to measure")
	case o.rounds < 1 || o.rounds > 1000:
		return fault.Usagef("give 1 to 1000, as in 3", "flag --repeat: %d is no number of rounds", o.rounds)
	case !(o.maxSlowdown >= 0):
		return fault.Usagef("give a factor, as in 1.05", "flag --max-slowdown: %g is no factor", o.maxSlowdown)
	case o.maxSlowdown > 0 && o.against == "":
		return fault.Usagef("give --against FILE", "flag --max-slowdown: there is nothing to compare with")
	case o.json != "" && isOther(o.json):
		return fault.Usagef("name a file", "flag --json: %s is no regular file", o.json)
	case o.json != "" && (output.IsFolder(o.json) || !output.IsFolder(filepath.Dir(o.json))):
		return fault.Usagef("name a file in a folder that exists", "flag --json: %s cannot be written", o.json)
	}
	for _, path := range captures { // found missing before anything is measured
		if _, err := os.Stat(path); err != nil {
			_, err = load.Capture(path, o.Load.Options())
			return err
		}
	}
	if o.json != "" {
		if err := output.RefuseExisting("flag --json: ", o.overwrite, o.json); err != nil {
			return err
		}
		dir := filepath.Dir(o.json)
		if err := output.Probe(dir); err != nil {
			return output.FolderError(dir, err)
		}
	}
	return nil
}

// trained returns how many steps are trained before.
func (o *benchOptions) trained() int {
	if o.Init.Kind == initial.InitPLY {
		return o.trainSteps.or(0)
	}
	return o.trainSteps.or(benchTrain)
}

// runBench measures all captures, or the suite.
func runBench(a *cli.Console, o *benchOptions, captures []string) error {
	events := a.Stdout
	if o.Progress == meter.JSON { // which is alone on standard output
		a = a.ToStderr()
	}
	var before *benchFile
	if o.against != "" {
		var err error
		if before, err = readBench(o.against); err != nil {
			return err
		}
	}
	ctx, stop := a.Interruptible(cli.Always("stopping after this step"))
	defer stop()
	b := &bencher{app: a, o: o, events: events, file: &benchFile{Format: benchFormat, Version: cli.Version(), Commit: cli.CommitID(), Rounds: o.rounds}}
	err := b.openDevice()
	if err == nil && len(captures) > 0 {
		err = b.captures(ctx, captures)
	} else if err == nil {
		err = b.suite(ctx)
	}
	if errors.Is(err, context.Canceled) {
		return fault.ErrInterrupted
	}
	if err != nil {
		return remedy.Memory(err)
	}
	if o.json != "" {
		if err := writeBench(o.json, b.file); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return compareBench(a, before, b.file, o.maxSlowdown)
}

// openDevice measures what the device can do. It is opened for that alone, so that what it takes does not count as memory of training.
func (b *bencher) openDevice() (err error) {
	if err := pipeline.LimitHeap(b.o.Device); err != nil {
		return err
	}
	d, err := pipeline.OpenDevice(b.o.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(d)) }()
	s := d.Summary()
	b.file.Device = benchDevice{Name: s.Name, Type: s.Type, Driver: s.Driver, API: s.API, SubgroupSize: s.Limits.SubgroupSize}
	if b.file.Rates, err = d.MeasureRates(); err != nil {
		return err
	}
	b.app.Printf("%s (%s), subgroups of %d: copies %.0f GB/s, %.3g T instructions/s\n",
		s.Name, s.Driver, s.Limits.SubgroupSize, b.file.Rates.CopyBytes/1e9, b.file.Rates.Instructions/1e12)
	return nil
}

// autoFlag is a number from 0 up, or below 0 where the program chooses.
type autoFlag int

// mostAuto is the largest number.
const mostAuto = 10_000_000

func (f *autoFlag) Type() string { return "N" }

func (f *autoFlag) String() string {
	if *f < 0 {
		return "auto"
	}
	return strconv.Itoa(int(*f))
}

// Set parses auto or a number.
func (f *autoFlag) Set(s string) error {
	if s == "auto" {
		*f = -1
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > mostAuto {
		return fault.Usagef("give auto, or a number as in 100", "%q is no number of steps up to %d", s, mostAuto)
	}
	*f = autoFlag(n)
	return nil
}

// or returns the number, or chosen where there is none.
func (f autoFlag) or(chosen int) int {
	if f < 0 {
		return chosen
	}
	return int(f)
}
