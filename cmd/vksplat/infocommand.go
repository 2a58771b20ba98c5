package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	}
	table := []optionGroup{{options: []option{
		truth(&asJSON, "json", "print everything as JSON"),
		truth(&bounds, "bounds", "unpack a packed model to check its splats and compute their bounds"),
	}}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		value, text, err := info.Describe(args[0], bounds)
		switch {
		case err != nil:
			return err
		case asJSON:
			err = console.PrintJSON(value)
		default:
			err = info.PrintFacts(console, text)
		}
		return errors.Join(err, text.Damage(args[0]))
	})
}
