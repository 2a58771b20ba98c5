package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/info"
)

func infoCommand(console *cli.Console) *cobra.Command {
	asJSON, bounds := false, false
	cmd := &cobra.Command{
		Use:   "info FILE|DIR [--json] [--bounds]",
		Short: "Say what a checkpoint, a splat file, a capture or a run holds",
		Long: "Say what is in a file or folder: a checkpoint or any safetensors file, a file of\n" +
			"splats of any format that convert reads, a PLY file of points, the folder of a\n" +
			"capture, or the folder of a training run. Of packed models (SPZ, SOG) only the header\n" +
			"is read, unless --bounds is given.",
		Args: one("FILE or folder"),
		RunE: runs(console, func(args []string) error {
			value, text, err := info.Describe(args[0], bounds)
			if err != nil {
				return ofCapture(err)
			}
			print := func() error { return info.PrintFacts(console, text) }
			if asJSON {
				print = func() error { return console.PrintJSON(value) }
			}
			if err := print(); err != nil {
				return err
			}
			return text.Damage(args[0])
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "everything, as JSON")
	cmd.Flags().BoolVar(&bounds, "bounds", false,
		"unpack the splats of a packed model to check them, and for the box of their positions")
	return cmd
}
