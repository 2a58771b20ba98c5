package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vksplat/pipeline"
	"vksplat/scene"
)

// What bench measures unless the user says otherwise.
const (
	benchSteps  = 200 // of a round
	benchRounds = 3
	benchWarm   = 50   // least steps before the first round
	benchEpoch  = 500  // most, where one visit of every photo is more
	benchTrain  = 1000 // steps of training before, without a trained model: refinement has begun then
)

// benchOptions is everything that bench is asked for.
type benchOptions struct {
	trainOptions
	captures    []string
	trainSteps  int // -1: chosen
	warm        int // -1: chosen
	steps       int
	rounds      int
	json        string
	against     string
	maxSlowdown float64
}

// benchLeavesOut are the options of train that mean nothing to bench.
var benchLeavesOut = []string{"model-path", "eval-at", "origin", "checkpoint-every", "save-at", "keep-checkpoints", "resume", "force", "dry-run", "json",
	"metrics-every", "tensorboard", "report", "print-config", "help", "help-all"}

func (a *app) benchCommand() *cobra.Command {
	o := &benchOptions{trainOptions: *newTrainOptions(), trainSteps: -1, warm: -1, steps: benchSteps, rounds: benchRounds}
	o.checkpoints.off = true
	cmd := &cobra.Command{
		Use:   "bench [SCENE]...",
		Short: "Measure training steps, pass by pass",
		Long: "Measure how long training steps take on a device, pass by pass. The model stays as\n" +
			"it is meanwhile: steps do all their work with learning rates of zero, and nothing\n" +
			"is refined.\n\n" +
			"Beside the flags below, bench understands all flags of train that say what is\n" +
			"trained and how: vksplat train --help-all lists them.",
		Example: "  vksplat bench my_scene --init ply:out/point_cloud/iteration_30000/point_cloud.ply\n" +
			"  vksplat bench my_scene --preset mcmc --warm-steps 2000 --json new.json --against old.json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	own := []option{
		integer(&o.trainSteps, "warm-steps", "train `N` steps before, by the recipe asked for (default: 0 with --init ply:FILE, else 1000)"),
		integer(&o.steps, "steps", "measure `N` steps a round"),
		integer(&o.rounds, "repeat", "measure `N` rounds"),
		integer(&o.warm, "settle", "go `N` steps before the first round (default: 50, or more to see every photo once)"),
		text(&o.json, "json", "write the results to `FILE` as JSON"),
		text(&o.against, "against", "compare with the results in `FILE`, which --json wrote"),
		float(&o.maxSlowdown, "max-slowdown", "with --against, fail where a step takes more than `X` times as long; 0: never"),
	}
	table := append([]optionGroup{{options: own}}, dropOptions(o.table(), benchLeavesOut...)...)
	fs := cmd.Flags()
	register(fs, table)
	o.given = fs.Changed
	a.completes(cmd, table)
	hideOthers(fs, own, "device", "max-vram", "downscale", "init", "preset", "progress")
	cmd.RunE = a.runs(func(args []string) error {
		o.captures = args
		if err := o.resolve(fs.Changed); err != nil {
			return err
		}
		if err := o.checkBench(); err != nil {
			return err
		}
		return a.bench(o)
	})
	return cmd
}

// checkBench reports what makes no sense.
func (o *benchOptions) checkBench() error {
	switch {
	case len(o.captures) == 0:
		return usagef("as in: vksplat bench SCENE", "no capture is given")
	case o.steps < 1 || o.steps > 1_000_000:
		return usagef("give 1 to 1000000, as in 200", "flag --steps: %d is no number of steps to measure", o.steps)
	case o.rounds < 1 || o.rounds > 1000:
		return usagef("give 1 to 1000, as in 3", "flag --repeat: %d is no number of rounds", o.rounds)
	case o.warm < -1 || o.warm > 1_000_000:
		return usagef("give 0 to 1000000, as in 50", "flag --settle: %d is no number of steps", o.warm)
	case o.trainSteps < -1 || o.trainSteps > 10_000_000:
		return usagef("give 0 to 10000000, as in 1000", "flag --warm-steps: %d is no number of steps", o.trainSteps)
	case !(o.maxSlowdown >= 0):
		return usagef("give a factor, as in 1.05", "flag --max-slowdown: %g is no factor", o.maxSlowdown)
	case o.maxSlowdown > 0 && o.against == "":
		return usagef("give --against FILE", "flag --max-slowdown: there is nothing to compare with")
	case o.stepsScaler != 1 && o.trainSteps < 0 && o.init.Kind != scene.InitPLY:
		return usagef("give --warm-steps", "flag --steps-scaler: how many of the scaled steps to train before is not said")
	}
	return nil
}

