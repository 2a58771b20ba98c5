// Command vksplat-farmd is the server of a farm for teams without a scheduler: Temporal's server in one process, with
// the farm's own certificate authority, a database that it sets up itself, and rules of who may ask for what.
//
// Start at serve.go. Packages below: registry is who belongs to the farm, gate what they may ask for, front the one
// open port. Temporal's server and its page are embedded in engine.go and page.go, and nowhere else in vksplat.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/pass"
	"vksplat/farm/store"
	"vksplat/farmd/registry"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

func main() { os.Exit(run(os.Args[1:])) }

// run carries out one command line and returns the exit code.
func run(args []string) int {
	root := &cobra.Command{
		Use:   "vksplat-farmd",
		Short: "Serve a farm: jobs of vksplat on the machines of a team",
		Long: "vksplat-farmd keeps the jobs of a team and hands their tasks to the machines that joined.\n" +
			"Start it with: vksplat-farmd serve",
		Version:       cli.VersionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	data := root.PersistentFlags().String("data", defaultData(),
		"`folder` of the farm: its authority, passes and jobs")
	root.AddCommand(serveCommand(data), tokenCommand(data), listCommand(data), revokeCommand(data),
		backupCommand(data), flowsCommand())
	root.SetArgs(args)
	err := root.Execute()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vksplat-farmd: %v\n", err)
		if hint := fault.Hint(err); hint != "" {
			fmt.Fprintf(os.Stderr, "  %s\n", hint)
		}
	}
	return fault.ExitCode(err)
}

// defaultData is the folder of a farm unless another is named.
func defaultData() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "farmd"
	}
	return filepath.Join(dir, "vksplat", "farmd")
}

func serveCommand(data *string) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "serve the farm until Ctrl-C or SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s.data, s.postgres = *data, cmp.Or(s.postgres, os.Getenv(postgresVariable))
			return serve(s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", ":7233", "`HOST:PORT` that machines connect to, the only one that is open")
	f.StringVar(&s.address, "address", "", "`HOST:PORT` that tokens give to machines that join (default: found out)")
	f.StringVar(&s.roots, "roots", store.UsualRoots(), "`file` that says where the roots of the store are, as on workers")
	f.StringVar(&s.postgres, "postgres", "", // a default from the variable would show its password in the help
		"keep jobs in this Postgres, postgres://USER:PASSWORD@HOST/DATABASE, instead of a file\n"+
			"of SQLite (default: $"+postgresVariable+")")
	f.IntVar(&s.page, "page", 7234, "`port` of Temporal's page, on this machine only; 0: none")
	f.IntVar(&s.metrics, "metrics", 0, "`port` of metrics for Prometheus, on this machine only; 0: none")
	f.StringVar(&s.level, "log", "error", "`level` of Temporal's messages: error, warn, info or debug")
	return cmd
}

func tokenCommand(data *string) *cobra.Command {
	var role, address string
	var g registry.Grant
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "make a token, with which one machine or person can join once",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if life <= 0 {
				return fault.Usagef("as in --expires 24h", "--expires %s: the token could not be used", life)
			}
			r, err := registry.Open(*data)
			if err != nil {
				return err
			}
			if address == "" {
				if address, err = readAddress(*data); err != nil {
					return err
				}
			}
			g.Role = pass.Role(role)
			if g.Owner == "" && (g.Role == pass.Submit || g.Role == pass.Admin) {
				if g.Owner = g.Name; g.Name == "" {
					return fault.Usagef("as in --name anna: her jobs are then those of anna",
						"a token of role %s needs a name", role)
				}
			}
			if len(g.Pools) == 0 && g.Role == pass.Worker {
				g.Pools = []string{pass.DefaultPool}
			}
			g.Expires = time.Now().Add(life)
			token, err := r.NewToken(address, g)
			if err == nil {
				fmt.Println(token)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "what the holder may do: view, submit, worker or admin")
	f.StringVar(&g.Name, "name", "", "name of the pass (default: the machine's name when it joins)")
	f.StringVar(&g.Owner, "owner", "", "whose jobs a submitter or admin submits (default: the name)")
	f.StringSliceVar(&g.Pools, "pools", nil, "pools of a worker, as in a,b (default: "+pass.DefaultPool+")")
	f.DurationVar(&life, "expires", 24*time.Hour, "how long the token can be used")
	f.StringVar(&address, "address", "", "`HOST:PORT` of the farm (default: what serve found out)")
	_ = cmd.MarkFlagRequired("role")
	return cmd
}

func listCommand(data *string) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list passes, and tokens that have not been used",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := registry.Open(*data)
			if err != nil {
				return err
			}
			records, open, err := r.List()
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tROLE\tOWNER\tPOOLS\tSINCE\tUNTIL")
			for _, rec := range records {
				until := rec.Expires.Format(time.DateOnly)
				if rec.Revoked != nil {
					until = "revoked " + rec.Revoked.Format(time.DateOnly)
				}
				printRow(w, rec.Who, rec.Issued.Format(time.DateOnly), until)
			}
			for _, g := range open {
				printRow(w, g.Who, "token", g.Expires.Local().Format("2006-01-02 15:04"))
			}
			return errors.Join(err, w.Flush())
		},
	}
}

// printRow prints a line of the table of passes.
func printRow(w *tabwriter.Writer, who pass.Who, since, until string) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(who.Name, "-"), who.Role, cmp.Or(who.Owner, "-"),
		cmp.Or(strings.Join(who.Pools, ","), "-"), since, until)
}

func revokeCommand(data *string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "end a pass: the server refuses its next request",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := registry.Open(*data)
			if err != nil {
				return err
			}
			rec, err := r.Revoke(args[0])
			if err == nil {
				fmt.Printf("revoked: %s\n", rec.Describe())
			}
			return err
		},
	}
}

func backupCommand(data *string) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "write authority, passes and jobs to a tar file, also while the farm serves",
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return backup(*data, args[0]) },
	}
}
