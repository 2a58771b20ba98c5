package page

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vksplat/farm/queue"
	"vksplat/view"
)

// Farm is what is shown, a *queue.Queue.
type Farm interface {
	List(ctx context.Context) ([]queue.JobStatus, error)
	Show(ctx context.Context, job string) (queue.JobStatus, []queue.TaskStatus, error)
	Nodes(ctx context.Context) ([]queue.NodeStatus, error)
	Logs(ctx context.Context, job string, index int, follow bool, fn func(queue.LogLine) error) error
}

const (
	perPage     = 100 // tasks
	logLines    = 500 // the last of a task
	refresh     = 5   // seconds until a page is loaded again
	lookTimeout = 20 * time.Second
)

//go:embed overview.html job.html log.html page.css
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ago": ago, "plural": plural, "count": func(counts map[queue.State]int, state string) int { return counts[queue.State(state)] },
}).ParseFS(files, "*.html"))

// Picture finds the last picture that a task made, PNG or JPEG; without one, the data is nil.
type Picture func(ctx context.Context, job string, task string) (data []byte, err error)

// pages are the handlers of a farm's pages.
type pages struct {
	farm    Farm
	picture Picture
	now     func() time.Time
	pace    pace
}

// Show serves the pages of a farm. Picture may be nil: then there are none.
func Show(s *view.Server, farm Farm, picture Picture) error {
	p := &pages{farm: farm, picture: picture, now: time.Now}
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	s.Handle("", p.page("overview.html", p.overview))
	s.Handle("job", p.page("job.html", p.job))
	s.Handle("log", p.page("log.html", p.log))
	s.Handle("picture", http.HandlerFunc(p.servePicture))
	s.Handle("page.css", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style) // what cannot be written, nobody waits for
	}))
	return nil
}

// page serves what a template makes of a look at the farm.
func (p *pages) page(name string, look func(ctx context.Context, r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
		defer cancel()
		data, err := look(ctx, r)
		var b bytes.Buffer
		if err == nil {
			err = templates.ExecuteTemplate(&b, name, data)
		}
		if err != nil {
			status := http.StatusServiceUnavailable
			if errors.Is(err, queue.ErrNoJob) || errors.Is(err, queue.ErrNoTask) {
				status = http.StatusNotFound
			}
			http.Error(w, err.Error(), status)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes())
	})
}

// jobRow is a job in the overview.
type jobRow struct {
	queue.JobStatus
	Done, Running int
	Rate          string // tasks that were done an hour
	Left          string // time until the last, "" where nothing says it
}

