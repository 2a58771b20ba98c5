package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/levels"
	"vksplat/pipeline"
	"vksplat/scene/splatfile"
)

func levelsCommand(console *cli.Console) *cobra.Command {
	o := &levels.Options{Levels: splatfile.StreamedLevels, Steps: 500}
	var device pipeline.DeviceOptions
	cmd := &cobra.Command{
		Use:   "levels OUT",
		Short: "Train coarser levels of detail of a model",
		Long: "Train the levels of detail of the model in OUT, the folder of a training run: each has half\n" +
			"the splats of the one before, trained on photos of half the size. They go to OUT/levels,\n" +
			"and convert writes them as streamed SOG. The same command continues after a stop.",
		Example: "  vksplat levels out\n  vksplat convert out city.ssog",
		Args:    one("OUT"),
	}
	options := deviceOptions(&device)
	table := []optionGroup{{options: append([]option{
		integer(&o.Levels, "lod", fmt.Sprintf("make `N` levels, the model's own among them (default %d)",
			splatfile.StreamedLevels)),
		integer(&o.Steps, "steps", "train each level for `N` steps (default 500)"),
		overwriteOption(&o.Replace, "levels of another model or of other steps"),
	}, options...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.Out, o.SourceFlags, o.DeviceFlags = args[0], sourceFlags, givenFlags(flags, options)
		ctx, stop := console.Interruptible(cli.Always("stopping this level once it has saved"))
		defer stop()
		return levels.Run(console, ctx, o)
	})
}
