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
		Short: "Describe a checkpoint, a model, a capture or a run",
		Long: "Describe a checkpoint or another safetensors file, a model in any format that convert\n" +
			"reads, a PLY or LAS file of points, a capture, or the folder of a run. Only the header of\n" +
			"packed models (SPZ, SOG) is read, unless --bounds is given.",
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
	addFlags(console, cmd, []optionGroup{{options: []option{
		truth(&asJSON, "json", "print everything as JSON"),
		truth(&bounds, "bounds", "unpack a packed model to check its splats and compute their bounds"),
	}}}, helpLayout{})
	return cmd
}