func (p *pages) overview(ctx context.Context, _ *http.Request) (any, error) {
	jobs, err := p.farm.List(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := p.farm.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	data := struct {
		Refresh int
		Jobs    []jobRow
		Nodes   []queue.NodeStatus
		Running int // tasks
		Devices int
	}{Refresh: refresh, Nodes: nodes}
	slices.Reverse(jobs) // the newest first
	for _, j := range jobs {
		data.Jobs = append(data.Jobs, p.row(j))
	}
	for _, n := range nodes {
		data.Running, data.Devices = data.Running+len(n.Tasks), data.Devices+len(n.Devices)
	}
	return data, nil
}

func (p *pages) row(j queue.JobStatus) jobRow {
	row := jobRow{JobStatus: j, Done: j.Counts[queue.Succeeded], Running: j.Counts[queue.Running] + j.Counts[queue.Verifying]}
	end := p.now()
	if j.State.Ended() {
		end = j.Changed
	}
	took := end.Sub(j.Submitted)
	if row.Done == 0 || took <= 0 {
		return row
	}
	row.Rate = strconv.FormatFloat(float64(row.Done)/took.Hours(), 'f', 1, 64)
	if left := open(j.Counts); left > 0 && !j.State.Ended() {
		row.Left = leftText(took.Seconds() / float64(row.Done) * float64(left))
	}
	return row
}

// open counts the tasks that have not ended.
func open(counts map[queue.State]int) (n int) {
	for state, k := range counts {
		if !state.Ended() {
			n += k
		}
	}
	return n
}

// taskRow is a task on the page of its job.
type taskRow struct {
	queue.TaskStatus
	Left  string // time until its last step, "" where nothing says it
	Steps bool   // are worth showing: of tasks that succeeded the queue has those that were told last
}

// stateCount is a state that tasks of a job have.
type stateCount struct {
	State queue.State
	N     int
	Here  bool // chosen
}

func (p *pages) job(ctx context.Context, r *http.Request) (any, error) {
	name, state := r.FormValue("name"), queue.State(r.FormValue("state"))
	first, _ := strconv.Atoi(r.FormValue("from")) // of anything else, from the first
	job, tasks, err := p.farm.Show(ctx, name)
	if err != nil {
		return nil, err
	}
	data := struct {
		Refresh         int
		Job             jobRow
		States          []stateCount
		State           queue.State
		Tasks           []taskRow
		From, Next, All int
		Previous        int // -1: none
	}{Refresh: refresh, Job: p.row(job), State: state, Previous: -1}
	for _, s := range queue.States {
		if n := job.Counts[s]; n > 0 {
			data.States = append(data.States, stateCount{s, n, s == state})
		}
	}
	if state != "" {
		tasks = slices.DeleteFunc(tasks, func(t queue.TaskStatus) bool { return t.State != state })
	}
	data.All = len(tasks)
	data.From = min(max(first, 0), max(len(tasks)-1, 0)) / perPage * perPage
	end := min(data.From+perPage, len(tasks))
	if data.From > 0 {
		data.Previous = data.From - perPage
	}
	if end < len(tasks) {
		data.Next = end
	}
	for _, t := range tasks[data.From:end] {
		data.Tasks = append(data.Tasks, taskRow{t, p.pace.left(&t, p.now()), hasSteps(&t)})
	}
	return data, nil
}

func hasSteps(t *queue.TaskStatus) bool { return t.Entry.Of > 0 && t.State != queue.Succeeded }

func (p *pages) log(ctx context.Context, r *http.Request) (any, error) {
	name := r.FormValue("job")
	index, err := strconv.Atoi(r.FormValue("task"))
	if err != nil || index < 0 {
		return nil, fmt.Errorf("%w of the number %.20q", queue.ErrNoTask, r.FormValue("task"))
	}
	job, tasks, err := p.farm.Show(ctx, name)
	if err != nil {
		return nil, err
	}
	if index >= len(tasks) {
		return nil, fmt.Errorf("%w: %d of %d", queue.ErrNoTask, index, len(tasks))
	}
	data := struct {
		Refresh int
		Job     queue.JobStatus
		Task    taskRow
		Picture bool
		Lines   []queue.LogLine
	}{Refresh: refresh, Job: job, Task: taskRow{tasks[index], p.pace.left(&tasks[index], p.now()), hasSteps(&tasks[index])}}
	if p.picture != nil {
		picture, _ := p.picture(ctx, name, tasks[index].Name) // a store that is away hides no log
		data.Picture = picture != nil
	}
	err = p.farm.Logs(ctx, name, index, false, func(l queue.LogLine) error {
		if data.Lines = append(data.Lines, l); len(data.Lines) > 2*logLines {
			data.Lines = slices.Delete(data.Lines, 0, logLines)
		}
		return nil
	})
	data.Lines = data.Lines[max(0, len(data.Lines)-logLines):]
	return data, err
}

// servePicture serves the last picture of a task.
func (p *pages) servePicture(w http.ResponseWriter, r *http.Request) {
	if p.picture == nil {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
	defer cancel()
	data, err := p.picture(ctx, r.FormValue("job"), r.FormValue("name"))
	kind := http.DetectContentType(data)
	if err != nil || kind != "image/png" && kind != "image/jpeg" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data)
}

// pace remembers where running attempts stood when they were looked at first.
type pace struct {
	lock  sync.Mutex
	first map[string]mark
}

type mark struct {
	step int64
	at   time.Time
}

const mostMarks = 10_000

// left is how long an attempt will take at the pace that was seen, "" where none was.
func (p *pace) left(t *queue.TaskStatus, now time.Time) string {
	e := &t.Entry
	if t.State != queue.Running || e.Of <= 0 || e.Step >= e.Of {
		return ""
	}
	key := fmt.Sprintf("%s/%d/%d", t.Job, t.Index, e.Attempt)
	p.lock.Lock()
	defer p.lock.Unlock()
	m, known := p.first[key]
	if !known || e.Step < m.step {
		if p.first == nil || len(p.first) > mostMarks {
			p.first = map[string]mark{}
		}
		p.first[key] = mark{e.Step, now}
		return ""
	}
	if e.Step == m.step {
		return ""
	}
	return leftText(now.Sub(m.at).Seconds() / float64(e.Step-m.step) * float64(e.Of-e.Step))
}

// longest is what is still said of times that are guessed, in seconds.
const longest = 100 * 24 * 3600

// leftText words a guess in seconds.
func leftText(seconds float64) string {
	if seconds > longest {
		return "months"
	}
	return spanText(time.Duration(seconds * float64(time.Second)))
}

// plural counts things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// ago words how long something is past.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return spanText(max(time.Since(t), 0)) + " ago"
}

// spanText words a time by its largest units.
func spanText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return strings.TrimSpace(fmt.Sprintf("%d days", int(d.Hours())/24))
}
