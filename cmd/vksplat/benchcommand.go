package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/bench"
)

func benchCommand(console *cli.Console) *cobra.Command {
	o := &bench.Options{Options: *newTrainOptions(), Suite: bench.SuiteQuick, TrainSteps: -1, Settle: -1, Steps: -1,
		Rounds: bench.BenchRounds}
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
	own := benchTable(o)
	table := append([]optionGroup{{options: own}}, dropOptions(trainTable(&o.Options), bench.LeavesOut...)...)
	fs := cmd.Flags()
	register(fs, table)
	o.Given = fs.Changed
	offerValues(console, cmd, table)
	hideOthers(fs, own, "device", "max-vram", "downscale", "init", "preset", "progress")
	cmd.RunE = runs(console, func(captures []string) error {
		if err := resolveSettings(&o.Options, fs.Changed); err != nil {
			return err
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
		chosen(&o.Suite, "suite", "without SCENE, measure the models of `NAME`: quick has a few sizes, full goes from "+
			"0.1 to 10 million splats and from 0.25 to 8 megapixels", bench.SuiteNames()...),
		other(&o.TrainSteps, "warm-steps",
			"train `N` steps of the recipe before; auto: 0 with --init ply:FILE, else 1000"),
		other(&o.Settle, "settle", "go `N` steps before the first round; auto: 50, or more to see every photo once"),
		other(&o.Steps, "steps", "measure `N` steps a round; auto: 200, or without SCENE fewer where these take more "+
			"than a few seconds"),
		integer(&o.Rounds, "repeat", "measure `N` rounds"),
		text(&o.Json, "json", "write the results to `FILE` as JSON"),
		overwriteOption(&o.Overwrite, "the file of --json"),
		text(&o.Against, "against", "compare with the results in `FILE`, which --json wrote"),
		float(&o.MaxSlowdown, "max-slowdown",
			"with --against, fail where a step takes more than `X` times as long; 0: never"),
	}
}
