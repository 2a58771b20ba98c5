package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/client"
	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/store"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

func farmListCommand(console *cli.Console) *cobra.Command {
	o := &listOptions{limit: 50}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the farm's jobs, or those of this machine",
		Long: "List the running jobs of the farm, of all owners, newest first, then jobs that have ended.\n" +
			"If this machine has joined no farm, or with --local, list jobs of farm run.",
		Example: "  vksplat farm list\n  vksplat farm list --all",
		Args:    none,
	}
	return asksJobs(console, cmd, []option{
		truth(&o.all, "all", "also list jobs that have ended, while the farm still keeps them"),
		integer(&o.limit, "limit", "list at most `N` jobs; 0: all of them").within(0, 1e6),
		truth(&o.asJSON, "json", "print JSON"),
	}, func(ctx context.Context, f *client.Farm, _ []string) error {
		list, more, err := f.List(ctx, o.all, o.limit)
		if err != nil {
			return err
		}
		return o.print(console, list, more)
	}, func([]string) error {
		list, _, err := localJobs()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(j client.Job) bool { return j.Over() && !o.all })
		more := o.limit > 0 && len(list) > o.limit
		if more {
			list = list[:o.limit]
		}
		return o.print(console, list, more)
	})
}

// listOptions is everything that list is asked for.
type listOptions struct {
	all, asJSON bool
	limit       int
}

func (o *listOptions) print(console *cli.Console, list []client.Job, more bool) error {
	if more {
		console.Note(fmt.Sprintf("there are more than %s; --limit 0 lists all", cli.Count(o.limit, "job")))
	}
	if o.asJSON {
		return console.PrintJSON(append([]client.Job{}, list...))
	}
	if len(list) == 0 && !o.all {
		console.Printf("no job is running; vksplat farm list --all also lists those that have ended\n")
		return nil
	}
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "JOB\tSTATUS\tTASKS\tDONE\tFAILED\tBEGAN")
	for i := range list {
		j, done, failed := &list[i], "-", "-"
		switch {
		case j.State != nil:
			done, failed = fmt.Sprint(j.State.Done), fmt.Sprint(j.State.Failed)
		case j.Status == client.Done:
			done, failed = fmt.Sprint(j.Tasks), "0"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", wording.Printable(j.ID), j.Status, j.Tasks, done,
			failed, j.Began.Local().Format(time.DateTime))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print jobs: %w", err)
	}
	return nil
}

func farmShowCommand(console *cli.Console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show JOB",
		Short:   "Show a job: counts, running tasks, failures",
		Long:    "Show a job's progress: task counts, what is running where, and why tasks failed.",
		Example: "  vksplat farm show film\n  vksplat farm show ben/film --json",
		Args:    one("JOB"),
	}
	printed := func(j *client.Job, err error) error {
		switch {
		case err != nil:
			return err
		case asJSON:
			return console.PrintJSON(j)
		}
		return printFarmJob(console, j)
	}
	return asksJobs(console, cmd, []option{truth(&asJSON, "json", "print JSON")},
		func(ctx context.Context, f *client.Farm, args []string) error {
			return printed(f.Show(ctx, f.JobID(args[0])))
		},
		func(args []string) error {
			j, _, err := findLocalJob(args[0])
			if err = printed(j, err); err == nil && !asJSON {
				console.Printf("results: %s\n", j.Root)
			}
			return err
		})
}

// farmCounts says how many tasks are in which state.
func farmCounts(j *client.Job) string {
	s, words := j.State, []string(nil)
	add := func(n int, word string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, word))
		}
	}
	add(s.Done, "done")
	add(s.Queued, "queued or running")
	add(s.Waiting, "waiting")
	add(s.Failed, "failed")
	add(s.Skipped, "skipped")
	if s.Tasks == 0 {
		words = []string{"not planned yet"}
		if j.Over() {
			words[0] = "not planned"
		}
	}
	return fmt.Sprintf("%s: %s", cli.Count(j.Tasks, "task"), strings.Join(words, ", "))
}

