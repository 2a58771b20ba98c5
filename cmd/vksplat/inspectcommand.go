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
		Short: "Check a capture and say what is wrong with it",
		Long: "Show what the capture SCENE holds (photos, cameras, points), what is wrong with it and what\n" +
			"to do about it. Exits with 65 if it cannot be trained on.",
		Example: "  vksplat inspect my_scene\n  vksplat inspect my_scene --json --quick",
		Args:    one("SCENE folder"),
		RunE: runs(console, func(args []string) error {
			o.Scene = args[0]
			return inspection.Run(console, o)
		}),
	}
	addFlags(console, cmd, []optionGroup{{options: append([]option{
		truth(&o.Json, "json", "print the report as JSON"),
		truth(&o.Quick, "quick", "do not decode photos, which finds black and blurred ones"),
	}, loadTable(&o.Load)...)}}, helpLayout{first: []string{"json", "quick", "images", "downscale", "format", "model",
		"masks"}})
	return cmd
}
