package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"vksplat/farm/queue"
)

// watcher shows how far a job is.
type watcher struct {
	app   *app
	show  *progress
	tasks map[int]queue.TaskStatus
	began map[int]time.Time // attempts that run, as far as they were seen to begin
	said  map[int]time.Time // when their progress was printed last
	waits map[int]string    // why they wait, as printed last
	asked bool              // it was said that somebody has to look at pictures
	quiet bool
}

// errEnded ends a watch of a job that has ended.
var errEnded = errors.New("ended")

// follow shows how far a job is until it ends, then the table of its tasks. The error says that it failed.
func (a *app) follow(ctx context.Context, q *queue.Queue, job string, asJSON bool) error {
	w := &watcher{app: a, tasks: map[int]queue.TaskStatus{}, began: map[int]time.Time{}, said: map[int]time.Time{}, waits: map[int]string{}, quiet: asJSON}
	w.show = newProgress(a.stdout, progressAuto, 0, 1)
	w.show.text = a.text
	a.show = w.show
	defer func() { a.show = nil }()
	var last queue.JobStatus
	err := q.Watch(ctx, job, func(c queue.Change) error {
		if c.Task != nil {
			w.task(*c.Task)
			return nil
		}
		last = *c.Job
		w.job(last)
		if last.Ended != "" {
			return errEnded
		}
		return nil
	})
	w.show.interrupt()
	if !errors.Is(err, errEnded) {
		return err
	}
	status, tasks, err := q.Show(ctx, job)
	if err != nil {
		return err
	}
	if err := a.printJob(status, tasks, asJSON); err != nil {
		return err
	}
	return jobError(status)
}

// jobError is the error of a job that ended otherwise than well.
func jobError(status queue.JobStatus) error {
	bad := status.Counts[queue.Failed] + status.Counts[queue.Skipped] + status.Counts[queue.Canceled]
	switch status.State {
	case queue.JobFailed:
		return &hintedError{err: fmt.Errorf("job %s: %d of %s failed, or were not done for that", status.Name, bad, count(status.Tasks, "task")),
			hint: "the table says why; put that right, then: vksplat farm retry " + quoted(status.Name) + " (a job that is done here: the same command again)"}
	case queue.JobCanceled:
		return &hintedError{err: fmt.Errorf("job %s was canceled", status.Name), hint: "vksplat farm retry " + quoted(status.Name) + " does what is left (for a job that is done here, the same command)"}
	}
	return nil
}

// progressEvery is how often a task's progress is a line of its own, where there is no terminal.
const progressEvery = 10 * time.Second

// task takes in a change of a task.
func (w *watcher) task(t queue.TaskStatus) {
	before, known := w.tasks[t.Index]
	w.tasks[t.Index] = t
	now := time.Now()
	switch {
	case !known:
		w.line(t, waitText(t))
	case before.State != t.State || before.Entry.Attempt != t.Entry.Attempt:
		if t.State == queue.Running {
			w.began[t.Index], w.said[t.Index] = now, now
		}
		w.line(t, w.news(t))
	case t.State == queue.Running && w.show.how == progressPlain && now.Sub(w.said[t.Index]) >= progressEvery:
		w.said[t.Index] = now
		w.line(t, stepText(t))
	}
}

func (w *watcher) line(t queue.TaskStatus, text string) {
	if text != "" && !w.quiet {
		w.app.printf("%s: %s\n", t.Name, text)
	}
}

// news says in words what a task has come to, "" for what goes without saying.
func (w *watcher) news(t queue.TaskStatus) string {
	e := &t.Entry
	switch t.State {
	case queue.Running:
		text := "running on " + e.Node
		if e.Used > 1 {
			text += fmt.Sprintf(", attempt %d", e.Used)
		}
		return text
	case queue.Succeeded:
		if began, seen := w.began[t.Index]; seen {
			return "done in " + durationText(time.Since(began).Seconds())
		}
		return "done"
	case queue.RetryWait:
		return fmt.Sprintf("tried again in %s, because: %s", durationText(time.Duration(e.Delay).Seconds()), e.Error)
	case queue.Queued:
		text := waitText(t)
		if text == w.waits[t.Index] {
			return ""
		}
		w.waits[t.Index] = text
		return text
	case queue.Failed:
		return "failed: " + e.Error
	case queue.Canceled, queue.Skipped, queue.Canceling:
		return string(t.State)
	}
	return ""
}

