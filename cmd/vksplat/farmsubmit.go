package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// settingsFlags are the settings that may change while a job runs.
type settingsFlags struct {
	max            int
	priority, pool string
	inspected      bool
}

func (f *settingsFlags) table() []option {
	return []option{
		text(&f.priority, "priority", "the job's priority: `WORD` high, normal or low (default: the document's)").
			oneOf(flow.Priorities...),
		text(&f.pool, "pool", "run the job on the machines of the pool `NAME` (default: the document's)"),
		integer(&f.max, "max", "run at most `N` of its tasks at a time; 0: no limit").within(0, 1e6),
	}
}

// check refuses what the farm would not understand.
func (f *settingsFlags) check() error {
	switch {
	case f.priority != "" && !slices.Contains(flow.Priorities, f.priority):
		return fault.Usagef("give high, normal or low", "--priority %s: unknown priority", f.priority)
	case f.pool != "" && !flow.IsPool(f.pool):
		return fault.Usagef("as in gpu24", "--pool %s: pools have names of a-z, 0-9, '.', '_' and '-'", f.pool)
	}
	return nil
}

func farmSubmitCommand(console *cli.Console) *cobra.Command {
	var (
		settings settingsFlags
		farm     farmFlags
		roots    rootsFlags
		paused   bool
		wait     bool
	)
	cmd := &cobra.Command{
		Use:   "submit JOB.toml",
		Short: "Give a job to the farm",
		Long: "Give the job JOB.toml to the farm. Its inputs must be in the root that the document names, which\n" +
			"all workers see; with --paused they may come later. Finished tasks are not run again: submit a\n" +
			"job again to do the rest.",
		Example: "  vksplat farm submit job.toml --roots roots.toml\n" +
			"  vksplat farm submit job.toml --priority low --max 4 --wait",
		Args: one("JOB.toml"),
	}
	own := append([]option{truth(&wait, "wait", "wait for the job's end, as farm wait does"),
		truth(&paused, "paused", "start no task until farm resume"),
		truth(&settings.inspected, "inspected", "approve the first frames and render the others")}, settings.table()...)
	own = append(own, roots.table()...)
	table := []optionGroup{{options: append(own, farm.table()...)}}
	return newCommand(console, cmd, table, helpLayout{}, func(_ *pflag.FlagSet, args []string) error {
		job, plan, err := readJob(args[0])
		if err == nil {
			err = errors.Join(checkTasks(job, plan.Tasks), settings.check())
		}
		if err != nil {
			return err
		}
		known, err := rootsWithInputs(console, &roots, job, plan, paused)
		if err != nil {
			return err
		}
		return farm.withFarm(console, func(ctx context.Context, f *client.Farm) error {
			if f.Owner == "" {
				return &fault.Error{Op: "submit job", Err: errors.New("this machine's pass is for viewing, not for " +
					"submitting"),
					Kind: fault.ErrSetup, Hint: "join with a token of role submit, into another folder with --pass"}
			}
			id, running, err := f.Submit(ctx, known, job, plan, flow.Settings{Paused: paused, Max: settings.max,
				Inspected: settings.inspected, Priority: settings.priority, Pool: settings.pool})
			if err != nil {
				return err
			}
			if running {
				console.Note("this job is already running; farm set changes it")
			}
			console.Printf("job %s: %s; look at it: vksplat farm show %s%s\n", job.Name,
				cli.Count(len(plan.Tasks), "task"), cli.Quoted(job.Name), farm.words())
			if !wait {
				return nil
			}
			return waitForJob(ctx, console, f, id)
		})
	})
}

// rootsWithInputs reads the roots, and looks whether the job's inputs are there: those of a paused job may come later.
func rootsWithInputs(console *cli.Console, flags *rootsFlags, job *spec.Job, plan *spec.Plan, later bool) (store.Roots,
	error) {
	roots, err := flags.read()
	if err != nil {
		return nil, err
	}
	err = client.CheckInputs(roots, job, plan, "put it there, or correct the key; to submit the job before its inputs "+
		"are there, add --paused")
	if err != nil && later {
		console.Note(err.Error() + "; put it there before farm resume")
		err = nil
	}
	return roots, err
}

