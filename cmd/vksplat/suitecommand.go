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
		Short: "Train and measure many captures, and make the table",
		Long: "Train every capture of FILE.toml by every recipe with every seed, measure the models,\n" +
			"and write the tables of a paper: quality, seconds, memory, number of splats. Each run\n" +
			"is a process of its own. Runs that are done are kept; the same command goes on with\n" +
			"one that was stopped or killed. A run that fails is told of, and the others go on.\n" +
			"suite.md and suite.json are written anew after each run.\n\n" +
			"Presets name the captures of benchmarks whose data you have: " + strings.Join(suite.PresetNames(), ",\n") +
			".\n" +
			"docs/eval.md shows such files.",
		Example: "  vksplat suite mipnerf360.toml --dry-run\n  vksplat suite mipnerf360.toml",
		Args:    one("FILE.toml"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	table := []optionGroup{{options: append([]option{truth(&o.DryRun, "dry-run",
		"print the command of every run, and stop")}, deviceOptions(&o.Device)...)}}
	fs := cmd.Flags()
	register(fs, table)
	offerValues(console, cmd, table)
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
