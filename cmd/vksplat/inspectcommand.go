package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/inspection"
	"vksplat/scene"
)

func inspectCommand(console *cli.Console) *cobra.Command {
	o := &inspection.Options{Load: captured.Options{Model: scene.AnyModel, Cameras: captured.CamerasAuto}}
	cmd := &cobra.Command{
		Use:   "inspect SCENE",
		Short: "Check a capture for problems",
		Long: "Show what the capture SCENE holds (photos, cameras, points), what is wrong with it and how\n" +
			"to fix it. The last line is the command that trains on it, or says what to fix. Exits with\n" +
			"65 if it cannot be trained on.",
		Example: "  vksplat inspect my_scene\n  vksplat inspect my_scene --photos\n" +
			"  vksplat inspect my_scene --json --quick",
		Args: one("SCENE folder"),
	}
	table := []optionGroup{{options: append([]option{
		truth(&o.Json, "json", "print the report as JSON"),
		truth(&o.Photos, "photos", "print a row for each photo"),
		truth(&o.Quick, "quick", "skip decoding photos and calibrating, so that black and blurred photos are not found"),
		text(&o.Picture, "picture", "draw the errors of lenses and poses as `FILE.svg`"),
		overwriteOption(&o.Overwrite, "an existing file of --picture"),
	}, loadTable(&o.Load)...)}}
	first := []string{"photos", "json", "quick", "picture", "overwrite", "images", "downscale", "format", "model", "masks"}
	return newCommand(console, cmd, table, helpLayout{first: first}, func(flags *pflag.FlagSet, args []string) error {
		o.Scene, o.PassedOn = args[0], passedOnFlags(flags)
		return inspection.Run(console, o)
	})
}