// waitText says why no worker has taken a task, "" where none had a reason.
func waitText(t queue.TaskStatus) string {
	if t.State != queue.Queued || len(t.Entry.Declined) == 0 {
		return ""
	}
	var reasons []string
	for _, node := range slices.Sorted(maps.Keys(t.Entry.Declined)) {
		reasons = append(reasons, node+": "+t.Entry.Declined[node])
	}
	return "waits for another worker; " + strings.Join(reasons, "; ")
}

// stepText says how far a running task is.
func stepText(t queue.TaskStatus) string {
	e := &t.Entry
	if e.Of > 0 {
		return strings.TrimSpace(fmt.Sprintf("%s %d/%d", e.Message, e.Step, e.Of)) + paceText(&t)
	}
	return e.Message
}

// job takes in the state of the job.
func (w *watcher) job(status queue.JobStatus) {
	if status.State == queue.JobInspect && !w.asked && !w.quiet {
		w.asked = true
		w.app.printf("the first frames are there: look at them, then let the others follow: vksplat farm resume %s\n", quoted(status.Name))
	}
	if w.show.how != progressBar || w.quiet {
		return
	}
	line := fmt.Sprintf("%d/%d tasks", status.Counts[queue.Succeeded], status.Tasks)
	if n := status.Counts[queue.Failed]; n > 0 {
		line += fmt.Sprintf(", %d failed", n)
	}
	for _, i := range sortedKeys(w.tasks) {
		if t := w.tasks[i]; t.State == queue.Running || t.State == queue.Verifying {
			line += "  " + t.Name + " " + stepText(t)
		}
	}
	if most := w.show.width() - 1; len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	w.show.text.Lock()
	defer w.show.text.Unlock()
	_, _ = fmt.Fprintf(w.show.w, "\r%s\x1b[K", line)
	w.show.open = true
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// jobReport is a job as --json prints it.
type jobReport struct {
	queue.JobStatus
	TaskList []queue.TaskStatus `json:"task_list"`
}

// printJob prints a job with its tasks.
func (a *app) printJob(status queue.JobStatus, tasks []queue.TaskStatus, asJSON bool) error {
	if asJSON {
		return a.printJSON(jobReport{status, tasks})
	}
	left := ""
	if status.Left > 0 {
		left = ", " + durationText(time.Duration(status.Left).Seconds()) + " left"
		if status.More {
			left = ", more than " + durationText(time.Duration(status.Left).Seconds()) + " left"
		}
	}
	a.printf("job %s: %s, %s%s\n", status.Name, status.State, countsText(status.Counts), left)
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "INDEX\tTASK\tSTATE\tATTEMPT\tNODE\tPROGRESS")
	for _, t := range tasks {
		what := t.Entry.Error
		if t.State == queue.Succeeded || t.State == queue.Running || what == "" {
			what = stepText(t)
		}
		if why := waitText(t); why != "" {
			what = why
		}
		if t.State == queue.Succeeded {
			what = ""
		}
		if t.Inspect && !status.Inspected && t.State == queue.Succeeded {
			what = "to be looked at"
		}
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\n", t.Index, t.Name, t.State, t.Entry.Attempt, orDash(t.Entry.Node), orDash(what))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print job: %w", err)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(s, "\n", " ")
}

// countsText says how many tasks are in which state.
func countsText(counts map[queue.State]int) string {
	var words []string
	for _, state := range queue.States {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(words, ", ")
}

// logger writes what servers and workers do to standard error.
func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderrOf{a}, &slog.HandlerOptions{Level: level, ReplaceAttr: plainCause}))
}

// plainCause has errors in a log read as those that commands end with, in one line.
func plainCause(_ []string, attr slog.Attr) slog.Attr {
	if err, is := attr.Value.Any().(error); is {
		attr.Value = slog.StringValue(strings.Join(linesOf(err), "; "))
	}
	return attr
}

// stderrOf writes whole lines to an app's standard error.
type stderrOf struct{ a *app }

// Write implements io.Writer.
func (w stderrOf) Write(p []byte) (int, error) {
	w.a.text.Lock()
	defer w.a.text.Unlock()
	w.a.show.endLine()
	return w.a.stderr.Write(p)
}

var _ io.Writer = stderrOf{}
