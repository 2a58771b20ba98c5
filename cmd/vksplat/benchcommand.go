package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/bench"
)

// benchOptions are the defaults of bench.
func benchOptions(console *cli.Console) *bench.Options {
	o := &bench.Options{Options: *trainingFor(console), Suite: bench.SuiteQuick, TrainSteps: -1, Settle: -1, Steps: -1,
		Rounds: bench.BenchRounds}
	o.Checkpoints.Off = true
	return o
}

func benchCommand(console *cli.Console) *cobra.Command {
	o := benchOptions(console)
	cmd := &cobra.Command{
		Use:   "bench [SCENE]...",
		Short: "Measure training steps, pass by pass",
		Long: "Measure how long training steps take, pass by pass, and how close each pass is to the\n" +
			"device's limits. Passes are timed in steps with timestamps, whole steps without; the table\n" +
			"adds up to the latter. Without SCENE, synthetic models of several sizes are measured.\n\n" +
			"The model does not change meanwhile: steps do all their work with learning rates of zero,\n" +
			"and without refinement. bench also takes train's flags for the model and its training.",
		Example: "  vksplat bench\n" +
			"  vksplat bench my_scene --init ply:model.ply\n" +
			"  vksplat bench my_scene --preset mcmc --json new.json --against old.json",
		ValidArgsFunction: folders,
	}
	own := benchTable(o)
	table := append([]optionGroup{{options: own}}, dropOptions(trainTable(&o.Options), bench.LeavesOut...)...)
	first := []string{"preset", "downscale", "init", "device", "max-vram", "progress"}
	for _, o := range own {
		first = append(first, o.name)
	}
	layout := helpLayout{first, presetHelp}
	return newCommand(console, cmd, table, layout, func(flags *pflag.FlagSet, captures []string) error {
		if err := resolveSettings(&o.Options, flags); err != nil {
			return err
		}
		if flags.Changed("json") && o.Json == "" {
			return fault.Usagef("name a file, as in --json results.json", "flag --json: the name is empty")
		}
		if err := o.Check(captures); err != nil {
			return err
		}
		return bench.Run(console, o, captures)
	})
}

// benchTable lists the options that train does not have.
func benchTable(o *bench.Options) []option {
	return []option{
		chosen(&o.Suite, "suite",
			"without SCENE, measure synthetic models: `NAME` is quick or full; quick has a few sizes, full goes "+
				"from 0.1 to 10 million splats and from 0.25 to 8 megapixels", bench.SuiteNames()...),
		other(&o.TrainSteps, "warm-steps", "train `N` steps first; auto: 0 with --init ply:FILE, else 1000"),
		other(&o.Settle, "settle",
			"warm up with `N` steps before the first round; auto: 50, or enough to see every photo once"),
		other(&o.Steps, "steps",
			"measure `N` steps per round with timestamps, and `N` without; auto: about 200, or fewer without SCENE "+
				"if they take more than a few seconds"),
		integer(&o.Rounds, "repeat", "measure `N` rounds").within(1, 1000),
		text(&o.Json, "json", "write the results to `FILE` as JSON"),
		overwriteOption(&o.Overwrite, "an existing file of --json"),
		text(&o.Against, "against", "compare with the results in `FILE`, which --json wrote"),
		float(&o.MaxSlowdown, "max-slowdown",
			"with --against, fail if a step takes more than `X` times as long (default: never)").within(0, 1e6),
	}
}
