package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"vksplat/farm/local"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/wording"
)

// jobView shows how far a job is.
type jobView struct {
	console *cli.Console
	how     string // never auto
	width   func() int
	results string
	same    string // the command that continues the job
	states  map[int]local.State
	said    map[int]time.Time // when a task's progress was printed last
	drawn   time.Time         // of the table
	lines   int               // of the table, which the next one replaces
}

const (
	taskEvery = 10 * time.Second // how often a task's progress is a line of its own, without a terminal
	mostRows  = 20               // of the table that is drawn again and again
)

func newJobView(console *cli.Console, how, results string, redo bool) *jobView {
	p := meter.New(console.Stdout, how, 0, 1)
	v := &jobView{console: console, how: p.How, width: p.Width, results: results, same: "the same command",
		states: map[int]local.State{}, said: map[int]time.Time{}}
	if redo { // which would begin again
		v.same = "the same command without --redo"
	}
	return v
}

// taskLine is a line of --progress json.
type taskLine struct {
	Event string `json:"event"`
	*local.TaskStatus
}

// changed takes in a task that changed.
func (v *jobView) changed(s *local.Status, i int) {
	t := &s.Tasks[i]
	now := time.Now()
	news := v.states[i] != t.State
	v.states[i] = t.State
	switch v.how {
	case meter.JSON:
		if news || now.Sub(v.said[i]) >= meter.JsonEvery {
			v.said[i] = now
			_ = cli.WriteLine(v.console.Stdout, taskLine{"task", t}) // what could not be written is kept there
		}
	case meter.Plain:
		if news {
			v.said[i] = now
			v.console.Printf("%s: %s\n", t.Task, newsText(t))
		} else if t.State == local.Running && now.Sub(v.said[i]) >= taskEvery {
			v.said[i] = now
			v.console.Printf("%s: %s\n", t.Task, stepText(t))
		}
	case meter.Bar:
		if news && t.State != local.Running {
			v.above(fmt.Sprintf("%s: %s", t.Task, newsText(t)))
			v.draw(s)
		} else if now.Sub(v.drawn) >= meter.RedrawEvery {
			v.draw(s)
		}
	}
}

// note prints what is of the whole job.
func (v *jobView) note(text string) {
	v.erase()
	v.console.Note(text)
}

// above prints a line that stays.
func (v *jobView) above(line string) {
	v.erase()
	v.console.Printf("%s\n", line)
}

// erase removes the table from the terminal.
func (v *jobView) erase() {
	if v.lines > 0 {
		v.console.Raw(fmt.Sprintf("\x1b[%dA\x1b[J", v.lines))
		v.lines = 0
	}
}

// draw draws the tasks that run, and how many there are in each state.
func (v *jobView) draw(s *local.Status) {
	v.drawn = time.Now()
	var rows []string
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.State == local.Running && len(rows) < mostRows {
			rows = append(rows, fmt.Sprintf("  %s  %s  %s", t.Task, t.Device, stepText(t)))
		}
	}
	rows = append(rows, countsText(s))
	var b strings.Builder
	for _, row := range rows {
		row = wording.PrintableLines(row)
		if letters, most := []rune(row), v.width()-1; len(letters) > most {
			row = string(letters[:most])
		}
		b.WriteString(row + "\n")
	}
	v.erase()
	v.console.Raw(b.String())
	v.lines = len(rows)
}

// newsText says in words what a task has come to.
func newsText(t *local.TaskStatus) string {
	switch t.State {
	case local.Running:
		text := "running"
		if t.Device != "" {
			text += " on " + t.Device
		}
		if t.Attempts > 1 {
			text += fmt.Sprintf(", attempt %d", t.Attempts)
		}
		return text
	case local.Done:
		return strings.TrimSuffix("done in "+cli.Duration(t.Seconds)+", "+t.Message, ", ")
	case local.Retrying:
		return t.Message + ", because: " + t.Error
	case local.Failed:
		return "failed: " + t.Error
	case local.Skipped:
		return "skipped: a task that it needs failed"
	}
	if t.Message != "" {
		return t.Message
	}
	return string(t.State)
}

// stepText says how far a running task is.
func stepText(t *local.TaskStatus) string {
	text := t.Message
	if t.Of > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s %d/%d", t.Message, t.Step, t.Of))
	}
	if t.Rate > 0 && t.Unit != "" {
		text += fmt.Sprintf(", %.3g %s/s", t.Rate, t.Unit)
		if t.Of > t.Step {
			text += ", " + cli.Duration(float64(t.Of-t.Step)/t.Rate) + " left"
		}
	}
	return text
}

