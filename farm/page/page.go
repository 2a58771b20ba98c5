// Package page shows a job in the browser, by what the store has of it: the status that its run writes there, or else
// what its tasks left, small pictures, logs and results. It changes nothing, and needs no script in the browser.
//
// Show registers the pages with a view.Server, which judges who may see them. found.go makes a status of what the store
// has where no run wrote one, and of what a farm's server says.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/view"
)

const (
	perPage   = 100 // tasks
	silent    = time.Minute
	mostLog   = 64 << 10 // bytes of a log that are shown, the last
	mostShown = 16 << 20 // of a picture
)

//go:embed job.html task.html page.css
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"span": spanText}).ParseFS(files, "*.html"))

// pages are the handlers of a job's pages.
type pages struct {
	root store.Root
	key  string // of the job's folder
	live Live
	now  func() time.Time

	mutex     sync.Mutex // guards what follows
	found     *local.Status
	findAgain time.Time
	said      *local.Status // by live
	askAgain  time.Time
	updated   time.Time     // when the status was written that was read last, by the clock of the machine that wrote it
	looked    time.Time     // when it was read
	skew      time.Duration // how far this machine's clock is ahead of that one, and what a status takes to come here
}

// Live asks a farm's server how far the job is: all its tasks, of which those that are done may count as waiting.
type Live func() (*local.Status, error)

// Show serves the pages of the job whose results are at a key. Live is nil where no farm runs it.
func Show(s *view.Server, root store.Root, key string, live Live) error {
	p := &pages{root: root, key: key, live: live, now: time.Now}
	if _, err := p.status(); err != nil {
		return err
	}
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	s.Handle("", p.page("job.html", p.job))
	s.Handle("task", p.page("task.html", p.task))
	s.Handle("preview", p.picture(func(r *http.Request) string {
		index, err := strconv.Atoi(r.FormValue("index"))
		if err != nil {
			return ""
		}
		return local.PreviewKey(index)
	}))
	s.Handle("picture", p.picture(func(r *http.Request) string {
		s, err := p.status()
		if err != nil {
			return ""
		}
		t, err := named(s, r)
		if err != nil {
			return ""
		}
		return p.lastPicture(t.Task)
	}))
	s.Handle("page.css", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style) // the client has gone if this fails
	}))
	return nil
}

func (p *pages) status() (*local.Status, error) {
	if s := p.fromFarm(); s != nil {
		return s, nil
	}
	s, err := local.ReadStatus(p.root, p.key)
	if errors.Is(err, fs.ErrNotExist) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		s, err = p.findTasks()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Op: "show job", Path: p.key, Err: errors.New("no job has run there"),
			Hint: "name the folder that vksplat farm run names at its end", Kind: fault.ErrUsage}
	case errors.Is(err, local.ErrUnreadable):
		return nil, err
	}
	return s, store.Explain("show job", p.key, err)
}

// errNone is of a task that the job does not have.
var errNone = errors.New("the job has no such task")

// named is the task that a request names.
func named(s *local.Status, r *http.Request) (*local.TaskStatus, error) {
	name := r.FormValue("name")
	i := slices.IndexFunc(s.Tasks, func(t local.TaskStatus) bool { return t.Task == name })
	if i < 0 {
		return nil, errNone
	}
	return &s.Tasks[i], nil
}

// page serves what a template makes of the job's state.
func (p *pages) page(name string, look func(s *local.Status, r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := p.status()
		var data any
		var b bytes.Buffer
		if err == nil {
			data, err = look(s, r)
		}
		if err == nil {
			err = templates.ExecuteTemplate(&b, name, data)
		}
		if err != nil {
			status := http.StatusServiceUnavailable
			if errors.Is(err, errNone) {
				status = http.StatusNotFound
			}
			http.Error(w, err.Error(), status)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes())
	})
}

// row is a task on a page.
type row struct {
	local.TaskStatus
	Speed, Left string
}

func newRow(t *local.TaskStatus, runs bool) row {
	r := row{TaskStatus: *t}
	if t.State != local.Running {
		return r
	}
	if !runs {
		r.State, r.Message = "stopped", "no status received"
		return r
	}
	if t.Rate > 0 && t.Unit != "" {
		r.Speed = fmt.Sprintf("%.3g %s/s", t.Rate, t.Unit)
		if t.Of > t.Step {
			r.Left = spanText(float64(t.Of-t.Step) / t.Rate)
		}
	}
	return r
}

// isHeard says whether the run that writes the status has reported in the last minute. Clocks of two machines may
// differ: once the status changes between two looks, it is known by how much.
func (p *pages) isHeard(s *local.Status) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	if !p.looked.IsZero() && now.Sub(p.looked) < silent && s.Updated.After(p.updated) {
		p.skew = now.Sub(s.Updated)
	}
	p.updated, p.looked = s.Updated, now
	return (now.Sub(s.Updated) - p.skew).Abs() < silent
}

