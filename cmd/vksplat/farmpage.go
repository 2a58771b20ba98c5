package main

import (
	"errors"

	"github.com/spf13/cobra"

	"vksplat/farm/page"
	"vksplat/internal/cli"
	"vksplat/internal/run/show"
	"vksplat/view"
)

func farmPageCommand(console *cli.Console) *cobra.Command {
	o, roots := &show.Options{}, &rootsFlags{}
	cmd := &cobra.Command{
		Use:   "page DIR",
		Short: "Show a job, its tasks, pictures and logs in the browser",
		Long: "Show a job in the browser, while it runs or later. DIR is the folder or bucket that farm run\n" +
			"names at its end. The page only reads. Ctrl-C ends it.",
		Example: "  vksplat farm page two-gardens\n  vksplat farm page s3://bucket/results/film --port 8080 --no-open",
		Args:    one("DIR"),
	}
	own := pickOptions([]optionGroup{{options: viewTable(o)[0].options}}, "host", "port", "tls-cert", "tls-key",
		"no-open")
	table := []optionGroup{{options: append(own[0].options, roots.table()...)}}
	addFlags(console, cmd, table, helpLayout{})
	cmd.RunE = runs(console, func(args []string) error { return serveFarmPage(console, args[0], o, roots) })
	return cmd
}

func serveFarmPage(console *cli.Console, where string, o *show.Options, roots *rootsFlags) error {
	if err := o.Check(); err != nil {
		return err
	}
	r, err := openResults(where, roots)
	if err != nil {
		return err
	}
	server, err := view.Listen(o.Server)
	if err != nil {
		return err
	}
	if err := page.Show(server, r.root, r.key); err != nil {
		return errors.Join(err, server.Close())
	}
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	show.Announce(console, server, o.NoOpen)
	return server.Serve(ctx)
}
