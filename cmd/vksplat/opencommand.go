package main

import (
	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/desk"
	"vksplat/internal/run/show"
	"vksplat/pipeline"
)

// openFlags are the flags of open.
type openFlags struct {
	show      show.Options // of the server
	device    pipeline.DeviceOptions
	maxUpload int // GB
}

// openTable lists the options of open: those of view's server, and which device is used.
func openTable(o *openFlags) []optionGroup {
	server := pickOptions([]optionGroup{{options: viewTable(&o.show)[0].options}}, "port", "no-open", "host",
		"tls-cert",
		"tls-key")
	return []optionGroup{{options: append(server[0].options, integer(&o.maxUpload, "max-upload",
		"accept at most `N` gigabytes of uploads at once"))},
		{options: deviceOptions(&o.device)}}
}

func openCommand(console *cli.Console) *cobra.Command {
	o := &openFlags{maxUpload: 16}
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
	table := openTable(o)
	addFlags(console, cmd, table, helpLayout{})
	cmd.RunE = runs(console, func(args []string) error {
		d := &desk.Options{NoOpen: o.show.NoOpen, Server: o.show.Server, MaxUpload: int64(o.maxUpload) * 1e9,
			Version: cli.VersionText()}
		if len(args) > 0 {
			d.Folder = args[0]
		}
		for _, opt := range table[1].options {
			if f := cmd.Flags().Lookup(opt.name); f.Changed {
				d.DeviceArgs = append(d.DeviceArgs, cli.Flag(opt.name, f.Value.String()))
			}
		}
		return desk.Run(console, d)
	})
	return cmd
}
