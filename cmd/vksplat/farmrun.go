package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
)

// devicesNone as --devices runs only tasks that need none.
const devicesNone = "none"

// defaultCache is how much inputs may take of the disk, in bytes.
const defaultCache = 50 << 30

// farmRunOptions is everything that run is asked for.
type farmRunOptions struct {
	file, inputs, out, work, only string
	devices, progress             string
	others                        int
	cache                         int64 // bytes
	retry, redo, inspected        bool
	keepGoing                     bool
	dryRun, asJSON, schema        bool
	roots                         rootsFlags
	given                         func(flag string) bool
}

func (o *farmRunOptions) table() []option {
	return append([]option{
		text(&o.out, "output",
			"write results to DIR/JOBNAME; `DIR` is a folder or s3://bucket/prefix (default: here)").
			letter("o").isFolder(),
		text(&o.devices, "devices",
			"use these devices: all, none, or a `LIST` as in 0,1; all: the GPUs, if there are any, that the "+
				"environment allows, as in CUDA_VISIBLE_DEVICES; a LIST has indices, UUIDs or PCI addresses").
			oneOf(train.DevicesAll, devicesNone),
		text(&o.only, "only",
			"run only tasks whose name or id matches `TASK,...`, and their dependencies; * and ? are wildcards"),
		truth(&o.retry, "retry", "retry tasks that an earlier run gave up on"),
		truth(&o.redo, "redo",
			"run finished tasks again; with --only, those tasks and their dependents; old results are kept until gc; "+
				"not needed to continue after a stop"),
		truth(&o.inspected, "inspected", "approve the first frames and render the others"),
		truth(&o.keepGoing, "keep-going",
			"run other tasks after one has failed (default true, or the job's retry.keep_going)"),
		chosen(&o.progress, "progress",
			"show progress as `HOW`: auto, plain, json or none; auto: a table on a terminal, else plain lines; json: "+
				"one object per line",
			meter.Auto, meter.Plain, meter.JSON, meter.None),
		text(&o.inputs, "inputs", "find inputs below the folder `DIR` (default: that of JOB.toml)").isFolder(),
		text(&o.work, "work",
			"keep unfinished work in `DIR`, on a local disk; until the job is done (default: in your state "+
				"folder)").isFolder(),
		other((*sizeFlag)(&o.cache), "cache-size",
			"keep at most `BYTES` of inputs in the work folder; the least recently used go first"),
		integer(&o.others, "others",
			"run up to `N` tasks that need no device (partitions, videos, conversions) alongside those that do"),
		truth(&o.dryRun, "dry-run", "print the tasks and stop"),
		truth(&o.asJSON, "json", "with --dry-run, print them as JSON"),
		truth(&o.schema, "schema", "print the JSON Schema of job documents and stop"),
	}, o.roots.table()...)
}

func farmRunCommand(console *cli.Console) *cobra.Command {
	o := &farmRunOptions{devices: train.DevicesAll, others: 1, cache: defaultCache, keepGoing: true,
		progress: meter.Auto}
	cmd := &cobra.Command{
		Use:   "run JOB.toml",
		Short: "Run a job on this machine",
		Long: "Run the job JOB.toml on all GPUs of this machine. Inputs are below the folder of JOB.toml,\n" +
			"results go to a folder with the job's name. Ctrl-C saves and stops; the same command\n" +
			"continues, also after a crash, and repeats nothing that is done.",
		Example: "  vksplat farm run job.toml\n  vksplat farm run job.toml --dry-run\n" +
			"  vksplat farm run job.toml -o /data/results --devices 0,1\n  vksplat farm run job.toml --only 'fly*' " +
			"--retry",
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
	table := []optionGroup{{options: o.table()}}
	return newCommand(console, cmd, table, helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		if o.schema {
			console.Printf("%s", spec.Schema())
			return nil
		}
		o.file, o.given = args[0], flags.Changed
		return farmRun(console, o)
	})
}

