package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"vksplat/farm/page"
	"vksplat/farm/queue"
	"vksplat/farm/server"
)

// serveOptions is everything that serve is asked for.
type serveOptions struct {
	dir      string
	listen   string
	ownTLS   bool
	cert     string
	key      string
	hosts    string
	maxStore int64
	lease    spanFlag
	nats     string
	creds    string
	webhook  string
	hookFile string
	verbose  bool
}

func (o *serveOptions) table() []option {
	return []option{
		text(&o.dir, "dir", "keep the farm's state in the folder `DIR` on a local disk (default: in the user's folder of states)").isFolder(),
		text(&o.listen, "listen", "`HOST:PORT` to listen at; beyond this machine only with a certificate"),
		truth(&o.ownTLS, "tls-auto", "make a certificate; tokens carry what clients need to trust it"),
		text(&o.cert, "tls-cert", "or take the certificate of `FILE`, in PEM"),
		text(&o.key, "tls-key", "with its key, `FILE`"),
		text(&o.hosts, "hosts", "names and addresses by which clients reach this machine, `A,B`: the first goes into tokens"),
		other((*sizeFlag)(&o.maxStore), "max-store", "`BYTES` of disk for the queue at most (default: 16 GiB)"),
		other(&o.lease, "lease", "a worker that is silent for `TIME` loses its tasks; counts at the first start (default: 30s)"),
		text(&o.nats, "nats", "serve by NATS servers with JetStream that others run, `URLS`: this process only watches over the jobs"),
		text(&o.creds, "nats-creds", "credentials `FILE` for --nats, of these servers, or a token of role admin"),
		text(&o.webhook, "webhook", "POST a message in JSON to `URL` when a job has ended (default: $"+webhookVariable+")"),
		text(&o.hookFile, "webhook-file", "take the URL from the first line of `FILE`: users of this machine can read command lines"),
		truth(&o.verbose, "verbose", "print every change of a job"),
	}
}

func (a *app) farmServeCommand() *cobra.Command {
	o := &serveOptions{listen: "127.0.0.1:4222"}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a farm: keep its jobs, and hand their tasks to workers",
		Long: "Serve a farm: keep its jobs, and hand their tasks to workers. Without flags, commands and\n" +
			"workers of this user on this machine alone reach it. Nobody does without a token, see\n" +
			"vksplat farm token. Jobs, results and workers outlive a restart.",
		Example: "  vksplat farm serve\n  vksplat farm serve --listen 0.0.0.0:4222 --tls-auto --hosts farm.lab.example",
		Args:    cobra.NoArgs,
	}
	table := []optionGroup{{options: o.table()}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func([]string) error { return a.serve(o) })
	return cmd
}

// serveDir is the folder of a server.
func serveDir(dir string) (string, error) {
	if dir != "" {
		return absolute(dir), nil
	}
	return stateFolder(serveFolder)
}

func (a *app) serve(o *serveOptions) error {
	ctx, stop := a.stoppable(always("stopping"))
	defer stop()
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	log := a.logger(level)
	ended, err := o.hook()
	if err != nil {
		return err
	}
	if o.nats != "" {
		return a.serveCluster(ctx, o, log, ended)
	}
	dir, err := serveDir(o.dir)
	if err != nil {
		return err
	}
	if isHeld(filepath.Join(dir, lockName)) {
		a.note(fmt.Sprintf("another process serves %s: waiting %s for its end", dir, durationText(lockPatience.Seconds())))
	}
	release, err := claimFolderUntil(ctx, dir, true)
	if errors.Is(err, errInterrupted) {
		return nil // as one that serves already
	}
	if err != nil {
		return err
	}
	defer release()
	if err := needLock(filepath.Join(dir, lockName)); err != nil {
		return err
	}
	s, err := server.Start(ctx, server.Options{Dir: dir, Listen: o.listen, OwnTLS: o.ownTLS, CertFile: o.cert, KeyFile: o.key, Hosts: words(o.hosts), MaxStore: o.maxStore,
		Farm: queue.Farm{Lease: queue.Duration(o.lease)}, Version: programVersion(), Log: log, Ended: ended})
	if err != nil {
		return err
	}
	defer s.Close()
	a.printf("serving at %s; the token of this machine is %s\n", s.URL(), s.AdminToken())
	<-ctx.Done()
	return nil
}

// webhookVariable holds the URL of the webhook, of which the secret is a part.
const webhookVariable = "VKSPLAT_FARM_WEBHOOK"