// countsText says how many tasks are in which state.
func countsText(s *local.Status) string {
	counts := s.Counts()
	var words []string
	for _, state := range local.States {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	return fmt.Sprintf("%s: %s", cli.Count(len(s.Tasks), "task"), strings.Join(words, ", "))
}

// jobLine is the last line of --progress json.
type jobLine struct {
	Event   string              `json:"event"`
	Job     string              `json:"job"`
	Done    bool                `json:"done"` // all of it that was asked for
	Counts  map[local.State]int `json:"counts"`
	Results string              `json:"results"`
	Tasks   []local.TaskStatus  `json:"tasks"`
}

// end prints the table of all tasks and where everything is, and returns why the job is not done, nil where it is.
func (v *jobView) end(ctx context.Context, s *local.Status) error {
	v.erase()
	counts := s.Counts()
	done := counts[local.Done]+counts[local.Excluded] == len(s.Tasks)
	switch v.how {
	case meter.JSON:
		// what could not be written is kept there
		_ = cli.WriteLine(v.console.Stdout, jobLine{"job", s.Job, done, counts, v.results, s.Tasks})
	case meter.None:
	default:
		if err := v.table(s); err != nil {
			return err
		}
	}
	if done {
		return nil
	}
	return v.why(ctx, s)
}

// table prints all tasks.
func (v *jobView) table(s *local.Status) error {
	w := tabwriter.NewWriter(v.console.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TASK\tSTATE\tATTEMPTS\tTIME\tDEVICE\tSAYS")
	for i := range s.Tasks {
		t := &s.Tasks[i]
		attempts, seconds, says := "-", "-", t.Error
		if t.Attempts > 0 {
			attempts, seconds = fmt.Sprint(t.Attempts), cli.Duration(t.Seconds)
		}
		switch {
		case t.State == local.Done && t.Before():
			says = strings.TrimSuffix("done before, "+t.Message, ", ")
		case t.State == local.Done:
			says = t.Message
		case says == "":
			says = t.Message
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", wording.Printable(t.Task), t.State, attempts, seconds,
			orDash(t.Device), orDash(wording.Printable(says)))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print tasks: %w", err)
	}
	v.console.Printf("job %s: %s\nresults: %s (in TASK/out; what each attempt said in TASK/log)\n"+
		"look at it: vksplat farm page %s\n", s.Job, countsText(s), v.results, cli.Quoted(v.results))
	return nil
}

// mostNamed is how many tasks an error names.
const mostNamed = 5

// why says why a job is not done.
func (v *jobView) why(ctx context.Context, s *local.Status) error {
	if ctx.Err() != nil {
		return fault.WithHint(fmt.Errorf("%w; finished tasks are kept", fault.ErrInterrupted),
			"continue with "+v.same)
	}
	var names []string
	first, before, retry := "", true, ""
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.State == local.Failed {
			names, before = append(names, t.Task), before && t.Before()
			if !t.Forgotten() {
				retry = " with --retry"
			}
			if first == "" {
				first = t.Hint
			}
		}
	}
	switch n := len(names); {
	case n > 0:
		if n > mostNamed {
			names = append(names[:mostNamed], "...")
		}
		hint := "fix what the table says, then: " + v.same + retry
		if before {
			hint = "these tasks failed in an earlier run; " + v.same + " with --retry tries them again"
		}
		if first != "" {
			hint = strings.TrimSuffix(first, ".") + "; then: " + v.same + retry
		}
		return fault.WithHint(fmt.Errorf("job %s: %d of %s failed: %s", s.Job, n, cli.Count(len(s.Tasks), "task"),
			strings.Join(names, ", ")), hint)
	case slices.ContainsFunc(s.Tasks, func(t local.TaskStatus) bool { return t.State == local.Waiting }):
		return fault.WithHint(fmt.Errorf("job %s: its first frames are ready; the others wait for approval: %w", s.Job,
			fault.ErrTryAgain),
			"review them in "+cli.Quoted(v.results)+", then: "+v.same+" with --inspected")
	}
	return errors.New("job " + s.Job + ": the job is not complete")
}

// orDash is s in a table.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(s, "\n", " ")
}
