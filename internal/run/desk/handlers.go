package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/view"
)

// maxBody bounds the JSON of a request, in bytes.
const maxBody = 16 << 10

const showPath = "show/"

// handle registers everything that the page asks for. All answers but files and viewers are JSON.
func (d *desk) handle(s *view.Server) {
	view.ShowDesk(s)
	s.Handle("state", http.HandlerFunc(d.state))
	s.Handle("folder", reads(func(q query) (any, error) { return d.visit(q("path")) }))
	s.Handle("verdict", reads(func(q query) (any, error) { return d.verdict(q("path")) }))
	s.Handle("plan", reads(func(q query) (any, error) {
		size, err := strconv.Atoi(cmp.Or(q("size"), "0"))
		if err != nil {
			return nil, sizeError(q("size"))
		}
		return d.plan(&trainRequest{Scene: q("path"), Preset: q("preset"), Score: q("score") != "", Size: size})
	}))
	s.Handle("curve", reads(func(q query) (any, error) {
		dir, err := d.absolute(q("run"))
		if err != nil {
			return nil, err
		}
		return d.curveOf(dir), nil
	}))
	s.Handle("picture", http.HandlerFunc(d.picture))
	s.Handle("file", http.HandlerFunc(d.download))
	s.Handle(showPath, http.HandlerFunc(d.pass))
	s.Handle("room", reads(func(q query) (any, error) { return done, d.uploads.room(q) }))

	s.HandlePost("train", makes(d.train))
	s.HandlePost("resume", makes(func(r *wish) (string, error) { return d.resume(r.Path) }))
	s.HandlePost("capture", makes(func(r *wish) (string, error) { return d.capture(r.Path) }))
	s.HandlePost("export", makes(d.export))
	s.HandlePost("flight", makes(d.flight))
	s.HandlePost("stop", changes(func(_ context.Context, r *wish) (any, error) {
		return done, d.queue.halt(r.Job, r.Now)
	}))
	s.HandlePost("dismiss", changes(func(_ context.Context, r *wish) (any, error) {
		d.queue.dismiss(r.Job)
		return done, nil
	}))
	s.HandlePost("show", changes(func(ctx context.Context, r *wish) (any, error) { // once the viewer answers
		id, err := d.show(ctx, r.Path, r.Edit)
		return map[string]string{"at": showPath + id + "/"}, err
	}))
	s.HandlePost(showPath, http.HandlerFunc(d.pass))
	s.HandlePost("upload", http.HandlerFunc(d.uploads.upload))
}

// wish is the request of most buttons.
type wish struct {
	Path string `json:"path"`
	Job  string `json:"job"`
	Now  bool   `json:"now"`
	Edit bool   `json:"edit"`
}

var done = struct{}{}

type query func(name string) string

// reads answers with what is asked for by an address.
func reads(f func(q query) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r.URL.Query().Get)
		answer(w, v, err)
	})
}

// makes answers a request with the number of the job that f queues.
func makes[T any](f func(r *T) (job string, err error)) http.Handler {
	return changes(func(_ context.Context, r *T) (any, error) {
		job, err := f(r)
		return map[string]string{"job": job}, err
	})
}

// changes answers a request with a body.
func changes[T any](f func(ctx context.Context, r *T) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := view.Asked[T](w, r, maxBody)
		if err != nil {
			view.AnswerError(w, http.StatusBadRequest, err)
			return
		}
		result, err := f(r.Context(), v)
		answer(w, result, err)
	})
}

// answer answers with a value or an error.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		view.AnswerError(w, statusOf(err), err)
		return
	}
	view.Answer(w, v)
}

func statusOf(err error) int {
	var own *refusedUpload
	switch {
	case errors.As(err, &own):
		return own.status
	case fault.IsFull(err):
		return http.StatusInsufficientStorage
	case errors.Is(err, fault.ErrUsage) || errors.Is(err, fault.ErrData):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// stateJSON is the state that pages request every second.
type stateJSON struct {
	Name    string          `json:"name"` // of the root
	Version string          `json:"version"`
	Jobs    json.RawMessage `json:"jobs"` // newest first
	Runs    []runSummary    `json:"runs"` // null: they are not read yet
	Now     int64           `json:"now"`  // seconds since 1970, by this machine's clock
}

func (d *desk) state(w http.ResponseWriter, _ *http.Request) {
	s := stateJSON{Name: filepath.Base(d.root), Version: d.Version, Runs: d.runs.all(), Now: time.Now().Unix()}
	d.queue.mu.Lock()
	list := []*job{}
	for _, j := range slices.Backward(d.queue.jobs) {
		if j.Kind != kindView {
			list = append(list, j)
		}
	}
	jobs, err := json.Marshal(list)
	d.queue.mu.Unlock()
	s.Jobs = jobs
	answer(w, s, err)
}

// visit lists a folder. A run that is visited is among the runs from then on.
func (d *desk) visit(rel string) (*listing, error) {
	l, err := d.list(rel)
	if err != nil || l.Kind != kindRun {
		return l, err
	}
	dir, err := d.absolute(rel)
	if err != nil {
		return nil, err
	}
	d.runs.visit(dir)
	return l, nil
}

// download serves what was exported or rendered.
func (d *desk) download(w http.ResponseWriter, r *http.Request) {
	path, err := d.absolute(r.URL.Query().Get("path"))
	in := func(kind string) bool {
		dir, err := d.kept(kind)
		return err == nil && output.InFolder(path, dir)
	}
	if err != nil || !in(exportsFolder) && !in(flightsFolder) {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	if r.URL.Query().Get("save") != "" || !strings.HasSuffix(path, ".mp4") { // pages of ours never run here
		name := strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				return '_'
			}
			return c
		}, filepath.Base(path))
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	d.serveFile(w, r, path)
}

func (p places) serveFile(w http.ResponseWriter, r *http.Request, path string) {
	path, err := p.file(path)
	if err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	http.ServeFile(w, r, path)
}