// hook gives what tells that a job has ended, nil where nobody wants to know.
func (o *serveOptions) hook() (func(context.Context, queue.JobStatus) error, error) {
	address := cmp.Or(o.webhook, os.Getenv(webhookVariable))
	if o.hookFile != "" {
		if o.webhook != "" {
			return nil, usagef("give one of them", "--webhook and --webhook-file name two addresses")
		}
		data, err := readAtMost(o.hookFile, maxJobFile)
		if err != nil {
			return nil, usagef("name a file whose first line is the URL", "read webhook: %s: %w", o.hookFile, pathless(err))
		}
		line, _, _ := strings.Cut(string(data), "\n")
		address = strings.TrimSpace(line)
	} else if address == "" {
		return nil, nil
	}
	hook, err := page.NewHook(address)
	if err != nil {
		return nil, err
	}
	return hook.Ended, nil
}

// serveCluster watches over the jobs of a farm on servers that others run.
func (a *app) serveCluster(ctx context.Context, o *serveOptions, log *slog.Logger, ended func(context.Context, queue.JobStatus) error) error {
	nc, err := queue.DialCluster(o.nats, o.creds, "vksplat serve")
	if err != nil {
		return err
	}
	defer nc.Close()
	options := queue.Options{Version: programVersion(), Log: log}
	if err := queue.Setup(ctx, nc, queue.Farm{Lease: queue.Duration(o.lease), Replicas: queue.Replicas(nc)}, options); err != nil {
		return err
	}
	q, err := queue.Connect(ctx, nc, options)
	if err != nil {
		return err
	}
	a.printf("serving by %s\n", o.nats)
	return q.Reconcile(ctx, queue.ReconcileOptions{Name: cmp.Or(nodeName(), "serve"), Ended: ended})
}

// words splits a list with commas.
func words(list string) (out []string) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// tokenOptions is everything that token is asked for.
type tokenOptions struct {
	dir     string
	role    string
	name    string
	expires spanFlag
	out     string
	list    bool
	revoke  string
	all     bool
	nats    string
	ca      string
	asJSON  bool
}

func (o *tokenOptions) table() []option {
	return []option{
		chosen(&o.role, "role", "what its holder may do: `ROLE`", roleWords()...),
		text(&o.name, "name", "whom it is for, `NAME`; --revoke knows it by that"),
		other(&o.expires, "expires", "it ends after `TIME`, as in 30d (default: never)"),
		text(&o.out, "output", "write it to `FILE`, for its holder alone").letter("o"),
		truth(&o.list, "list", "list the tokens that were made"),
		text(&o.revoke, "revoke", "shut out the holder of the token with this `NAME`, or with this key or the beginning of it"),
		truth(&o.all, "all", "with --revoke: all tokens of the name"),
		text(&o.nats, "nats", "a token for NATS servers that others run, at `URLS` as in tls://a:4222,tls://b:4222: prints the line that lets its holder in, for their configuration"),
		text(&o.ca, "nats-ca", "with --nats: the certificate that theirs are signed by, `FILE` in PEM (default: those that the system trusts)"),
		text(&o.dir, "dir", "the folder `DIR` of the server (default: as in serve)").isFolder(),
		truth(&o.asJSON, "json", "with --list: as JSON"),
	}
}

func roleWords() (list []string) {
	for _, r := range server.Roles() {
		list = append(list, string(r))
	}
	return list
}

func (a *app) farmTokenCommand() *cobra.Command {
	o := &tokenOptions{role: string(server.View)}
	cmd := &cobra.Command{
		Use:   "token --role ROLE --name NAME -o FILE",
		Short: "Make a token, by which others reach the farm, list or revoke them",
		Long: "Make a token for the server of this machine, which need not be stopped for it. It holds\n" +
			"the server's address, what to trust it by, and a secret key: hand it to its holder alone.\n" +
			"Roles: view looks, submit also runs jobs, worker does tasks, admin may do everything.",
		Example: "  vksplat farm token --role worker --name gpu1 -o gpu1.token\n  vksplat farm token --role submit --name ann --expires 90d -o ann.token\n  vksplat farm token --list\n  vksplat farm token --revoke ann",
		Args:    cobra.NoArgs,
	}
	table := []optionGroup{{options: o.table()}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func([]string) error { return a.token(o) })
	return cmd
}