// verdict says how the job stands, and whether it runs.
func (p *pages) verdict(s *local.Status) (state string, runs bool) {
	counts := s.Counts()
	switch {
	case s.Updated.IsZero():
		return "of the tasks that have started; vksplat farm run has not written its status here", false
	case !s.Ended && p.isHeard(s):
		return "running", true
	case !s.Ended:
		return "stopped: no status since " + s.Updated.Local().Format(time.DateTime) +
			"; vksplat farm run continues it", false
	case counts[local.Failed] > 0:
		return "failed", false
	case counts[local.Done]+counts[local.Excluded] == len(s.Tasks):
		return "done", false
	}
	return "stopped", false
}

// stateCount is a state that tasks of a job have.
type stateCount struct {
	State local.State
	N     int
	Here  bool // chosen
}

func (p *pages) job(s *local.Status, r *http.Request) (any, error) {
	state := local.State(r.FormValue("state"))
	first, _ := strconv.Atoi(r.FormValue("from")) // of anything else, from the first
	counts := s.Counts()
	verdict, runs := p.verdict(s)
	data := struct {
		Job, Verdict         string
		Done, All            int
		Began                string
		States               []stateCount
		State                local.State
		Tasks                []row
		Pictures             bool // one of them has one
		Previous, From, Next int  // Previous -1, Next 0: none
	}{Job: s.Job, Verdict: verdict, Done: counts[local.Done],
		All: len(s.Tasks), State: state, Previous: -1}
	if !s.Began.IsZero() {
		data.Began = s.Began.Local().Format(time.DateTime)
	}
	for _, one := range append(slices.Clone(local.States), begun) {
		if n := counts[one]; n > 0 {
			data.States = append(data.States, stateCount{one, n, one == state})
		}
	}
	tasks := s.Tasks
	if state != "" {
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(t local.TaskStatus) bool { return t.State != state })
	}
	data.From = min(max(first, 0), max(len(tasks)-1, 0)) / perPage * perPage
	end := min(data.From+perPage, len(tasks))
	if data.From > 0 {
		data.Previous = data.From - perPage
	}
	if end < len(tasks) {
		data.Next = end
	}
	for i := range tasks[data.From:end] {
		t := newRow(&tasks[data.From+i], runs)
		data.Tasks = append(data.Tasks, t)
		data.Pictures = data.Pictures || t.Preview
	}
	return data, nil
}

func (p *pages) task(s *local.Status, r *http.Request) (any, error) {
	t, err := named(s, r)
	if err != nil {
		return nil, err
	}
	_, runs := p.verdict(s)
	data := struct {
		Job     string
		Task    row
		Log     string // of the last attempt
		Attempt string
		Result  bool // there is a picture of its results
	}{Job: s.Job, Task: newRow(t, runs), Result: p.lastPicture(t.Task) != ""}
	data.Attempt, data.Log, err = p.lastLog(t.Task)
	return data, err
}

// lastLog is what the last attempt at a task said that said something, as far as the store has it.
func (p *pages) lastLog(task string) (attempt, text string, err error) {
	e, err := local.LastLog(p.root, path.Join(p.key, task), 1)
	if err != nil || e.Key == "" {
		return "", "", err
	}
	f, err := p.root.Open(e.Key)
	if err != nil {
		return "", "", err
	}
	defer f.Close() // only read
	if _, err := io.CopyN(io.Discard, f, max(0, e.Size-mostLog)); err != nil {
		return "", "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, mostLog))
	number := strings.TrimSuffix(strings.TrimPrefix(path.Base(e.Key), "a"), ".log")
	return strings.TrimLeft(number, "0"), strings.ToValidUTF8(string(data), "?"), err
}

// lastPicture is the key of the last picture by name of a task's results below the job's, "" without any.
func (p *pages) lastPicture(task string) string {
	m, err := store.ReadManifest(p.root, store.OutOf(path.Join(p.key, task)))
	if err != nil {
		return ""
	}
	last := store.File{}
	for _, f := range m.Files {
		if f.Size <= mostShown && f.Name > last.Name && !spec.Beside(f.Name) &&
			slices.Contains([]string{".png", ".jpg"}, strings.ToLower(path.Ext(f.Name))) {
			last = f
		}
	}
	if last.Name == "" {
		return ""
	}
	return m.Key(store.OutOf(task), last)
}

// picture serves the file at a key below the job's, if it is a picture, which browsers treat as nothing else.
func (p *pages) picture(key func(r *http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := p.read(key(r))
		kind := http.DetectContentType(data)
		if err != nil || kind != "image/png" && kind != "image/jpeg" {
			http.NotFound(w, r)
			return
		}
		sum := sha256.Sum256(data)
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "private, no-cache") // the same picture is not sent again every few seconds
		w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:16])+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// read reads at most mostShown bytes of a file below the job's key.
func (p *pages) read(key string) ([]byte, error) {
	f, err := p.root.Open(path.Join(p.key, key))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, mostShown))
	return data, errors.Join(err, f.Close())
}

// spanText prints seconds as 42 s, 3 min or 2 h 07 min.
func spanText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
