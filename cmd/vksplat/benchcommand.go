package main

import (
	"github.com/spf13/cobra"

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
		Long: "Measure how long training steps take, pass by pass, and how far each pass is from what the\n" +
			"device can do. Passes are timed in steps with timestamps; how long a step takes is said by\n" +
			"steps without, and the table adds up to these. Without SCENE, made-up models of several sizes\n" +
			"are measured.\n" +
			"\n" +
			"The model does not change meanwhile: steps do all their work with learning rates of zero,\n" +
			"and nothing is refined. bench also takes the flags of train that say what is trained and\n" +
			"how.",
		Example: "  vksplat bench\n" +
			"  vksplat bench my_scene --init ply:model.ply\n" +
			"  vksplat bench my_scene --preset mcmc --json new.json --against old.json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	own := benchTable(o)
	table := append([]optionGroup{{options: own}}, dropOptions(trainTable(&o.Options), bench.LeavesOut...)...)
	fs := cmd.Flags()
	first := []string{"preset", "downscale", "init", "device", "max-vram", "progress"}
	for _, o := range own {
		first = append(first, o.name)
	}
	addFlags(console, cmd, table, helpLayout{first, presetHelp})
	cmd.RunE = runs(console, func(captures []string) error {
		if err := resolveSettings(&o.Options, fs); err != nil {
			return err
		}
		if fs.Changed("json") && o.Json == "" {
			return fault.Usagef("name a file, as in --json results.json", "flag --json: the name is empty")
		}
		if err := o.Check(captures); err != nil {
			return err
		}
		return bench.Run(console, o, captures)
	})
	return cmd
}

// benchTable lists the options that train does not have.
func benchTable(o *bench.Options) []option {
	return []option{
		chosen(&o.Suite, "suite",
			"without SCENE, measure made-up models: `NAME` is quick or full; quick has a few sizes, full goes "+
				"from 0.1 to 10 million splats and from 0.25 to 8 megapixels", bench.SuiteNames()...),
		other(&o.TrainSteps, "warm-steps", "train `N` steps first; auto: 0 with --init ply:FILE, else 1000"),
		other(&o.Settle, "settle",
			"run `N` steps before the first round; auto: 50, or more to see every photo once"),
		other(&o.Steps, "steps",
			"measure `N` steps a round with timestamps, and as many without; auto: about 200, or without SCENE fewer "+
				"if these take more than a few seconds"),
		integer(&o.Rounds, "repeat", "measure `N` rounds"),
		text(&o.Json, "json", "write the results to `FILE` as JSON"),
		overwriteOption(&o.Overwrite, "an existing file of --json"),
		text(&o.Against, "against", "compare with the results in `FILE`, which --json wrote"),
		float(&o.MaxSlowdown, "max-slowdown",
			"with --against, fail if a step takes more than `X` times as long (default: never)"),
	}
}