func farmRun(console *cli.Console, o *farmRunOptions) error {
	job, plan, err := readJob(o.file)
	if err != nil {
		return err
	}
	if err := checkTasks(job, plan.Tasks); err != nil {
		return err
	}
	if o.asJSON && !o.dryRun {
		return fault.Usagef("add --dry-run to print the tasks as JSON, or give --progress json to run them",
			"--json goes with --dry-run")
	}
	var only []string
	if o.given("only") {
		only = strings.Split(o.only, ",")
	}
	if o.dryRun {
		return o.printTasks(console, job, plan, only)
	}
	run := local.Options{Job: job, Plan: plan, Only: only, Retry: o.retry, Redo: o.redo, Inspected: o.inspected,
		KeepGoing: job.Retry.KeepGoing, Others: o.others, CacheMax: o.cache,
		Version: cli.Version(), Note: console.Note}
	if o.given("keep-going") {
		run.KeepGoing = o.keepGoing
	}
	if run.Roots, err = o.namedRoots(job); err != nil {
		return err
	}
	if run.Devices, err = farmDevices(console, o.devices, plan); err != nil {
		return err
	}
	run.Lacks = lackingKinds()
	if run.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return farmRunLocked(console, o, &run)
}

// lackingKinds are the kinds of tasks whose programs are not installed here.
func lackingKinds() map[*spec.Kind]error {
	lacking := map[*spec.Kind]error{}
	if _, err := exec.LookPath(render.FfmpegName); err != nil {
		lacking[spec.KindEncode] = &fault.Error{Op: "make videos", Err: render.ErrNoFFmpeg, Hint: "install ffmpeg",
			Kind: fault.ErrTryAgain}
	}
	if err := capture.Missing(); err != nil {
		lacking[spec.KindCapture] = err
	}
	return lacking
}

// namedRoots are those of the job on this machine.
func (o *farmRunOptions) namedRoots(job *spec.Job) (store.Roots, error) {
	if o.inputs != "" && !output.IsFolder(o.inputs) {
		return nil, fault.Usagef("name the folder that the job's input keys are relative to",
			"--inputs %s: there is no such folder", o.inputs)
	}
	roots, err := o.roots.read()
	if err != nil {
		return nil, err
	}
	if _, named := roots[job.Store.Inputs]; !named || o.inputs != "" {
		roots[job.Store.Inputs] = store.Options{URL: output.Absolute(cmp.Or(o.inputs, filepath.Dir(o.file)))}
	}
	switch named, is := roots[job.Store.Outputs]; {
	case store.IsBucket(o.out):
		named.URL = o.out // with the endpoint and credentials of the root, where it is one in a bucket
		roots[job.Store.Outputs] = named
	case o.out != "" || !is:
		roots[job.Store.Outputs] = store.Options{URL: output.Absolute(cmp.Or(o.out, "."))}
	}
	return roots, nil
}

// farmRunLocked runs the job once no other process runs it.
func farmRunLocked(console *cli.Console, o *farmRunOptions, run *local.Options) error {
	job := localJob{run.Job.Name, run.Roots[run.Job.Store.Outputs]}
	results, own, lock, err := job.place()
	if err != nil {
		return err
	}
	if run.Locks, err = stateFolder("locks"); err != nil {
		return err
	}
	if store.IsBucket(job.Outputs.URL) {
		if err := os.MkdirAll(run.Locks, 0o777); err != nil {
			return output.FolderError(run.Locks, err)
		}
	} else {
		release, err := output.Claim(results, false)
		if err != nil {
			return err
		}
		defer release()
	}
	ctx, stop := console.Interruptible(cli.Always("stopping as soon as the tasks have saved"))
	defer stop()
	free, err := output.WaitForLock(ctx, lock)
	if errors.Is(err, output.ErrBusy) {
		return fault.WithHint(fmt.Errorf("run job %s: another process is running it, with results in %s: %w",
			run.Job.Name, results, output.ErrBusy),
			"wait until it ends; vksplat farm page "+cli.Quoted(results)+" shows how far it is")
	} else if err != nil {
		return output.FolderError(filepath.Dir(lock), err)
	}
	defer free()
	return farmRunAlone(console, ctx, o, run, job, results, own)
}

