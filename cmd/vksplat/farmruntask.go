package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/export"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/pipeline"
)

// progressOpenJD is progress in the words of Open Job Description's schedulers.
const progressOpenJD = "openjd"

// runTaskOptions is everything that run-task is asked for.
type runTaskOptions struct {
	file     string // of the job
	index    int
	of       string // list of tasks that index counts in, "": all
	attempt  int
	roots    string // file
	work     string
	cache    int64 // bytes
	device   string
	progress string
	gather   bool
}

// table lists the options.
func (o *runTaskOptions) table() []optionGroup {
	return []optionGroup{{options: []option{
		text(&o.file, "spec", "the job document, a `FILE` (required)"),
		integer(&o.index, "index", "run task `N` of the job, counted from 0 (required)"),
		text(&o.of, "of", "count --index in the tasks of `LIST`, as in 0-17,22 (default: all)"),
		integer(&o.attempt, "attempt",
			"number `K` of this attempt, unique per task; checkpoints of later attempts are left alone (default: one "+
				"more than the last that has a log)").within(0, 1e9),
		truth(&o.gather, "gather",
			"let an eval measure the models that exist, although the tasks of others failed"),
		text(&o.roots, "roots",
			"TOML `FILE` with the store's roots; without it, inputs are next to the job and outputs in "+
				"farm-results here"),
		text(&o.work, "work",
			"keep inputs and unfinished work in `DIR`, on a local disk (default: the user's cache)").isFolder(),
		other((*sizeFlag)(&o.cache), "cache-size",
			"keep at most `BYTES` of inputs in the work folder (default: all)"),
		other((*deviceFlag)(&o.device), "device", "use device `ID`: index, UUID or PCI address"),
		chosen(&o.progress, "progress", "show progress as `HOW`: plain, json (one object per line) or openjd",
			meter.Plain, meter.JSON, progressOpenJD),
	}}}
}

func farmRunTaskCommand(console *cli.Console) *cobra.Command {
	o := &runTaskOptions{index: -1, progress: meter.Plain}
	cmd := &cobra.Command{
		Use:   "run-task --spec FILE --index N",
		Short: "Run one task of a job, as schedulers do",
		Long: "Run one task of a job: fetch its inputs, resume from its checkpoint if there is one, run it\n" +
			"and commit its results. It needs no server and repeats nothing that is done. It ends with 0 once\n" +
			"the results are in the store; with 75 if another attempt may succeed, as after SIGTERM, which\n" +
			"saves first; with 2, 65 or 78 if none will before the job, its inputs or this machine change.\n" +
			"docs/farm-export.md has templates for schedulers.",
		Example: "  vksplat farm run-task --spec job.toml --index 0\n" +
			"  vksplat farm run-task --spec job.toml --index $SLURM_ARRAY_TASK_ID \\\n" +
			"    --roots roots.toml --work /scratch/farm",
		Args: none,
	}
	return newCommand(console, cmd, o.table(), helpLayout{}, func(*pflag.FlagSet, []string) error {
		if err := runTask(console, o); err != nil {
			return &taskError{err}
		}
		return nil
	})
}

// taskError is an error of run-task, which has exit codes of its own.
type taskError struct{ err error }

func (e *taskError) Error() string { return e.err.Error() }
func (e *taskError) Unwrap() error { return e.err }
func (e *taskError) Exit() int     { return task.ExitOf(e.err) }

// readAtMost reads a file, and of a larger one the first bytes alone.
func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return io.ReadAll(io.LimitReader(f, most))
}

// maxJobFile is more than a job document may have, in bytes: of a larger file nothing more is read.
const maxJobFile = spec.MaxDocument + 1

// readJob reads and plans a job document.
func readJob(file string) (*spec.Job, *spec.Plan, error) {
	if file == "" {
		return nil, nil, fault.Usagef("as in: --spec job.toml", "no job document is named")
	}
	data, err := readAtMost(file, maxJobFile)
	if err != nil {
		return nil, nil, &fault.Error{Op: "read job", Path: file, Err: fault.Pathless(err),
			Hint: "name the file of a job; docs/farm-jobs.md shows one", Kind: store.ErrSetup}
	}
	job, err := spec.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	plan, err := job.Plan()
	return job, plan, err
}

