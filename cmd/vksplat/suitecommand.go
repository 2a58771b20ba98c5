package main

import (
	"strings"

	"github.com/spf13/cobra"

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
			"continues after a stop or a crash. docs/eval.md shows such files.\n\n" +
			"Each run is a process of its own. Finished runs are kept; a failed run is reported and the\n" +
			"others continue. suite.md and suite.json are rewritten after each run.\n\n" +
			"Presets name the captures of benchmarks that you have downloaded:\n" +
			strings.Join(suite.PresetNames(), ", ") + ".",
		Example: "  vksplat suite mipnerf360.toml --dry-run\n  vksplat suite mipnerf360.toml",
		Args:    one("FILE.toml"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	table := []optionGroup{{options: append([]option{truth(&o.DryRun, "dry-run",
		"print the command of every run and stop")}, deviceOptions(&o.Device)...)}}
	fs := cmd.Flags()
	addFlags(console, cmd, table, helpLayout{})
	cmd.RunE = runs(console, func(args []string) error {
		o.File = args[0]
		for _, opt := range deviceOptions(&o.Device) {
			if fs.Changed(opt.name) {
				o.DeviceFlags = append(o.DeviceFlags, "--"+opt.name+"="+opt.value.String())
			}
		}
		return suite.Run(console, o)
	})
	return cmd
}
