package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

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
	benchSteps  = 200 // of a round, or some more: every photo as often
	BenchRounds = 3
	benchSettle = 50   // least steps before the first round
	benchEpoch  = 500  // most, where one visit of every photo is more
	benchTrain  = 1000 // steps of training before, without a trained model: refinement has begun then
)

// Options is everything that bench is asked for.
type Options struct {
	train.Options
	Suite       string
	TrainSteps  autoFlag
	Settle      autoFlag
	Steps       autoFlag
	Rounds      int
	Json        string
	Against     string
	MaxSlowdown float64
	Overwrite   bool // the file of --json
}

// LeavesOut are the options of train that mean nothing to bench.
var LeavesOut = []string{"block", "share-steps", "export", "model-path", "eval-at", "origin", "checkpoint-every",
	"save-at", "keep-checkpoints", "resume", "accept-changes", "overwrite", "dry-run", "json",
	"metrics-every", "tensorboard", "report", "print-config", "time-limit"}

// Check reports what makes no sense.
func (o *Options) Check(captures []string) error {
	dangling := fault.Dangling(o.Json)
	switch {
	case len(captures) > 0 && o.Given("suite"):
		return fault.Usagef("leave out one of the two", "%s: these models are measured without SCENE, and "+
			"%s is given", fault.Named("suite"), captures[0])
	case len(captures) == 0 && (o.TrainSteps > 0 || o.Init.Kind != initial.InitAuto):
		return fault.Usagef("name a capture, or leave them out", "%s: without SCENE there is no training beforehand",
			fault.Named("init", "warm-steps"))
	case len(captures) > 0 && o.trained() > o.Config.Iterations:
		return fault.Usagef("give "+fault.Setting("iterations")+" too",
			"%s: the recipe has %d steps, fewer than %d", fault.Named("warm-steps"), o.Config.Iterations, o.trained())
	case o.Steps == 0:
		return fault.Usagef("give 1 or more, as in 200", "%s: 0 is not a number of steps to measure",
			fault.Named("steps"))
	case o.MaxSlowdown > 0 && o.Against == "":
		return fault.Usagef("give "+fault.Setting("against")+" FILE", "%s: nothing to compare with",
			fault.Named("max-slowdown"))
	case dangling != nil:
		return dangling
	case o.Json != "" && isOther(o.Json):
		return fault.Usagef("name a file", "%s: %s is not a regular file", fault.Named("json"), o.Json)
	case o.Json != "" && (output.IsFolder(o.Json) || !output.IsFolder(filepath.Dir(o.Json))):
		return fault.Usagef("name a file in a folder that exists", "%s: %s cannot be written", fault.Named("json"),
			o.Json)
	}
	for _, path := range captures { // found missing before anything is measured
		if _, err := os.Stat(path); err != nil {
			_, err = load.Capture(path, o.Load.Options())
			return err
		}
	}
	if o.Json != "" {
		if err := output.RefuseExisting("json", o.Overwrite, o.Json); err != nil {
			return err
		}
		dir := filepath.Dir(o.Json)
		if err := output.Probe(dir); err != nil {
			return output.FolderError(dir, err)
		}
	}
	return nil
}

// trained returns how many steps are trained before.
func (o *Options) trained() int {
	if o.Init.Kind == initial.InitPLY {
		return o.TrainSteps.or(0)
	}
	return o.TrainSteps.or(benchTrain)
}

// Run measures all captures, or the suite.
func Run(console *cli.Console, o *Options, captures []string) error {
	events := console.Stdout
	if o.Progress == meter.JSON { // which is alone on standard output
		console = console.ToStderr()
	}
	var before *benchFile
	if o.Against != "" {
		var err error
		if before, err = readBench(o.Against); err != nil {
			return err
		}
	}
	ctx, stop := console.Interruptible(cli.Always("stopping after this step"))
	defer stop()
	b := &bencher{console: console, o: o, events: events, round: madeUpRound,
		file: &benchFile{Format: benchFormat, Version: cli.Version(), Commit: cli.CommitID(), Rounds: o.Rounds}}
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
		return remedy.Memory(remedy.Ceiling(err, o.Device))
	}
	if o.Json != "" {
		if err := output.WriteJSON(o.Json, b.file); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return compareBench(console, before, b.file, o.MaxSlowdown)
}

// openDevice measures what the device can do. It is opened for that alone, so that what it takes does not count as
// memory of training.
func (b *bencher) openDevice() (err error) {
	if err := models.LimitHeap(b.console, b.o.Device); err != nil {
		return err
	}
	d, err := pipeline.OpenDevice(b.o.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(d)) }()
	s := d.Summary()
	b.file.Device = benchDevice{Name: s.Name, Type: s.Type, Driver: s.Driver, API: s.API,
		SubgroupSize: s.Limits.SubgroupSize}
	if b.file.Rates, err = d.MeasureRates(); err != nil {
		return err
	}
	r := b.file.Rates
	b.console.Printf("%s (%s), subgroups of %d: copies %.0f GB/s, %.3g T instructions/s, %.3g T words/s of shared "+
		"memory, %.3g T shuffles/s, a launch %.2f us\n", s.Name, s.Driver, s.Limits.SubgroupSize, r.CopyBytes/1e9,
		r.Instructions/1e12, r.SharedWords/1e12, r.Shuffles/1e12, 1e6*r.LaunchSeconds)
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
		return fault.Usagef("give auto, or a number as in 100", "%q is not a number of steps up to %d", s, mostAuto)
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