// changeCommand makes a command that changes a job.
func changeCommand(console *cli.Console, cmd *cobra.Command, own []option,
	change func(ctx context.Context, f *client.Farm, id string) (said string, err error)) *cobra.Command {
	cmd.Args = one("JOB")
	return asksFarm(console, cmd, own, func(ctx context.Context, f *client.Farm, args []string) error {
		said, err := change(ctx, f, f.JobID(args[0]))
		if err == nil {
			console.Printf("job %s: %s\n", args[0], said)
		}
		return err
	})
}

func farmPauseCommand(console *cli.Console) *cobra.Command {
	yes := true
	return changeCommand(console, &cobra.Command{
		Use:   "pause JOB",
		Short: "Pause a job (running tasks save first)",
		Long:  "Pause a job. Running tasks save and stop, the others wait for farm resume.",
	}, nil, func(ctx context.Context, f *client.Farm, id string) (string, error) {
		return "is pausing; running tasks save first", f.Set(ctx, id, flow.Change{Paused: &yes})
	})
}

func farmResumeCommand(console *cli.Console) *cobra.Command {
	no, inspected, roots := false, false, &rootsFlags{}
	return changeCommand(console, &cobra.Command{
		Use:   "resume JOB",
		Short: "Resume a paused job, or approve its first frames",
		Long: "Resume a job that was paused or submitted with --paused. Tasks resume from their checkpoints.\n" +
			"With --inspected, also approve the first frames, so that the other frames are rendered.",
	}, append([]option{truth(&inspected, "inspected", "approve the first frames and render the others")},
		roots.table()...),
		func(ctx context.Context, f *client.Farm, id string) (string, error) {
			change := flow.Change{Paused: &no}
			if inspected {
				if err := noteInspected(ctx, f, roots, id); err != nil {
					return "", err
				}
				change.Inspected = &inspected
			}
			return "goes on", f.Set(ctx, id, change)
		})
}

// noteInspected records in the store that the first frames were approved, for when the job is submitted
// again.
func noteInspected(ctx context.Context, f *client.Farm, flags *rootsFlags, id string) error {
	d, err := f.Document(ctx, id)
	if err != nil {
		return err
	}
	roots, err := flags.read()
	if err != nil {
		return err
	}
	docs := flow.Documents{Roots: roots}
	p, err := docs.Read(ctx, d)
	if err != nil {
		return err
	}
	root, err := roots.Open(d.Root)
	if err != nil {
		return err
	}
	return local.NoteInspected(root, p.Job)
}

func farmCancelCommand(console *cli.Console) *cobra.Command {
	return changeCommand(console, &cobra.Command{
		Use:   "cancel JOB",
		Short: "Cancel a job (running tasks save first)",
		Long: "Cancel a job. Running tasks save and stop. Finished tasks and checkpoints are kept: the same\n" +
			"job submitted again does the rest.",
	}, nil, func(ctx context.Context, f *client.Farm, id string) (string, error) {
		return "is ending; running tasks save first", f.Cancel(ctx, id)
	})
}

func farmSetCommand(console *cli.Console) *cobra.Command {
	settings := &settingsFlags{max: -1}
	cmd := &cobra.Command{
		Use:   "set JOB",
		Short: "Change a job's priority, pool or number of tasks at a time",
		Long: "Change a running job. Its running tasks continue, except with --pool: they save and move to other " +
			"machines.\n" +
			"The word document for --priority and --pool gives each task its own again.",
		Example: "  vksplat farm set film --priority low --max 2\n  vksplat farm set film --max 0",
	}
	return changeCommand(console, cmd, settings.table(), func(ctx context.Context, f *client.Farm, id string) (string,
		error) {
		var c flow.Change
		var words []string
		given := cmd.Flags().Changed
		own := func(name string, value *string, to **string) {
			if !given(name) {
				return
			}
			words = append(words, name+" "+*value)
			text := *value
			if *to = &text; text == ofDocument {
				**to, *value = "", ""
			}
		}
		own("priority", &settings.priority, &c.Priority)
		own("pool", &settings.pool, &c.Pool)
		if given("max") {
			words = append(words, "at most "+cli.Count(settings.max, "task")+" at a time")
			if c.Max = &settings.max; settings.max == 0 {
				words[len(words)-1] = "no limit on tasks at a time"
			}
		}
		if len(words) == 0 {
			return "", fault.Usagef("give --priority, --pool or --max", "nothing to change")
		}
		if err := settings.check(); err != nil {
			return "", err
		}
		return strings.Join(words, ", "), f.Set(ctx, id, c)
	})
}

// ofDocument stands for what the document says of each task.
const ofDocument = "document"
