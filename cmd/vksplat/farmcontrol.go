package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"vksplat/farm/queue"
)

// selectionFlags name tasks of a job.
type selectionFlags struct {
	frames string
	redo   bool
}

func (f *selectionFlags) table() []option {
	return []option{text(&f.frames, "frames", "of the tasks, those that draw some of the frames `A-B`, or every Nth of them: A-BxN")}
}

// selection reads the flags and the names of tasks.
func (f *selectionFlags) selection(tasks []string) (s queue.Selection, err error) {
	s.Tasks, s.Redo = tasks, f.redo
	if f.frames != "" {
		frames, err := queue.ParseFrames(f.frames)
		if err != nil {
			return s, usagef("as in 1001-1100 or 1001-1100x2", "flag --frames: %w", err)
		}
		s.Frames = &frames
	}
	return s, nil
}

// farmChange makes a subcommand that changes a job or tasks of it.
func (a *app) farmChange(cmd *cobra.Command, f *selectionFlags, own []option, done string, change func(ctx context.Context, q *farm, job string, s queue.Selection) error) *cobra.Command {
	return a.farmSub(cmd, &farmFlags{}, true, own, func(ctx context.Context, q *farm, args []string) error {
		s, err := f.selection(args[1:])
		if err != nil {
			return err
		}
		if err := change(ctx, q, args[0], s); err != nil {
			return err
		}
		a.printf("job %s: %s\n", args[0], done)
		return nil
	})
}

func (a *app) farmCancelCommand() *cobra.Command {
	f := &selectionFlags{}
	cmd := &cobra.Command{
		Use:     "cancel JOB [TASK...]",
		Short:   "Cancel a job, or tasks of it",
		Long:    "Cancel a job, or tasks of it by their names or the beginnings of these. What runs saves\nfirst: vksplat farm retry goes on from there. Exits with 1 if there is nothing to cancel.",
		Example: "  vksplat farm cancel sweep\n  vksplat farm cancel film fly --frames 1001-1100",
		Args:    orMore("JOB"),
	}
	return a.farmChange(cmd, f, f.table(), "canceled; what runs saves and stops", func(ctx context.Context, q *farm, job string, s queue.Selection) error {
		return q.Cancel(ctx, job, s)
	})
}

func (a *app) farmRetryCommand() *cobra.Command {
	f := &selectionFlags{}
	cmd := &cobra.Command{
		Use:   "retry JOB [TASK...]",
		Short: "Do again what failed or was canceled",
		Long: "Queue tasks again that failed or were canceled, and with them what was skipped for that:\n" +
			"all of the job, or those named. They go on from their checkpoints. With --redo tasks that\n" +
			"succeeded are done anew as well, and what was made from them. Exits with 1 if there is\n" +
			"nothing to do again.",
		Example: "  vksplat farm retry sweep\n  vksplat farm retry film fly --frames 1001-1100x2 --redo",
		Args:    orMore("JOB"),
	}
	own := append(f.table(), truth(&f.redo, "redo", "also do tasks anew that succeeded, and what was made from them"))
	return a.farmChange(cmd, f, own, "queued again", func(ctx context.Context, q *farm, job string, s queue.Selection) error {
		return q.Retry(ctx, job, s)
	})
}

func (a *app) farmPauseCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "pause JOB", Short: "Start no more tasks of a job; what runs goes on", Args: one("JOB")}
	return a.farmChange(cmd, &selectionFlags{}, nil, "paused", func(ctx context.Context, q *farm, job string, _ queue.Selection) error {
		return q.Pause(ctx, job)
	})
}

func (a *app) farmResumeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "resume JOB", Short: "Go on with a job that was paused, or whose first frames have been looked at", Args: one("JOB")}
	return a.farmChange(cmd, &selectionFlags{}, nil, "goes on", func(ctx context.Context, q *farm, job string, _ queue.Selection) error {
		return q.Resume(ctx, job)
	})
}