func (a *app) token(o *tokenOptions) error {
	dir, err := serveDir(o.dir)
	switch {
	case err != nil:
		return err
	case o.list:
		return a.listTokens(dir, o.asJSON)
	case o.revoke != "":
		return a.revokeToken(dir, o)
	case o.all:
		return usagef("as in: vksplat farm token --revoke ann --all", "--all is for --revoke")
	case o.name == "" || o.out == "":
		return usagef("as in: vksplat farm token --role worker --name gpu1 -o gpu1.token", "a token needs --name and -o")
	}
	if err := server.CheckName(o.name); err != nil {
		return err
	}
	if o.nats != "" && o.expires != 0 {
		return usagef("remove its line from the configuration of the servers in time", "--expires is nothing that servers of others know")
	}
	if o.nats == "" {
		if err := isFree(dir, o.name); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(o.out); err == nil {
		return usagef("choose another file", "%s exists", o.out)
	}
	f, err := os.OpenFile(o.out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return folderError(filepath.Dir(o.out), err)
	}
	if o.nats != "" {
		return a.clusterToken(f, o)
	}
	token, err := makeToken(f, dir, o)
	if err != nil {
		return errors.Join(err, os.Remove(o.out))
	}
	untilKnown(dir, token)
	a.printf("%s: role %s, for %s\n", o.out, token.Role, token.URL)
	return nil
}

// isFree refuses the name of a token that is let in.
func isFree(dir, name string) error {
	keys, err := server.Keys(dir)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Name == name && !k.Expired(time.Now()) {
			return usagef("choose another, as in "+name+"-2, or revoke that one first: vksplat farm token --revoke "+quoted(name), "there is a token of the name %s, of %s", name, k.Made.Local().Format(time.DateTime))
		}
	}
	return nil
}

func (a *app) revokeToken(dir string, o *tokenOptions) error {
	gone, err := server.Revoke(dir, o.revoke, o.all)
	for _, k := range gone {
		a.printf("revoked: %s, role %s, key %s\n", k.Name, k.Role, k.Public)
	}
	return err
}

// makeToken makes a token and writes it to a file that nobody else may read. One that could not be written is revoked: that one, not others of its name.
func makeToken(f *os.File, dir string, o *tokenOptions) (queue.Token, error) {
	token, err := server.NewToken(dir, server.Role(o.role), o.name, time.Duration(o.expires))
	if err != nil {
		return token, errors.Join(err, f.Close())
	}
	if err = writeToken(f, token); err == nil {
		return token, nil
	}
	public, keyErr := token.Public()
	if keyErr == nil {
		_, keyErr = server.Revoke(dir, public, false)
	}
	return token, errors.Join(folderError(o.out, err), keyErr)
}

func writeToken(f *os.File, token queue.Token) error {
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(token), f.Sync(), f.Close())
}

// clusterToken makes a token for servers that others run, and prints what their configuration needs.
func (a *app) clusterToken(f *os.File, o *tokenOptions) error {
	ca := []byte{}
	var err error
	if o.ca != "" {
		if ca, err = readAtMost(o.ca, maxJobFile); err != nil {
			err = usagef("name the certificate in PEM", "read certificate: %s: %w", o.ca, pathless(err))
		}
	}
	var token queue.Token
	var line string
	if err == nil {
		token, line, err = server.NewClusterToken(o.nats, string(ca), server.Role(o.role), o.name)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(o.out))
	}
	if err := writeToken(f, token); err != nil {
		return errors.Join(folderError(o.out, err), os.Remove(o.out))
	}
	a.printf("%s\n", line)
	return nil
}

// untilKnown waits until a server that runs has noticed a new token: it looks once a second.
func untilKnown(dir string, token queue.Token) {
	for began := time.Now(); time.Since(began) < 3*time.Second && isHeld(filepath.Join(dir, lockName)); time.Sleep(100 * time.Millisecond) {
		nc, err := queue.Dial(token, "vksplat token")
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			return
		}
	}
}

func (a *app) listTokens(dir string, asJSON bool) error {
	keys, err := server.Keys(dir)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(keys)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tROLE\tMADE\tEXPIRES\tKEY")
	for _, k := range keys {
		expires := "never"
		if !k.Expires.IsZero() {
			expires = k.Expires.Local().Format(time.DateTime)
		}
		if k.Expired(time.Now()) {
			expires = "expired"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", orDash(k.Name), k.Role, k.Made.Local().Format(time.DateTime), expires, k.Public)
	}
	return w.Flush()
}
