package main

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/output"
	"vksplat/internal/run/show"
)

// viewTable lists the options of view. Those of the server come first.
func viewTable(o *show.Options) []optionGroup {
	return []optionGroup{{options: []option{
		text(&o.Server.Host, "host", "listen at `ADDR` of this machine, for others to see the scene (default: "+
			"127.0.0.1, for this machine alone)"),
		integer(&o.Server.Port, "port", "listen at port `N` (default: any that is free)"),
		text(&o.Server.CertFile, "tls-cert", "encrypt with the certificate in `FILE`, PEM"),
		text(&o.Server.KeyFile, "tls-key", "the certificate's private key, `FILE`, PEM"),
		truth(&o.NoOpen, "no-open", "print the address and open no browser"),
		truth(&o.Stream, "stream", "draw on this machine and send pictures, for models that no browser takes; "+
			"--stream=false sends the model, however large (default: from 10 million splats on)"),
	}}, {options: deviceOptions(&o.Device)}, {options: []option{
		other((*colourFlag)(&o.Background), "background",
			"black, white or R,G,B from 0 to 1; without the flag as in training, where that is recorded").oneOf("black",
			"white"),
		text(&o.Page, "html", "write the page `FILE`, which holds viewer and scene and works offline, and serve nothing"),
		overwriteOption(&o.Overwrite, "the page of --html"),
	}}}
}

func viewCommand(console *cli.Console) *cobra.Command {
	o := &show.Options{}
	cmd := &cobra.Command{
		Use:   "view FILE|OUT",
		Short: "Show a model in the browser",
		Long: "Show a model, or the newest one of a run's folder, in the browser. The viewer is part\n" +
			"of vksplat and makes no request to any other machine. It starts at a training photo\n" +
			"where cameras.json is beside the model. Models that are too large for browsers are\n" +
			"drawn by this machine (--stream). Ctrl-C ends it.",
		Example: "  vksplat view out\n  vksplat view city_plan/out --stream\n  vksplat view model.ply --html model.html",
		Args:    one("FILE or folder"),
	}
	table := viewTable(o)
	fs := cmd.Flags()
	register(fs, table)
	offerValues(console, cmd, table)
	o.Given = fs.Changed
	cmd.RunE = runs(console, func(args []string) error {
		o.Path, o.Title = args[0], filepath.Base(output.Absolute(args[0]))
		if o.Page == "" {
			for _, opt := range table[1].options {
				if fs.Changed(opt.name) {
					o.DeviceFlags = append(o.DeviceFlags, opt.name)
				}
			}
			return ofCapture(show.Run(console, o))
		}
		for _, opt := range slices.Concat(table[0].options, table[1].options) {
			if fs.Changed(opt.name) {
				console.Warn("--" + opt.name + " has no effect with --html")
			}
		}
		return ofCapture(show.WritePage(console, o))
	})
	return cmd
}