// bench measures all captures.
func (a *app) bench(o *benchOptions) error {
	events := a.stdout
	if o.progress == progressJSON { // which is alone on standard output
		text := *a
		text.stdout = a.stderr
		a = &text
	}
	var before *benchFile
	if o.against != "" {
		var err error
		if before, err = readBench(o.against); err != nil {
			return err
		}
	}
	ctx, stop := a.interruptible("stopping after this step")
	defer stop()
	file := &benchFile{Format: benchFormat, Version: programVersion(), Commit: commitID(), Steps: o.steps, Rounds: o.rounds}
	for _, path := range o.captures {
		one := *o
		one.scene = path
		b := &benchRun{trainRun: &trainRun{trainOptions: &one.trainOptions, app: a}, o: &one, file: file}
		s, err := b.measure(ctx, newProgress(events, o.progress, 0, 0))
		if errors.Is(err, context.Canceled) {
			return errInterrupted
		}
		if err != nil {
			return memoryHint(err)
		}
		file.Scenes = append(file.Scenes, s)
		a.printScene(s)
	}
	if o.json != "" {
		if err := writeBench(o.json, file); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return a.compareBench(before, file, o.maxSlowdown)
}

// benchRun measures one capture.
type benchRun struct {
	*trainRun
	o    *benchOptions
	file *benchFile
}

// measure loads the capture, trains it as far as asked, and measures.
func (b *benchRun) measure(ctx context.Context, show *progress) (s *benchScene, err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	defer b.flushNotes()
	b.choose()
	if err := b.begin(ctx); err != nil {
		return nil, err
	}
	b.file.Device = benchDeviceOf(b.device)
	b.app.printf("%s\n", b.firstLine())
	b.flushNotes()
	t := b.trainer
	m := pipeline.MeasureOptions{Warm: b.o.warm, Steps: b.o.steps, Rounds: b.o.rounds}
	if m.Warm < 0 {
		m.Warm = min(max(benchWarm, len(b.train)), max(benchWarm, benchEpoch))
	}
	if all := b.o.trainSteps + m.Total(); all > b.config.Iterations {
		return nil, usagef(fmt.Sprintf("give --iterations %d or more, or fewer steps", all), "flag --iterations: %d steps are fewer than the %d asked for", b.config.Iterations, all)
	}
	b.showing(show, b.o.trainSteps+m.Total())
	defer b.showing(nil, 0)
	if err := t.RunTo(ctx, b.o.trainSteps, show.update); err != nil {
		return nil, err
	}
	rounds, err := t.Measure(ctx, m, show.update)
	show.interrupt()
	if err != nil {
		return nil, err
	}
	return b.scene(rounds), nil
}

// choose completes what was not said. Without training before, no room for more splats is planned.
func (b *benchRun) choose() {
	if b.o.trainSteps < 0 {
		b.o.trainSteps = benchTrain
		if b.init.Kind == scene.InitPLY {
			b.o.trainSteps = 0
		}
	}
	if b.o.trainSteps == 0 {
		b.config.RefineEvery, b.config.Splats = 0, 0
	}
}

// showing makes p the line that other output goes around.
func (b *benchRun) showing(p *progress, total int) {
	b.app.text.Lock()
	defer b.app.text.Unlock()
	if p != nil {
		p.text, p.total = b.app.text, total
		p.bytes = func() int64 { return b.trainer.MemoryStats().DeviceBytes }
		p.spent = func() float64 { return b.trainer.Seconds() }
	}
	b.app.show = p
}
