package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/desk"
	"vksplat/internal/run/show"
	"vksplat/pipeline"
)

func openCommand(console *cli.Console) *cobra.Command {
	var o show.Options // of the server
	var device pipeline.DeviceOptions
	maxUpload := 16 // GB
	cmd := &cobra.Command{
		Use:   "open [FOLDER]",
		Short: "Train, compare and export from a page in the browser",
		Long: "Open a page for working in the browser: choose photos, a video or a scene in FOLDER (default: the\n" +
			"home folder), check it, train, watch, stop and continue, compare runs, export, render flights.\n" +
			"Results go to FOLDER/vksplat.\n\n" +
			"Ctrl-C ends it; trainings save first and can be continued.",
		Example: "  vksplat open\n  vksplat open captures --port 8080 --no-open",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fault.Usagef("name one", "open takes one folder")
			case len(args) == 1 && args[0] == "":
				return fault.Usagef("name a folder, or leave it out for your home folder",
					"open: the folder's name is empty")
			}
			return nil
		},
	}
	server := pickOptions(viewTable(&o), "port", "no-open", "host", "tls-cert", "tls-key")[0].options
	table := []optionGroup{{options: append(server, integer(&maxUpload, "max-upload",
		"accept at most `N` gigabytes of uploads at once"))}, {options: deviceOptions(&device)}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		d := &desk.Options{NoOpen: o.NoOpen, Server: o.Server, MaxUpload: int64(maxUpload) * 1e9,
			Version: cli.VersionText(), DeviceArgs: givenFlags(flags, table[1].options)}
		if len(args) > 0 {
			d.Folder = args[0]
		}
		return desk.Run(console, d)
	})
}
