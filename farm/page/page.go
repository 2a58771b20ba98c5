package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/scene"
	"vksplat/view"
)

// Farm is what is shown, a *queue.Queue.
type Farm interface {
	List(ctx context.Context) ([]queue.JobStatus, error)
	Show(ctx context.Context, job string) (queue.JobStatus, []queue.TaskStatus, error)
	Nodes(ctx context.Context) ([]queue.NodeStatus, error)
	Logs(ctx context.Context, job string, index int, until <-chan struct{}, fn func(queue.LogLine) error) error
	Previews(ctx context.Context, job string) (map[int]bool, error)
	Preview(ctx context.Context, job string, index int) ([]byte, error)
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
	"ago": ago, "plural": plural, "size": sizeText, "percent": percentText, "pools": spec.PoolsText,
	"span": func(d queue.Duration) string { return spanText(time.Duration(d)) }, "count": func(counts map[queue.State]int, state string) int { return counts[queue.State(state)] },
}).ParseFS(files, "*.html"))

// Picture finds the last picture that a task made, PNG or JPEG; without one, the data is nil.
type Picture func(ctx context.Context, job string, task string) (data []byte, err error)

// pages are the handlers of a farm's pages.
type pages struct {
	farm    Farm
	picture Picture
	now     func() time.Time
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
	s.Handle("preview", http.HandlerFunc(p.servePreview))
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
			http.Error(w, scene.ErrorText(err), status)
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
	Throughput    string // of the tasks that run
	Left          string // time until the last, "" where nothing says it
}

// card is a device in the overview.
type card struct {
	queue.DeviceUse
	Node        string
	queue.Order        // to that
	Picture     bool   // there is one of the task
	Speed, Left string // of the task
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
		Refresh    int
		Jobs       []jobRow
		Nodes      []queue.NodeStatus
		Cards      []card
		Running    int // tasks
		Devices    int
		Throughput string
	}{Refresh: refresh, Nodes: nodes, Cards: p.cards(ctx, nodes)}
	slices.Reverse(jobs) // the newest first
	rates := map[string]float64{}
	for _, j := range jobs {
		data.Jobs = append(data.Jobs, p.row(j))
		for unit, rate := range j.Rates {
			rates[unit] += rate
		}
	}
	data.Throughput = ratesText(rates)
	for _, n := range nodes {
		data.Running, data.Devices = data.Running+len(n.Tasks), data.Devices+len(n.Devices)
	}
	return data, nil
}

// cards makes a card of every device, those that work first.
func (p *pages) cards(ctx context.Context, nodes []queue.NodeStatus) (list []card) {
	pictures := map[string]map[int]bool{} // by job
	for _, n := range nodes {
		for _, u := range n.Use {
			c := card{DeviceUse: u, Node: n.Node, Order: n.Order, Speed: RateText(u.Rate, u.Unit)}
			if u.Job != "" {
				has, asked := pictures[u.Job]
				if !asked {
					has, _ = p.farm.Previews(ctx, u.Job) // without them the page is as good
					pictures[u.Job] = has
				}
				c.Picture = has[u.Index]
			}
			if u.Rate > 0 && u.Of > u.Step {
				c.Left = leftText(float64(u.Of-u.Step) / u.Rate)
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b card) int { return cmp.Compare(rests(&a), rests(&b)) })
	return list
}

func rests(c *card) int {
	if c.Job == "" {
		return 1
	}
	return 0
}

func (p *pages) row(j queue.JobStatus) jobRow {
	row := jobRow{JobStatus: j, Done: j.Counts[queue.Succeeded], Running: j.Counts[queue.Running] + j.Counts[queue.Verifying], Throughput: ratesText(j.Rates)}
	if j.Left > 0 {
		row.Left = leftText(time.Duration(j.Left).Seconds())
	}
	if row.Left != "" && j.More {
		row.Left = "over " + row.Left
	}
	end := p.now()
	if j.State.Ended() {
		end = j.Changed
	}
	if took := end.Sub(j.Submitted); row.Done > 0 && took > 0 {
		row.Rate = strconv.FormatFloat(float64(row.Done)/took.Hours(), 'f', 1, 64)
	}
	return row
}

// taskRow is a task on the page of its job.
type taskRow struct {
	queue.TaskStatus
	Left    string // time until its last step, "" where nothing says it
	Speed   string // steps a second, likewise
	Steps   bool   // are worth showing: of tasks that succeeded the queue has those that were told last
	Picture bool   // there is one of what it makes
}

func newTaskRow(t queue.TaskStatus, picture bool) taskRow {
	row := taskRow{TaskStatus: t, Steps: t.Entry.Of > 0 && t.State != queue.Succeeded, Picture: picture}
	if t.Left > 0 {
		row.Left = leftText(time.Duration(t.Left).Seconds())
	}
	if t.State == queue.Running {
		row.Speed = RateText(t.Entry.Rate, t.Entry.Unit)
	}
	return row
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
		Pictures        bool // one of them has one
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
	pictures, _ := p.farm.Previews(ctx, name) // without them the page is as good
	for _, t := range tasks[data.From:end] {
		data.Tasks = append(data.Tasks, newTaskRow(t, pictures[t.Index]))
		data.Pictures = data.Pictures || pictures[t.Index]
	}
	return data, nil
}

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
		Use     *queue.DeviceUse // of the device that works on it, nil: none does
		Result  bool             // the store has a picture of it
		Lines   []queue.LogLine
	}{Refresh: refresh, Job: job}
	if p.picture != nil {
		picture, _ := p.picture(ctx, name, tasks[index].Name) // a store that is away hides no log
		data.Result = picture != nil
	}
	pictures, _ := p.farm.Previews(ctx, name)
	data.Task = newTaskRow(tasks[index], pictures[index] && !data.Result)
	if data.Use, err = p.use(ctx, name, index); err != nil {
		return nil, err
	}
	err = p.farm.Logs(ctx, name, index, nil, func(l queue.LogLine) error {
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

// use finds the device that works on a task, nil where none does.
func (p *pages) use(ctx context.Context, job string, index int) (*queue.DeviceUse, error) {
	nodes, err := p.farm.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		for i := range n.Use {
			if n.Use[i].Job == job && n.Use[i].Index == index {
				return &n.Use[i], nil
			}
		}
	}
	return nil, nil
}

// servePreview serves the small picture of a task that the queue has. A worker put it there: nothing but a small JPEG file goes on to browsers, which are told
// to take it for that alone.
func (p *pages) servePreview(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
	defer cancel()
	index, err := strconv.Atoi(r.FormValue("task"))
	var data []byte
	if err == nil && index >= 0 {
		data, err = p.farm.Preview(ctx, r.FormValue("job"), index)
	}
	if err != nil || data == nil || queue.CheckPreview(data) != nil {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(data)
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("Cache-Control", "private, no-cache") // the same picture is not sent again every few seconds
	w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:16])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
