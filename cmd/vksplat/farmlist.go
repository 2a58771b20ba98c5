package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
)

func (a *app) farmLsCommand() *cobra.Command {
	f, asJSON := &farmFlags{}, false
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the jobs",
		Long:  "List the jobs of the farm, or those that vksplat farm submit runs on this machine.",
		Args:  cobra.NoArgs,
	}
	table := []optionGroup{{options: append([]option{truth(&asJSON, "json", "as JSON")}, f.table()...)}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func([]string) error {
		ctx, stop := a.stoppable(always("stopping"))
		defer stop()
		list, err := f.farms(ctx)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errNoFarm()
		}
		jobs := []queue.JobStatus{}
		for _, q := range list {
			defer q.close()
			more, err := q.List(ctx)
			if err != nil {
				return err
			}
			jobs = append(jobs, more...)
		}
		if asJSON {
			return a.printJSON(jobs)
		}
		return a.printJobs(jobs)
	})
	return cmd
}

func (a *app) printJobs(jobs []queue.JobStatus) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "JOB\tOWNER\tPRIORITY\tSTATE\tSUBMITTED\tTASKS")
	for _, j := range jobs {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", j.Name, orDash(j.Owner), j.Priority, j.State, submittedText(j), countsText(j.Counts))
	}
	return w.Flush()
}

// submittedText is when a job was submitted, as far as that is known.
func submittedText(j queue.JobStatus) string {
	if j.Submitted.IsZero() {
		return "-"
	}
	return j.Submitted.Local().Format(time.DateTime)
}

func (a *app) farmShowCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show JOB",
		Short: "Show a job with all its tasks",
		Args:  one("JOB"),
	}
	return a.farmSub(cmd, &farmFlags{}, true, []option{truth(&asJSON, "json", "as JSON")}, func(ctx context.Context, q *farm, args []string) error {
		status, tasks, err := q.Show(ctx, args[0])
		if err != nil {
			return err
		}
		return a.printJob(status, tasks, asJSON)
	})
}

func (a *app) farmWaitCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "wait JOB",
		Short: "Show how far a job is, and end with it: 0 if all of it succeeded, else 1",
		Args:  one("JOB"),
	}
	return a.farmSub(cmd, &farmFlags{}, true, []option{truth(&asJSON, "json", "print nothing but the job at its end, as JSON")}, func(ctx context.Context, q *farm, args []string) error {
		return a.follow(ctx, q.Queue, args[0], asJSON)
	})
}

func (a *app) farmLogsCommand() *cobra.Command {
	follow, asJSON := false, false
	cmd := &cobra.Command{
		Use:   "logs JOB [TASK]",
		Short: "Print what tasks print",
		Long: "Print what the tasks of a job print, of the last week. With -f it goes on with what they\n" +
			"print from now on, and ends with the job, or with the task that is named. Whole logs are\n" +
			"with the results.",
		Example: "  vksplat farm logs sweep\n  vksplat farm logs -f sweep sweep/scene=garden",
		Args:    orMore("JOB"),
	}
	own := []option{truth(&follow, "follow", "go on with what they print from now on, until the job or the task has ended").letter("f"), truth(&asJSON, "json", "a JSON object a line")}
	return a.farmSub(cmd, &farmFlags{}, true, own, func(ctx context.Context, q *farm, args []string) error {
		_, tasks, err := q.Show(ctx, args[0])
		if err != nil {
			return err
		}
		index := -1
		if len(args) > 1 {
			if index = slices.IndexFunc(tasks, func(t queue.TaskStatus) bool { return t.Name == args[1] || fmt.Sprint(t.Index) == args[1] }); index < 0 {
				return usagef("vksplat farm show "+quoted(args[0])+" lists them", "job %s has no task %q", args[0], args[1])
			}
		}
		var until <-chan struct{}
		if follow {
			until = endOf(ctx, q, args[0], index)
		}
		err = q.Logs(ctx, args[0], index, until, func(l queue.LogLine) error {
			switch {
			case asJSON:
				_ = writeLine(a.stdout, l) // what could not be written is kept there
			case l.Index < len(tasks):
				a.printf("%s %s.%d: %s\n", l.At.Local().Format(time.TimeOnly), tasks[l.Index].Name, l.Attempt, l.Text)
			}
			if out, is := a.stdout.(*output); is {
				return out.failed() // nobody would see more
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}

// endOf is closed once a task of a job has ended, or the whole job; with index below zero only then.
func endOf(ctx context.Context, q *farm, job string, index int) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			err := q.Watch(ctx, job, func(c queue.Change) error {
				if c.Job != nil && c.Job.Ended != "" || c.Task != nil && c.Task.Index == index && c.Task.State.Ended() {
					return errEnded
				}
				return nil
			})
			if errors.Is(err, errEnded) || errors.Is(err, queue.ErrNoJob) {
				close(ended)
				return
			}
			select { // the server was away for long
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return ended
}

func (a *app) farmNodesCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the workers",
		Args:  cobra.NoArgs,
	}
	return a.farmSub(cmd, &farmFlags{}, false, []option{truth(&asJSON, "json", "as JSON")}, func(ctx context.Context, q *farm, _ []string) error {
		nodes, err := q.Nodes(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(nodes)
		}
		w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "NODE\tSTATE\tPOOLS\tVERSION\tDEVICES\tDISK FREE\tLACKS\tTASKS")
		for _, n := range nodes {
			state := "ready"
			switch {
			case n.Quarantine != "":
				state = "quarantine: " + n.Quarantine
			case n.Drain:
				state = "drained"
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, state, spec.PoolsText(n.Pools), orDash(n.Version), orDash(devicesText(&n)),
				diskText(n.DiskFree), orDash(strings.Join(n.Lacks, ", ")), orDash(strings.Join(n.Tasks, ", ")))
		}
		return w.Flush()
	})
}

// diskText is the room in a worker's folder, where that is known.
func diskText(free int64) string {
	if free <= 0 {
		return "-"
	}
	return bytesText(free)
}
