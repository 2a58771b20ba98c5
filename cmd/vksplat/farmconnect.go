package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"vksplat/farm/queue"
	"vksplat/farm/server"
)

// farmFlags say which farm a command is about.
type farmFlags struct {
	token string // file
	nats  string // servers that others run
	creds string // credentials file for these
}

// tokenVariable names the file of a token for all commands.
const tokenVariable = "VKSPLAT_FARM_TOKEN"

// Folders below the farm's state folder.
const (
	serveFolder = "serve" // of farm serve
	localFolder = "local" // of farm submit without a server
	lockFolder  = "locks" // of devices
)

const adminToken = "admin.token" // in a server's folder

// patience is how long a command waits for a server that does not answer.
const patience = 20 * time.Second

// table lists the options.
func (f *farmFlags) table() []option {
	return []option{
		text(&f.token, "token", "the farm's token, `FILE` (default: $"+tokenVariable+", then farm.token in vksplat's configuration folder, then the server of this machine)"),
		text(&f.nats, "nats", "NATS servers with JetStream that others run, `URLS` as in nats://a:4222,nats://b:4222, in place of a token"),
		text(&f.creds, "nats-creds", "credentials `FILE` for --nats"),
	}
}

// stateFolder is where the farm keeps what must outlive a process on this machine.
func stateFolder(parts ...string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &hintedError{err: fmt.Errorf("find the folder of states: %w", err), hint: "set XDG_STATE_HOME to a folder"}
		}
		dir = filepath.Join(home, ".local", "state")
		if runtime.GOOS == "windows" {
			if dir, err = os.UserCacheDir(); err != nil {
				return "", fmt.Errorf("find the folder of states: %w", err)
			}
		}
	}
	return filepath.Join(append([]string{dir, "vksplat", "farm"}, parts...)...), nil
}

// isHeld says whether another process holds the lock of a path.
func isHeld(path string) bool {
	if !isFile(path) {
		return false
	}
	free, err := lockFile(path)
	if err == nil {
		free()
	}
	return errors.Is(err, errBusy)
}

// tokenFile is the token's file, "" where there is none.
func (f *farmFlags) tokenFile() (string, error) {
	if file := cmp.Or(f.token, os.Getenv(tokenVariable)); file != "" {
		return file, nil
	}
	if dir, err := os.UserConfigDir(); err == nil {
		if file := filepath.Join(dir, "vksplat", "farm.token"); isFile(file) {
			return file, nil
		}
	}
	dir, err := stateFolder(serveFolder)
	if err != nil || !isHeld(filepath.Join(dir, lockName)) {
		return "", err
	}
	return filepath.Join(dir, adminToken), nil
}

// farm is a connection.
type farm struct {
	*queue.Queue
	nc    *nats.Conn
	run   *localRun // whose server it is, nil for one that somebody started as such
	owner string    // of jobs that are submitted: whom the token was made for, else the user of this machine
}

func (f *farm) close() { f.nc.Close() }

// configured connects to the farm that flags, environment or this machine name; nil where there is none.
func (f *farmFlags) configured(ctx context.Context, options queue.Options) (*farm, error) {
	if f.nats != "" {
		nc, err := queue.DialCluster(f.nats, f.creds, "vksplat")
		if err != nil {
			return nil, err
		}
		return connected(ctx, nc, options)
	}
	file, err := f.tokenFile()
	if err != nil || file == "" {
		return nil, err
	}
	return dialToken(ctx, file, options)
}

func dialToken(ctx context.Context, file string, options queue.Options) (*farm, error) {
	token, err := queue.ReadToken(file)
	if err != nil {
		return nil, err
	}
	nc, err := queue.Dial(token, "vksplat")
	if err != nil {
		return nil, err
	}
	f, err := connected(ctx, nc, options)
	if err == nil && token.Role == string(server.Submit) {
		f.owner = token.Name
	}
	return f, err
}

func connected(ctx context.Context, nc *nats.Conn, options queue.Options) (*farm, error) {
	q, err := queue.Connect(ctx, nc, options)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &farm{Queue: q, nc: nc, owner: userName()}, nil
}

// commandOptions are those of connections of short commands.
func commandOptions() queue.Options {
	return queue.Options{Version: programVersion(), Patience: patience}
}