// readRoots reads the file of roots, or makes those of a job that stands alone.
func (o *runTaskOptions) readRoots(job *spec.Job) (store.Roots, error) {
	if o.roots != "" {
		return store.ReadRootsFile(o.roots)
	}
	results := "farm-results"
	if err := os.MkdirAll(results, 0o777); err != nil {
		return nil, output.FolderError(results, err)
	}
	return store.Roots{job.Store.Inputs: {URL: output.Absolute(filepath.Dir(o.file))},
		job.Store.Outputs: {URL: output.Absolute(results)}}, nil
}

// count has index count in all tasks of the job.
func (o *runTaskOptions) count() (err error) {
	if o.index < 0 {
		return fault.Usagef("tasks count from 0; vksplat farm run JOB --dry-run lists them",
			"run-task needs the number of a task: --index N")
	}
	if o.of != "" {
		o.index, err = export.Nth(o.of, o.index)
	}
	return err
}

// runTask runs the task and prints how far it is.
func runTask(console *cli.Console, o *runTaskOptions) error {
	job, plan, err := readJob(o.file)
	if err != nil {
		return err
	}
	if err := o.count(); err != nil {
		return err
	}
	if o.index < len(plan.Tasks) { // task.Run says what is wrong with others
		if err := checkTasks(job, plan.Tasks[o.index:o.index+1]); err != nil {
			return err
		}
	}
	roots, err := o.readRoots(job)
	if err != nil {
		return err
	}
	if o.work == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fault.Usagef("give one with --work", "no folder for the work is known: %w", err)
		}
		o.work = filepath.Join(dir, "vksplat", "farm")
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var saved atomic.Bool
	ctx, done := taskSignals(console, &saved)
	defer done()
	report := reporter(console, o.progress)
	t := task.Options{Job: job, Plan: plan, Index: o.index, Attempt: o.attempt, Gather: o.gather, Roots: roots,
		Work: output.Absolute(o.work), CacheMax: o.cache,
		Program: program, Version: cli.Version(), Device: o.device,
		Report: func(p task.Progress) {
			saved.Store(p.Free)
			report(p)
		}}
	if list, err := task.Devices(ctx, program, cmp.Or(o.device, "auto")); err == nil {
		t.Selected = list[0]
	} else {
		console.Note("no device: " + err.Error()) // some tasks need none, the child of the others says it better
	}
	m, err := task.Run(ctx, t)
	if err != nil {
		if o.progress == progressOpenJD {
			console.Printf("openjd_fail: %s\n", wording.Printable(err.Error()))
		}
		return err
	}
	if o.progress == meter.Plain {
		console.Printf("results: %s in %s, %s together\n", cli.Count(len(m.Files), "file"),
			store.OutOf(task.KeyOf(job, &plan.Tasks[o.index])), pipeline.BytesText(m.Bytes()))
	}
	return nil
}

// taskSignals returns a context that ends with the first signal, and says why: Ctrl-C gives the task up, the others
// hand it back. A later one ends the process at once, unless there is a child that saves: then only Ctrl-C does, for
// schedulers repeat theirs.
func taskSignals(console *cli.Console, saved *atomic.Bool) (ctx context.Context, done func()) {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, cli.StopSignals()...)
	go func() {
		var first time.Time
		for s := range signals {
			cause := task.ErrStopped
			if s == os.Interrupt {
				cause = task.ErrCanceled
			}
			switch {
			case first.IsZero():
				first = time.Now()
				end(cause)
			case time.Since(first) >= cli.AbortAfter && (s == os.Interrupt || saved.Load()):
				_, _ = fmt.Fprintln(console.Stderr,
					"\nvksplat: aborted; what this machine has of the task stays in its work folder")
				os.Exit(task.ExitOf(cause))
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		end(nil)
	}
}

// reporter prints progress. What else it says is for programs.
func reporter(console *cli.Console, how string) func(task.Progress) {
	var before task.Progress
	return func(p task.Progress) {
		if how != meter.JSON {
			p = task.Progress{Task: p.Task, Step: p.Step, Of: p.Of, Message: p.Message}
			if p == before {
				return
			}
			before = p
		}
		share, of := "", ""
		if p.Of > 0 {
			share = fmt.Sprintf("openjd_progress: %.1f\n", 100*float64(min(p.Step, p.Of))/float64(p.Of))
			of = fmt.Sprintf(" %d/%d", p.Step, p.Of)
		}
		switch how {
		case meter.JSON:
			line, err := json.Marshal(p)
			if err == nil {
				console.Printf("%s\n", line)
			}
		case progressOpenJD:
			console.Printf("%sopenjd_status: %s\n", share, wording.Printable(p.Message))
		default:
			console.Printf("%s: %s%s\n", p.Task, p.Message, of)
		}
	}
}
