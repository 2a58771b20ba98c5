package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/inspection"
	"vksplat/scene"
)

func inspectCommand(console *cli.Console) *cobra.Command {
	o := &inspection.Options{Load: captured.Options{Model: scene.AnyModel}}
	cmd := &cobra.Command{
		Use:   "inspect SCENE",
		Short: "Show what a capture holds and what is wrong with it",
		Long: "Show what was found in the folder SCENE, or the JSON file: photos, cameras, points,\n" +
			"and problems with what can be done about them. The exit code is 65 if it cannot be\n" +
			"trained on, and 0 otherwise.",
		Example: "  vksplat inspect my_scene\n  vksplat inspect my_scene --json --quick",
		Args:    one("SCENE folder"),
		RunE: runs(console, func(args []string) error {
			o.Scene = args[0]
			return inspection.Run(console, o)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&o.Json, "json", false, "print the report as JSON")
	fs.BoolVar(&o.Quick, "quick", false, "do not decode the photos to look for black and blurred ones")
	table := []optionGroup{{options: loadTable(&o.Load)}}
	register(fs, table)
	offerValues(console, cmd, table)
	return cmd
}
