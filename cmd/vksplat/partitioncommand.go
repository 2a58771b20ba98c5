package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/partition"
	"vksplat/scene"
)

func partitionCommand(console *cli.Console) *cobra.Command {
	o := &partition.Options{Overlap: 0.2, TestEvery: captured.HeldOutEvery,
		Load: captured.Options{Model: scene.AnyModel, Cameras: captured.CamerasAuto}}
	cmd := &cobra.Command{
		Use:   "partition SCENE -o PLAN",
		Short: "Divide a capture that is too large for a device into blocks",
		Long: "Divide a capture on the ground plane into blocks with about as many cameras and points\n" +
			"each. vksplat train PLAN then trains the blocks one after the other and merges them into\n" +
			"one scene, PLAN/out. plan.png shows the blocks from above; docs/blocks.md says more.",
		Example: "  vksplat partition city -o city_plan --eval\n  vksplat partition city -o city_plan --blocks 3x2\n" +
			"  vksplat train city_plan",
		Args:              one("SCENE folder"),
		ValidArgsFunction: folders,
	}
	table := []optionGroup{{options: partitionTable(o)}, {options: loadTable(&o.Load)},
		{options: deviceOptions(&o.Device)}}
	first := []string{"output", "blocks", "eval", "test-every", "overlap", "up", "images", "downscale", "masks",
		"device", "max-vram"}
	return newCommand(console, cmd, table, helpLayout{first: first}, func(flags *pflag.FlagSet, args []string) error {
		o.Scene, o.Given = args[0], flags.Changed
		if err := o.Check(); err != nil {
			return err
		}
		for _, opt := range deviceOptions(&o.Device) {
			if o.Shape.Columns > 0 && o.Given(opt.name) {
				console.Warn("--" + opt.name + " has no effect with --blocks " + o.Shape.String())
			}
		}
		return partition.Run(console, o)
	})
}

// partitionTable lists the options that are partition's own.
func partitionTable(o *partition.Options) []option {
	return []option{
		text(&o.Out, "output", "write to the folder `PLAN` (required)").letter("o").isFolder(),
		other(&o.Shape, "blocks",
			"make `AxB` blocks: A columns along the longer side, of B blocks each; auto: as many as device memory "+
				"and the number of photos require").oneOf("auto"),
		float(&o.Overlap, "overlap", "extend blocks beyond their edges by `X` times their length, 0 to 1").within(0, 1),
		text(&o.Up, "up", "the capture's up direction, `X,Y,Z` (default: found from the cameras)").
			asNumbers(kindFloat, 3, -1e9, 1e9),
		truth(&o.Eval, "eval", "hold out every 8th photo of all blocks, to measure on"),
		integer(&o.TestEvery, "test-every", "with --eval, hold out every `N`th photo").within(2, 1e6),
		text(&o.TestList, "test-list", "hold out the photos listed in `FILE`, one per line"),
	}
}
