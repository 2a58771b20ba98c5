package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/page"
	"vksplat/farm/pass"
	"vksplat/internal/cli"
	"vksplat/internal/run/show"
	"vksplat/view"
)

func farmPageCommand(console *cli.Console) *cobra.Command {
	o, roots, farm := &show.Options{}, &rootsFlags{}, &farmFlags{}
	cmd := &cobra.Command{
		Use:   "page DIR",
		Short: "Show a job, its tasks, pictures and logs in the browser",
		Long: "Show a job in the browser, while it runs or later. DIR is the folder or bucket that farm run\n" +
			"names at its end, or ROOT/JOB. For jobs of a farm that this machine has joined, the server\n" +
			"reports what is running. The page only reads. Ctrl-C ends it.",
		Example: "  vksplat farm page two-gardens\n  vksplat farm page s3://bucket/results/film --port 8080 --no-open",
		Args:    one("DIR"),
	}
	own := pickOptions([]optionGroup{{options: viewTable(o)[0].options}}, "host", "port", "tls-cert", "tls-key",
		"no-open")
	own[0].options = append(append(own[0].options, roots.table()...),
		pickOptions([]optionGroup{{options: farm.table()}}, "pass", "temporal", "namespace", "tls-ca")[0].options...)
	return newCommand(console, cmd, own, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		return serveFarmPage(console, args[0], o, roots, farm)
	})
}

func serveFarmPage(console *cli.Console, where string, o *show.Options, roots *rootsFlags, farm *farmFlags) error {
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
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	live, leave, err := followFarm(ctx, farm, r)
	defer leave()
	if err != nil {
		console.Note("cannot get the state of the job from the farm: " + err.Error())
	}
	if err := page.Show(server, r.root, r.key, live); err != nil {
		return errors.Join(err, server.Close())
	}
	show.Announce(console, server, o.NoOpen)
	return server.Serve(ctx)
}

// followFarm asks the farm that this machine has joined about a job, if there is one, until leave is called.
func followFarm(ctx context.Context, flags *farmFlags, r *storedResults) (live page.Live, leave func(), err error) {
	leave = func() {}
	if !flags.isNamed() || !flow.IsSubmitted(r.root, r.key) {
		return nil, leave, nil
	}
	farm, p, err := flags.dial(ctx)
	if err != nil {
		return nil, leave, err
	}
	if p != nil && p.Role == pass.Worker { // it may not ask
		farm.Close()
		return nil, leave, nil
	}
	ask, err := farm.Follow(ctx, r.options, r.key)
	if ask == nil {
		farm.Close()
		return nil, leave, err
	}
	return func() (*local.Status, error) {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return ask(short)
	}, farm.Close, nil
}