func (a *app) farmDrainCommand() *cobra.Command {
	now, undo := false, false
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Short:   "Let a worker take no more tasks",
		Long:    "Let a worker take no more tasks. What it does it does to its end, or with --now saves and\nhands back. --undo lets it take tasks again, also out of quarantine.\nNames of workers that neither are there nor were drained before are refused.",
		Example: "  vksplat farm drain gpu1\n  vksplat farm drain gpu1 --now\n  vksplat farm drain gpu1 --undo",
		Args:    one("NODE"),
	}
	own := []option{truth(&now, "now", "also hand back what it does"), truth(&undo, "undo", "let it take tasks again")}
	return a.farmSub(cmd, &farmFlags{}, false, own, func(ctx context.Context, q *farm, args []string) error {
		if undo && now {
			return usagef("--now hands tasks back, --undo lets the worker take some", "--undo and --now contradict each other")
		}
		if err := isWorker(ctx, q, args[0]); err != nil {
			return err
		}
		if undo {
			if err := q.Undrain(ctx, args[0]); err != nil {
				return err
			}
			a.printf("node %s takes tasks\n", args[0])
			return nil
		}
		if err := q.Drain(ctx, args[0], now); err != nil {
			return err
		}
		a.printf("node %s takes no more tasks\n", args[0])
		return nil
	})
}

// isWorker refuses the name of a worker that neither is there nor has an order that was given while it was.
func isWorker(ctx context.Context, q *farm, name string) error {
	known, err := q.KnowsNode(ctx, name)
	if err != nil || known {
		return err
	}
	nodes, err := q.Nodes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Node)
	}
	return usagef(didYouMean(name, names, "vksplat farm nodes lists those that are there"), "no worker %q is known", name)
}

func (a *app) farmLimitsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "limits [user:NAME=N] [pool:NAME=N]",
		Short:   "Print or set how many tasks of a user or in a pool run at once",
		Long:    "Print or set how many tasks of a user, or in a pool, run at once. NAME may be *, for all\nthat are not named. N is a number, or none. What runs goes on.",
		Example: "  vksplat farm limits\n  vksplat farm limits user:ann=4 'user:*=2' pool:gpu24=none",
		Args:    cobra.ArbitraryArgs,
	}
	return a.farmSub(cmd, &farmFlags{}, false, []option{truth(&asJSON, "json", "as JSON")}, func(ctx context.Context, q *farm, args []string) error {
		limits, err := q.Limits(ctx)
		if err == nil && len(args) > 0 {
			limits, err = q.ChangeLimits(ctx, func(limits *queue.Limits) error {
				for _, word := range args {
					if err := setLimit(limits, word); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(limits)
		}
		return a.printLimits(limits)
	})
}

// setLimit takes in a word of limits.
func setLimit(limits *queue.Limits, word string) error {
	name, text, found := strings.Cut(word, "=")
	n, err := strconv.Atoi(text)
	user, isUser := strings.CutPrefix(name, "user:")
	pool, isPool := strings.CutPrefix(name, "pool:")
	if !found || text != "none" && (err != nil || n < 0) || !isUser && !isPool {
		return usagef("as in user:ann=4, pool:gpu24=8 or user:ann=none", "%q is no limit", word)
	}
	table, of := &limits.Users, user
	if isPool {
		table, of = &limits.Pools, pool
	}
	if *table == nil {
		*table = map[string]int{}
	}
	if text == "none" {
		delete(*table, of)
	} else {
		(*table)[of] = n
	}
	return nil
}

func (a *app) printLimits(limits queue.Limits) error {
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	for _, user := range slices.Sorted(maps.Keys(limits.Users)) {
		_, _ = fmt.Fprintf(w, "user:%s\t%d\n", user, limits.Users[user])
	}
	for _, pool := range slices.Sorted(maps.Keys(limits.Pools)) {
		_, _ = fmt.Fprintf(w, "pool:%s\t%d\n", pool, limits.Pools[pool])
	}
	if len(limits.Users)+len(limits.Pools) == 0 {
		a.printf("no limits\n")
	}
	return w.Flush()
}