// farmRunAlone runs the job in the process that holds its lock. The work folder is made and removed under the lock:
// another process that waits for it makes its own.
func farmRunAlone(console *cli.Console, ctx context.Context, o *farmRunOptions, run *local.Options, job localJob,
	results, own string) error {
	run.Work = output.Absolute(cmp.Or(o.work, filepath.Join(own, "work")))
	release, err := output.Claim(run.Work, false)
	if err != nil {
		return err
	}
	defer release()
	job.note(own)
	view := newJobView(console, o.progress, results, o.redo)
	run.Report, run.Note = view.changed, view.note
	status, err := local.Run(ctx, *run)
	if status == nil {
		return err
	}
	if why := view.end(ctx, status); err == nil {
		err = why
	}
	if o.work == "" && status.Counts()[local.Done] == len(status.Tasks) { // else a task may go on from what is there
		_ = os.RemoveAll(own) // leftovers are harmless
	}
	return err
}

// mostEscaped bounds, in bytes, what a folder's name has of a job's: escaped, letters of other scripts take nine each.
const mostEscaped = 90

// localState is the folder of what this machine keeps of a job that runs here.
func localState(job, results string) (string, error) {
	sum := sha256.Sum256([]byte(results))
	name := spec.Escape(job)
	return stateFolder("local", name[:min(len(name), mostEscaped)]+"-"+hex.EncodeToString(sum[:4]))
}

// stateFolder is where the farm keeps what must outlive a process on this machine.
func stateFolder(parts ...string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fault.WithHint(fmt.Errorf("find the folder of states: %w", err),
				"set XDG_STATE_HOME to a folder")
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

// farmDevices gives the devices that are asked for; none where no task of the job needs one.
func farmDevices(console *cli.Console, choice string, plan *spec.Plan) ([]task.Device, error) {
	if choice == devicesNone || !slices.ContainsFunc(plan.Tasks,
		func(t spec.Task) bool { return t.Kind.NeedsDevice }) {
		return nil, nil
	}
	return chosenDevices(console, choice)
}

// chosenDevices gives the devices that are asked for.
func chosenDevices(console *cli.Console, choice string) (list []task.Device, err error) {
	if choice == devicesNone {
		return nil, nil
	}
	found, note, err := pipeline.FindDevices(choice)
	if err != nil {
		if choice != train.DevicesAll && errors.Is(err, pipeline.ErrNoDevice) {
			return nil, fault.Usagef("vksplat devices lists them", "flag --devices: %w", err)
		}
		return nil, err
	}
	if note != "" {
		console.Note(note)
	}
	for _, d := range found {
		if !d.Usable {
			return nil, fault.Usagef("vksplat devices says what it lacks; name others",
				"flag --devices: device %d (%s) cannot be used", d.Index, d.Name)
		}
		// a device with two drivers counts once
		if !slices.ContainsFunc(list, func(other task.Device) bool { return other.UUID == d.UUID }) {
			list = append(list, task.Device{Name: d.Name, UUID: d.UUID, PCI: d.PCI, Driver: d.Driver,
				MemoryBytes: d.MemoryBytes})
		}
	}
	return list, nil
}

// printTasks lists what a job would do, and then says which input is not there.
func (o *farmRunOptions) printTasks(console *cli.Console, job *spec.Job, plan *spec.Plan, only []string) error {
	chosen, err := local.Chosen(plan, only)
	if err != nil {
		return err
	}
	roots, err := o.namedRoots(job)
	if err != nil {
		return err
	}
	inputs, missing := roots.Open(job.Store.Inputs)
	if missing == nil {
		missing = local.CheckInputs(inputs, job, plan, func(i int) bool { return chosen[i] }, task.InputHint)
	}
	listed := *plan
	listed.Tasks = nil
	for i := range plan.Tasks {
		if chosen[i] {
			listed.Tasks = append(listed.Tasks, plan.Tasks[i])
		}
	}
	if o.asJSON {
		return cmp.Or(console.PrintJSON(&listed), missing)
	}
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INDEX\tTASK\tKIND\tNEEDS")
	for i := range listed.Tasks {
		t := &listed.Tasks[i]
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", t.Index, t.Name, t.Kind, needsText(plan, t))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print tasks: %w", err)
	}
	console.Printf("job %s: %s\n", job.Name, cli.Count(len(listed.Tasks), "task"))
	return missing
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
