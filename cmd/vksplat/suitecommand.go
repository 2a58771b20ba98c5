package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/suite"
)

func suiteCommand(console *cli.Console) *cobra.Command {
	o := &suite.Options{Training: settingsForSuite()}
	cmd := &cobra.Command{
		Use:   "suite FILE.toml",
		Short: "Train and measure many captures, for a table",
		Long: "Train every capture of FILE.toml with every recipe and every seed, measure the models,\n" +
			"and write tables of quality, time, memory and number of splats. The same command\n" +
			"continues after a stop or a crash. docs/eval.md has an example.\n\n" +
			"Each run is a process of its own. Finished runs are kept; a failed run is reported and the\n" +
			"others continue. suite.md and suite.json are rewritten after each run.\n\n" +
			"Presets name the captures of benchmarks that you have downloaded:\n" +
			strings.Join(suite.PresetNames(), ", ") + ".",
		Example:           "  vksplat suite mipnerf360.toml --dry-run\n  vksplat suite mipnerf360.toml",
		Args:              one("FILE.toml"),
		ValidArgsFunction: cobra.FixedCompletions([]cobra.Completion{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	device := deviceOptions(&o.Device)
	table := []optionGroup{{options: append([]option{truth(&o.DryRun, "dry-run",
		"print the command of every run and stop")}, device...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.File, o.DeviceFlags = args[0], givenFlags(flags, device)
		return suite.Run(console, o)
	})
}
