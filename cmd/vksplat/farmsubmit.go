package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/worker"
)

// submitOptions is everything that submit is asked for.
type submitOptions struct {
	farm    farmFlags
	file    string
	local   bool
	inputs  string
	out     string
	work    workFlags
	roots   rootsFlags
	dryRun  bool
	asJSON  bool
	wait    bool
	verbose bool
	schema  bool
}

func (a *app) farmSubmitCommand() *cobra.Command {
	o := &submitOptions{work: workFlags{devices: devicesAll, others: 1, cache: defaultCache}}
	cmd := &cobra.Command{
		Use:   "submit JOB.toml",
		Short: "Do the tasks of a job, here or on a farm",
		Long: "Do the tasks of the job JOB.toml. Where a farm is configured it gets the job, and this\n" +
			"command ends. Else this process does the whole job on all GPUs of this machine: inputs\n" +
			"are below the folder of JOB.toml, results go to a folder of the job's name. Ctrl-C saves\n" +
			"and stops; the same command goes on, also after a crash, and tries again what failed.",
		Example: "  vksplat farm submit job.toml\n  vksplat farm submit job.toml --dry-run\n  vksplat farm submit job.toml -o /data/results --devices 0,1\n  vksplat farm submit job.toml --token lab.token --wait",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.schema && len(args) == 0 {
				return nil
			}
			return one("JOB.toml")(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	table := []optionGroup{{options: o.table()}, {options: o.roots.table()}, {options: pickOptions([]optionGroup{{options: o.work.table()}}, "devices", "others", "cache-size")[0].options}, {options: o.farm.table()}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func(args []string) error {
		if o.schema {
			a.printf("%s", spec.Schema())
			return nil
		}
		o.file = args[0]
		return a.submit(o)
	})
	return cmd
}

func (o *submitOptions) table() []option {
	return []option{
		text(&o.out, "output", "without a farm: results go to a folder of the job's name in the folder `DIR` (default: here)").letter("o").isFolder(),
		text(&o.inputs, "inputs", "without a farm: keys of inputs are below the folder `DIR` (default: that of JOB.toml)").isFolder(),
		truth(&o.local, "local", "do the job here, even where a farm is configured"),
		truth(&o.wait, "wait", "on a farm: show how far the job is, and end with it"),
		truth(&o.dryRun, "dry-run", "print the tasks, and stop"),
		truth(&o.asJSON, "json", "print the tasks, or at the end the job, as JSON"),
		truth(&o.verbose, "verbose", "print what server and worker do"),
		truth(&o.schema, "schema", "print the JSON Schema of job documents, and stop"),
	}
}

func (a *app) submit(o *submitOptions) error {
	job, plan, err := readJob(o.file)
	if err != nil {
		return err
	}
	if err := checkTasks(plan.Tasks); err != nil {
		return err
	}
	if o.dryRun {
		return a.printTasks(job, plan, o.asJSON)
	}
	if o.local {
		return a.submitHere(o, job, plan)
	}
	done, err := a.submitThere(o, job)
	if err != nil || done {
		return err
	}
	return a.submitHere(o, job, plan)
}

// submitThere submits a job to the farm that is configured, and reports whether there is one.
func (a *app) submitThere(o *submitOptions, job *spec.Job) (done bool, err error) {
	ctx, stop := a.stoppable(always("stopping; the job goes on"))
	defer stop()
	q, err := o.farm.configured(ctx, commandOptions())
	if err != nil || q == nil {
		return false, err
	}
	defer q.close()
	if o.out != "" || o.inputs != "" {
		return false, usagef("the farm's workers know its roots; add --local to do the job here", "--output and --inputs are for jobs that are done here")
	}
	p, err := worker.JobPlan(job, q.owner)
	if err != nil {
		return false, err
	}
	if err := q.Submit(ctx, p); err != nil {
		return false, err
	}
	status, _, err := q.Show(ctx, job.Name)
	if err != nil {
		return false, err
	}
	if status.Ended != "" {
		a.note(fmt.Sprintf("the farm had this job already, and it has ended: %s; vksplat farm retry %s does again what failed, with --redo all", status.Ended, quoted(job.Name)))
	} else if !o.asJSON {
		a.printf("job %s: %s\n", job.Name, count(len(p.Tasks), "task"))
	}
	if nodes, err := q.Nodes(ctx); err == nil { // else the job is there all the same
		for _, text := range waitsFor(job, p.Tasks, nodes) {
			a.note(text)
		}
	}
	if o.wait {
		return true, a.follow(ctx, q.Queue, job.Name, o.asJSON)
	}
	return true, nil
}

// printTasks lists what a job would do.
func (a *app) printTasks(job *spec.Job, plan *spec.Plan, asJSON bool) error {
	if asJSON {
		return a.printJSON(plan)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INDEX\tTASK\tKIND\tNEEDS")
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", t.Index, t.Name, t.Kind, needsText(plan, t))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print tasks: %w", err)
	}
	a.printf("job %s: %s\n", job.Name, count(len(plan.Tasks), "task"))
	return nil
}

// needsText names what a task needs.
func needsText(plan *spec.Plan, t *spec.Task) string {
	switch len(t.Needs) {
	case 0:
		return "-"
	case 1:
		return plan.Tasks[t.Needs[0]].Name
	}
	return fmt.Sprintf("%s and %d more", plan.Tasks[t.Needs[0]].Name, len(t.Needs)-1)
}

// localLease is how long a local worker may be silent.
const localLease = 6 * time.Second

// submitHere does a job in this process.
func (a *app) submitHere(o *submitOptions, job *spec.Job, plan *spec.Plan) error {
	roots, err := o.roots.read()
	if err != nil {
		return err
	}
	inputs := cmp.Or(o.inputs, filepath.Dir(o.file))
	outputs := store.Options{URL: absolute(cmp.Or(o.out, "."))}
	if named := roots[job.Store.Outputs]; o.out == "" && store.IsBucket(named.URL) {
		outputs = named
	}
	run, err := newLocalRun(job.Name, outputs.URL, job.Hash())
	if err != nil {
		return err
	}
	devices, err := o.work.list(a)
	if err != nil {
		return err
	}
	if err := a.checkHere(o, plan, devices); err != nil {
		return err
	}
	if err := os.MkdirAll(run.dir, 0o700); err != nil {
		return folderError(run.dir, err)
	}
	if isHeld(run.lock()) {
		a.note("another process has this job: waiting for its end, or for what it does")
	}
	free, err := waitForLock(context.Background(), run.lock())
	if errors.Is(err, errBusy) {
		return a.watchOther(run)
	} else if err != nil {
		return folderError(run.dir, err)
	}
	defer func() {
		free()
		_ = os.Remove(run.dir) // refused unless nothing is left to be done
	}()
	if err := needLock(run.lock()); err != nil {
		return err
	}
	if !store.IsBucket(run.out) { // whose results are there whole or not at all
		release, err := claimFolder(run.out, false)
		if err != nil {
			return err
		}
		defer release()
	}
	if _, named := roots[job.Store.Inputs]; !named || o.inputs != "" {
		roots[job.Store.Inputs] = store.Options{URL: absolute(inputs)}
	}
	roots[job.Store.Outputs] = outputs
	if err := run.prepare(roots); err != nil {
		return err
	}
	h := &here{app: a, options: o, job: job, run: run, devices: devices, kill: make(chan struct{})}
	a.onAbort = func() { close(h.kill) }
	return h.do()
}

// watchOther follows a job that another process does. That may end before it was heard that the job has: then what it has left says so.
func (a *app) watchOther(run *localRun) error {
	begun := run.isKept()
	err := a.watchHeld(run)
	if err != nil && begun && !run.isKept() {
		a.printf("job %s: succeeded\nresults: %s\n", run.job, run.results())
		return nil
	}
	return err
}

// watchHeld follows a job as long as another process has its lock.
func (a *app) watchHeld(run *localRun) error {
	a.note("another process does this job: showing how far it is; Ctrl-C does not stop it")
	ctx, stop := a.stoppable(always("stopping; the other process goes on"))
	defer stop()
	q, err := dialToken(ctx, run.token(), commandOptions())
	if err != nil {
		return err
	}
	defer q.close()
	watching, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	go func() {
		for ; watching.Err() == nil; time.Sleep(time.Second) {
			if !isHeld(run.lock()) {
				gone(&hintedError{err: errors.New("the process that did this job has ended"), hint: "the same command goes on with what is left"})
			}
		}
	}()
	err = a.follow(watching, q.Queue, run.job, false)
	if cause := context.Cause(watching); err != nil && cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// here does a job in this process.
type here struct {
	app     *app
	options *submitOptions
	job     *spec.Job
	run     *localRun
	devices []worker.Device
	kill    chan struct{}
}

func (h *here) logger() *slog.Logger {
	level := slog.LevelWarn
	if h.options.verbose {
		level = slog.LevelInfo
	}
	return h.app.logger(level)
}

func (h *here) do() error {
	a := h.app
	ctx, stop := a.interruptible(always("stopping once the tasks have saved"))
	defer stop()
	s, err := server.Start(ctx, server.Options{Dir: h.run.server(), Listen: "127.0.0.1:0", Version: programVersion(), Log: h.logger(),
		Farm: queue.Farm{Lease: queue.Duration(localLease)}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := h.submit(ctx, s.Queue()); err != nil {
		return err
	}
	working, rest := context.WithCancel(ctx)
	defer rest()
	watching, gone := context.WithCancel(ctx)
	defer gone()
	ended := make(chan error, 1)
	go func() {
		ended <- h.work(working, s)
		gone() // without its worker the job would never end
	}()
	err = a.follow(watching, s.Queue(), h.job.Name, h.options.asJSON)
	left := watching.Err() != nil
	if !left && !h.options.asJSON {
		a.printf("results: %s\n", h.run.results())
	}
	rest()
	workErr := <-ended
	if ctx.Err() != nil {
		return &hintedError{err: fmt.Errorf("%w; what is done is kept", errInterrupted), hint: "go on with the same command"}
	}
	if left && workErr != nil {
		return workErr // err only says that nobody watches any more
	}
	if err = errors.Join(err, workErr); err != nil {
		return err
	}
	s.Close()
	return h.run.forget()
}

// submit puts the job into the queue, or finds it there and tries again what failed.
func (h *here) submit(ctx context.Context, q *queue.Queue) error {
	plan, err := worker.JobPlan(h.job, userName())
	if err != nil {
		return err
	}
	for i := range plan.Tasks {
		plan.Tasks[i].Lease = 0 // that of this server: no network lies between
	}
	err = q.Submit(ctx, plan)
	if err != nil {
		return err
	}
	status, _, err := q.Show(ctx, h.job.Name)
	if err != nil {
		return err
	}
	if status.Ended == "" { // this process has the run's lock: who worked on it before was killed, and is gone
		return q.TakeBack(ctx, h.job.Name)
	}
	if status.State != queue.JobSucceeded {
		h.app.note("trying again what failed or was canceled")
		return q.Retry(ctx, h.job.Name, queue.Selection{})
	}
	return nil
}

// work runs the worker of this process.
func (h *here) work(ctx context.Context, s *server.Server) error {
	nc, err := s.Connect("worker")
	if err != nil {
		return err
	}
	defer nc.Close()
	q, err := queue.Connect(ctx, nc, queue.Options{Version: programVersion(), Log: h.logger()})
	if err != nil {
		return err
	}
	locks, err := stateFolder(lockFolder)
	if err != nil {
		return err
	}
	command, err := runTaskCommand()
	if err != nil {
		return err
	}
	return worker.Run(ctx, worker.Options{Queue: q, Node: nodeName(), Pools: h.pools(), Devices: h.devices, Others: h.options.work.others,
		Roots: func(string) string { return h.run.roots() }, Work: h.run.work(), Locks: locks, CacheMax: h.options.work.cache, Alone: true, Command: command, Lost: lostText, Log: h.logger(), Kill: h.kill})
}

// pools are all that tasks of the job are for: there is no other worker.
func (h *here) pools() (pools []string) {
	plan, err := h.job.Plan()
	if err != nil {
		return nil
	}
	seen := map[string]bool{"": true, queue.AnyPool: true}
	for i := range plan.Tasks {
		if pool := plan.Tasks[i].Pool; !seen[pool] {
			seen[pool] = true
			pools = append(pools, pool)
		}
	}
	return pools
}