// printFarmJob prints a job for people.
func printFarmJob(console *cli.Console, j *client.Job) error {
	s := j.State
	console.Printf("job %s: %s; %s\n", wording.Printable(j.Name), j.Status, farmCounts(j))
	var set []string
	if s.Priority != "" {
		set = append(set, "priority "+s.Priority)
	}
	if s.Pool != "" {
		set = append(set, "pool "+s.Pool)
	}
	if s.Max > 0 {
		set = append(set, "at most "+cli.Count(s.Max, "task")+" at a time")
	}
	if s.Halted {
		set = append(set, "no more tasks start: one has failed, and keep_going is false")
	}
	if s.Gated > 0 {
		set = append(set, fmt.Sprintf("%d wait for approval of the first frames: farm resume --inspected",
			s.Gated))
	}
	if len(set) > 0 {
		console.Printf("%s\n", strings.Join(set, "; "))
	}
	if j.Error != "" {
		console.Printf("%s\n", wording.Printable(j.Error))
	}
	if j.Hint != "" {
		console.Printf("  hint: %s\n", wording.Printable(j.Hint))
	}
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	if len(j.Now) > 0 {
		_, _ = fmt.Fprintln(w, "TASK\tWHERE\tSAYS")
	}
	for i := range j.Now {
		t := &j.Now[i]
		where, says := orDash(t.Host), stepText(&local.TaskStatus{Message: t.Message, Step: t.Step, Of: t.Of,
			Rate: t.Rate, Unit: t.Unit})
		if t.Device != "" {
			where += ", " + t.Device
		}
		if !t.Running {
			where, says = "-", "is tried again, because: "+t.Failure
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", wording.Printable(t.Task), wording.Printable(where),
			orDash(wording.Printable(says)))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print tasks: %w", err)
	}
	for _, queue := range slices.Sorted(maps.Keys(j.Waits)) {
		console.Printf("%s for %s\n", waiting(j.Waits[queue]), wording.Printable(flow.QueueText(queue)))
	}
	for _, f := range s.Failures {
		console.Printf("failed: %s: %s\n", wording.Printable(f.Task), wording.Printable(f.Error))
		if f.Hint != "" {
			console.Printf("  hint: %s\n", wording.Printable(f.Hint))
		}
	}
	return nil
}

func waiting(n int) string {
	if n == 1 {
		return "1 task waits"
	}
	return fmt.Sprintf("%d tasks wait", n)
}

func farmWaitCommand(console *cli.Console) *cobra.Command {
	return asksFarm(console, &cobra.Command{
		Use:   "wait JOB",
		Short: "Wait for a job's end; the exit code says how it ended",
		Long: "Wait for the end of a job. The exit code is that of farm run: 0 if all is done, 1 if tasks failed,\n" +
			"75 if the rest waits for farm resume --inspected, 130 if it was canceled.",
		Example: "  vksplat farm wait film &&\n    vksplat farm artifacts get /mnt/farm/outputs/film '*.mp4'",
		Args:    one("JOB"),
	}, nil, func(ctx context.Context, f *client.Farm, args []string) error {
		return waitForJob(ctx, console, f, f.JobID(args[0]))
	})
}

const (
	waitEvery = 2 * time.Second
	waitFor   = 10 * time.Minute // for a farm that does not respond
)

// waitForJob says how far a job is until it ends.
func waitForJob(ctx context.Context, console *cli.Console, f *client.Farm, id string) error {
	before, answered := "", time.Now()
	for {
		j, err := f.Show(ctx, id)
		switch {
		case ctx.Err() != nil:
			return fault.WithHint(fault.ErrInterrupted, "the job continues; wait for it again with vksplat farm wait")
		case errors.Is(err, fault.ErrTryAgain) && time.Since(answered) < waitFor:
			if before != "" {
				console.Note("waiting for the farm: " + err.Error())
				before = ""
			}
		case err != nil:
			return err
		default:
			answered = time.Now()
			text := farmCounts(j)
			if !j.Over() && j.Error != "" {
				text += "; " + wording.Printable(j.Error)
			}
			if text != before {
				before = text
				console.Printf("%s\n", text)
			}
			if over, err := jobEnd(console, j); over {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitEvery):
		}
	}
}

