package main

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/run/output"
	"vksplat/internal/run/show"
)

// viewTable lists the options of view. Those of the server come first.
func viewTable(o *show.Options) []optionGroup {
	return []optionGroup{{options: []option{
		text(&o.Server.Host, "host",
			"listen on `ADDR`, for other machines (default: 127.0.0.1, this machine only)"),
		integer(&o.Server.Port, "port", "listen on port `N` (default: any free one)").within(0, 65535),
		text(&o.Server.CertFile, "tls-cert", "encrypt with the PEM certificate in `FILE`"),
		text(&o.Server.KeyFile, "tls-key", "the certificate's private key, a PEM `FILE`"),
		truth(&o.NoOpen, "no-open", "print the address and open no browser"),
		truth(&o.Stream, "stream",
			"render on this machine and send pictures, for models too large for a browser; --stream=false always "+
				"sends the model (default: from 10 million splats)"),
		truth(&o.Edit, "edit",
			"edit the model: remove splats, set which way is up, export a new file; implies --stream"),
		text(&o.Edits, "edits", "with --edit, continue the edits in `FILE`, which an export writes next to the model"),
		text(&o.ExportTo, "export-to", "with --edit, export into the folder `DIR` (default: the current one)"),
		integer(&o.MaxSplats, "max-splats",
			"show at most `N` splats of a streamed model (default: 2 or 4 million)").within(1, 1e10),
	}}, {options: deviceOptions(&o.Device)}, {options: []option{
		plain(&o.Background, "background", "black, white or R,G,B from 0 to 1 (default: as trained, else black)"),
		text(&o.Page, "html", "write viewer and model as one HTML page that works offline to `FILE`, and stop"),
		overwriteOption(&o.Overwrite, "an existing page"),
	}}}
}

func viewCommand(console *cli.Console) *cobra.Command {
	o := &show.Options{}
	cmd := &cobra.Command{
		Use:   "view FILE|OUT",
		Short: "Show a model in the browser",
		Long: "Show a model, or the newest one of a run, in the browser. Ctrl-C ends it.\n" +
			"\n" +
			"The viewer is part of vksplat and contacts no other machine. It starts at a training photo if\n" +
			"cameras.json is next to the model. Models too large for a browser are rendered by this\n" +
			"machine (--stream).",
		Example: "  vksplat view out\n  vksplat view out --edit\n  vksplat view city_plan/out --stream\n" +
			"  vksplat view model.ply --html model.html",
		Args: one("FILE or folder"),
	}
	table := viewTable(o)
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.Path, o.Title, o.Given = args[0], filepath.Base(output.Absolute(args[0])), flags.Changed
		given := slices.DeleteFunc(slices.Concat(table[0].options, table[1].options), func(opt option) bool {
			return !flags.Changed(opt.name)
		})
		if o.Page == "" {
			for _, opt := range given {
				if find(table[1:2], opt.name) != nil {
					o.DeviceFlags = append(o.DeviceFlags, opt.name)
				}
			}
			return show.Run(console, o)
		}
		for _, opt := range given {
			console.Warn("--" + opt.name + " has no effect with --html")
		}
		return show.WritePage(console, o)
	})
}
