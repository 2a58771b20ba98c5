package main

import (
	"cmp"
	"context"
	"errors"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/farm/store"
	"vksplat/farm/wire"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// farmFlags say which farm a command is about.
type farmFlags struct {
	pass string // folder

	// of a Temporal cluster without our server
	temporal, namespace, owner string
	files                      wire.TLSFiles
}

func (f *farmFlags) table() []option {
	return []option{
		text(&f.pass, "pass",
			"use the pass in `DIR` that farm join made (default: see farm join)").
			isFolder(),
		text(&f.temporal, "temporal",
			"use the Temporal cluster at `HOST:PORT`, whose users trust each other; needs no pass"),
		text(&f.namespace, "namespace", "with --temporal: the `NAMESPACE`"),
		text(&f.owner, "owner", "with --temporal: owner of the jobs, `NAME` (default: your user name)"),
		text(&f.files.Cert, "tls-cert", "with --temporal: show the PEM certificate in `FILE`"),
		text(&f.files.Key, "tls-key", "with --temporal: the key of --tls-cert, PEM `FILE`"),
		text(&f.files.CA, "tls-ca", "with --temporal: trust the PEM certificates in `FILE`; system: the "+
			"system's (default with --tls-cert)").oneOf(wire.SystemRoots),
	}
}

// values are the flags, those first that do not go with temporal.
func (f *farmFlags) values() []struct{ name, value string } {
	return []struct{ name, value string }{{"pass", f.pass}, {"temporal", f.temporal}, {"namespace", f.namespace},
		{"owner", f.owner}, {"tls-cert", f.files.Cert}, {"tls-key", f.files.Key}, {"tls-ca", f.files.CA}}
}

// words are the flags as they were given, for commands in texts.
func (f *farmFlags) words() (text string) {
	for _, flag := range f.values() {
		if flag.value != "" {
			text += " --" + flag.name + " " + cli.Quoted(flag.value)
		}
	}
	return text
}

// dial connects, with the pass or as the flags say. The pass is nil without one.
func (f *farmFlags) dial(ctx context.Context) (*client.Farm, *pass.Pass, error) {
	if f.temporal != "" {
		o := client.Options{Address: f.temporal, Namespace: cmp.Or(f.namespace, flow.Namespace), Owner: f.owner}
		if o.Owner == "" {
			if u, err := user.Current(); err == nil {
				o.Owner = strings.ToLower(u.Username[strings.LastIndexByte(u.Username, '\\')+1:])
			}
		}
		if !pass.IsName(o.Owner) {
			return nil, nil, fault.Usagef("give one of a-z, 0-9, '.', '_' and '-', with --owner", "%q names no owner",
				o.Owner)
		}
		var err error
		if o.TLS, err = f.files.Config(); err != nil {
			return nil, nil, err
		}
		farm, err := client.Dial(ctx, o)
		return farm, nil, err
	}
	for _, flag := range f.values()[2:] {
		if flag.value != "" {
			return nil, nil, fault.Usagef("add --temporal HOST:PORT, or leave it out",
				"--%s goes with --temporal", flag.name)
		}
	}
	p, err := pass.Load(f.pass)
	if err != nil {
		return nil, nil, err
	}
	// The pass works without being renewed until it ends.
	renew, cancel := context.WithTimeout(ctx, 10*time.Second)
	_ = p.RenewIfDue(renew)
	cancel()
	farm, err := client.Dial(ctx, client.Options{Address: p.Address, Namespace: cmp.Or(p.Namespace, flow.Namespace),
		Owner: p.Owner, TLS: p.TLS.Clone()})
	return farm, p, err
}

// isNamed says that a farm is named, or that this machine has joined one where it is looked for.
func (f *farmFlags) isNamed() bool {
	return f.temporal != "" || pass.Exists(f.pass)
}

// withFarm runs what needs a farm.
func (f *farmFlags) withFarm(console *cli.Console, do func(ctx context.Context, farm *client.Farm) error) error {
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	farm, p, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer farm.Close()
	if p != nil && p.Role == pass.Worker {
		return &fault.Error{Op: "use pass", Err: errors.New("this machine's pass is a worker's"), Kind: fault.ErrSetup,
			Hint: "join with a token of role view or submit, into another folder with --pass"}
	}
	return do(ctx, farm)
}

// asksJobs makes a command that asks a farm or, without one or with --local, what farm run has left on this machine.
func asksJobs(console *cli.Console, cmd *cobra.Command, own []option,
	do func(ctx context.Context, f *client.Farm, args []string) error, here func(args []string) error) *cobra.Command {
	var farm farmFlags
	var local bool
	own = append(own, truth(&local, "local",
		"show jobs of farm run on this machine (default: if it has joined no farm)"))
	table := []optionGroup{{options: append(own, farm.table()...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		if local || farm.words() == "" && !farm.isNamed() {
			return here(args)
		}
		return farm.withFarm(console, func(ctx context.Context, f *client.Farm) error { return do(ctx, f, args) })
	})
}

// asksFarm makes a command that asks a farm.
func asksFarm(console *cli.Console, cmd *cobra.Command, own []option,
	do func(ctx context.Context, f *client.Farm, args []string) error) *cobra.Command {
	var farm farmFlags
	table := []optionGroup{{options: append(own, farm.table()...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		return farm.withFarm(console, func(ctx context.Context, f *client.Farm) error { return do(ctx, f, args) })
	})
}

func farmJoinCommand(console *cli.Console) *cobra.Command {
	var name, dir string
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "join TOKEN",
		Short: "Join a farm with a token, once on each machine",
		Long: "Join a farm. The token that vksplat-farmd printed becomes this machine's pass, which its\n" +
			"commands present from then on. A token works once. docs/farm-team.md sets up a farm.",
		Example: "  vksplat farm join vksfarm1-...\n  vksplat farm join vksfarm1-... --name atlas",
		Args:    one("TOKEN"),
	}
	table := []optionGroup{{options: []option{
		text(&name, "name", "name of this machine in the farm, `NAME` (default: the token's, or its host name)"),
		text(&dir, "pass", "keep the pass in the folder `DIR` (default: farm in vksplat's config folder)").isFolder(),
		overwriteOption(&overwrite, "the pass that is there"),
	}}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		ctx, stop := console.Interruptible(cli.Always("stopping"))
		defer stop()
		p, err := pass.Join(ctx, args[0], name, dir, overwrite)
		if err != nil {
			return err
		}
		console.Printf("joined the farm at %s as %s\n", p.Address, p.Describe())
		roots, own := "", ""
		if store.UsualRoots() == "" {
			roots = " --roots roots.toml"
		}
		if dir != "" {
			own = " --pass " + cli.Quoted(dir)
		}
		switch p.Role {
		case pass.Worker:
			console.Printf("take its tasks: vksplat farm worker%s%s\n", roots, own)
		case pass.View:
			console.Printf("see its jobs: vksplat farm list%s\n", own)
		default:
			console.Printf("submit a job: vksplat farm submit job.toml%s%s\n", roots, own)
		}
		return nil
	})
}