// jobEnd says whether a job has ended, or waits for people, and how.
func jobEnd(console *cli.Console, j *client.Job) (over bool, err error) {
	s := j.State
	switch {
	case j.Status == client.Done:
		return true, nil
	case j.Status == client.Canceled:
		return true, fault.WithHint(fmt.Errorf("job %s was canceled: %w", j.Name, fault.ErrInterrupted),
			"submit it again to do the rest")
	case j.Over():
		if err := printFarmJob(console, j); err != nil {
			return true, err
		}
		hint := "fix what it says, then submit the job again: finished tasks are kept"
		return true, fault.WithHint(fmt.Errorf("job %s: %s", j.Name, orDash(j.Error)), hint)
	case s.Gated > 0 && s.Queued == 0 && !s.Paused && s.Done+s.Failed+s.Skipped+s.Waiting == s.Tasks:
		return true, &fault.Error{Op: "wait for job", Path: j.Name, Kind: fault.ErrTryAgain,
			Err:  errors.New("its first frames are ready; the others wait for approval"),
			Hint: "review them, then: vksplat farm resume " + cli.Quoted(j.Name) + " --inspected"}
	}
	return false, nil
}

func farmLogsCommand(console *cli.Console) *cobra.Command {
	var roots rootsFlags
	cmd := &cobra.Command{
		Use:   "logs JOB TASK",
		Short: "Print the log of a task's last attempt",
		Long: "Print the log of the last attempt at a task. Jobs of the same name share one folder of results,\n" +
			"so it may be that of an earlier job. Logs are in the store, at most 15\n" +
			"seconds old; times are in UTC.",
		Example: "  vksplat farm logs film model --roots roots.toml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return fault.Usagef("as in: "+cmd.Parent().CommandPath()+" "+cmd.Use, "%s needs a JOB and a TASK, %s",
				cmd.Name(), given(len(args)))
		},
	}
	return asksJobs(console, cmd, roots.table(), func(ctx context.Context, f *client.Farm, args []string) error {
		known, err := roots.read()
		if err != nil {
			return err
		}
		d, err := f.Document(ctx, f.JobID(args[0]))
		if err != nil {
			return err
		}
		root, err := known.Open(d.Root)
		if err != nil {
			return err
		}
		job, _, _ := strings.Cut(d.Key, "/")
		return printLog(console, root, job, args[1])
	}, func(args []string) error {
		_, root, err := findLocalJob(args[0])
		if err != nil {
			return err
		}
		return printLog(console, root, args[0], args[1])
	})
}

// printLog prints the newest log of a task.
func printLog(console *cli.Console, root store.Root, job, name string) error {
	newest, err := local.LastLog(root, path.Join(job, name), 0)
	if err != nil {
		return store.Explain("read log", path.Join(job, name), err)
	}
	if newest.Key == "" {
		return fault.Usagef("vksplat farm run JOB.toml --dry-run lists the names of tasks",
			"no attempt at a task %q of this job has written a log", name)
	}
	r, err := root.Open(newest.Key)
	if err != nil {
		return store.Explain("read log", newest.Key, err)
	}
	defer r.Close() // only read
	data, err := io.ReadAll(r)
	if err != nil {
		return store.Explain("read log", newest.Key, err)
	}
	console.Note(fmt.Sprintf("%s, last written to at %s", newest.Key, newest.Modified.Local().Format(time.DateTime)))
	console.Printf("%s", wording.PrintableLines(string(data)))
	return nil
}