// farms connects to the farm that is configured or else to the servers of all jobs that farm submit runs on this machine.
func (f *farmFlags) farms(ctx context.Context) ([]*farm, error) {
	one, err := f.configured(ctx, commandOptions())
	if one != nil || err != nil {
		return []*farm{one}, err
	}
	runs, err := localRuns()
	if err != nil {
		return nil, err
	}
	var list []*farm
	for _, r := range runs {
		if one, err := dialToken(ctx, r.token(), commandOptions()); err == nil { // else it has just ended
			one.run = r
			list = append(list, one)
		}
	}
	return list, nil
}

// errNoFarm says that there is no server.
func errNoFarm() error {
	return usagef("start one with vksplat farm serve, name its token with --token, or submit a job without one: vksplat farm submit job.toml", "no farm is configured, and none runs on this machine")
}

// farmOf connects to the farm that has a job; with an empty name to the only one.
func (f *farmFlags) farmOf(ctx context.Context, job string) (*farm, error) {
	list, err := f.farms(ctx)
	if err != nil {
		return nil, err
	}
	at := 0
	if len(list) > 1 || job != "" && len(list) == 1 && list[0].run != nil {
		at = slices.IndexFunc(list, func(one *farm) bool { return one.run.job == job })
	}
	var names []string
	for i, one := range list {
		if i == at {
			continue
		}
		names = append(names, one.run.job)
		one.close()
	}
	switch {
	case len(list) == 0:
		return nil, errNoFarm()
	case at < 0 && job == "":
		return nil, usagef("name a farm with --token", "several jobs run on this machine, each with a server of its own: %s", strings.Join(names, ", "))
	case at < 0:
		return nil, usagef(didYouMean(job, names, "running jobs are "+orList(quotedAll(names))), "no job %q runs on this machine", job)
	}
	return list[at], nil
}

// userName is whom jobs belong to.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// farmSub makes a subcommand of farm that works on one farm. With a job its first argument is the job's name.
func (a *app) farmSub(cmd *cobra.Command, f *farmFlags, job bool, own []option, work func(ctx context.Context, q *farm, args []string) error) *cobra.Command {
	table := []optionGroup{{options: append(own, f.table()...)}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.RunE = a.runs(func(args []string) error {
		ctx, stop := a.stoppable(always("stopping"))
		defer stop()
		name := ""
		if job {
			name = args[0]
		}
		q, err := f.farmOf(ctx, name)
		if err != nil {
			return err
		}
		defer q.close()
		err = work(ctx, q, args)
		if job && errors.Is(err, queue.ErrNoJob) {
			return noJob(ctx, q, name, err)
		}
		return err
	})
	return cmd
}

// noJob adds to the error of a job that is not there which was meant.
func noJob(ctx context.Context, q *farm, name string, err error) error {
	const otherwise = "vksplat farm ls lists the jobs"
	jobs, listErr := q.List(ctx)
	if listErr != nil {
		return &hintedError{err: err, hint: otherwise}
	}
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	return &hintedError{err: err, hint: didYouMean(name, names, otherwise)}
}

// orMore makes an argument check: what, and further words.
func orMore(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usagef("as in: vksplat farm "+cmd.Use, "%s needs one %s", cmd.Name(), what)
	}
}

// spanFlag is a length of time, also in days.
type spanFlag time.Duration

func (f *spanFlag) Type() string { return "TIME" }

func (f *spanFlag) String() string {
	if *f == 0 {
		return ""
	}
	if day := 24 * time.Hour; time.Duration(*f)%day == 0 {
		return fmt.Sprintf("%dd", time.Duration(*f)/day)
	}
	return time.Duration(*f).String()
}

// maxDays bounds a spanFlag.
const maxDays = 36500

// Set parses 30s, 10m, 6h or 30d.
func (f *spanFlag) Set(s string) error {
	var days int
	var rest string
	if n, _ := fmt.Sscanf(s, "%d%s", &days, &rest); n == 2 && rest == "d" && days >= 0 && days <= maxDays {
		*f = spanFlag(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return usagef("as in 30s, 10m, 6h or 30d", "%q is no length of time", s)
	}
	*f = spanFlag(d)
	return nil
}
