package desk

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/view"
)

// relayOnce is the way to a viewer, which is made by the first who wants it.
type relayOnce struct {
	mu    sync.Mutex
	relay *view.Relay
}

func (o *relayOnce) to(ctx context.Context, address string) (*view.Relay, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.relay == nil {
		r, err := view.NewRelay(ctx, address)
		if err != nil {
			return nil, err
		}
		o.relay = r
	}
	return o.relay, nil
}

// shown is a finished model whose viewer runs.
type shown struct {
	id      string
	path    string
	edits   bool
	address string
	relay   relayOnce
	end     context.CancelFunc
	over    chan struct{}
	process atomic.Pointer[os.Process]
}

// mostShown are open at a time; the one that was opened first makes room.
const mostShown = 3

// viewing is the command line of a model's viewer, or of one that edits it and exports to where exports are.
func (d *desk) viewing(path string, edits bool) ([]string, error) {
	args := []string{"view", path, cli.Switch("no-open")}
	if !edits {
		return args, nil
	}
	exports, err := d.keep(exportsFolder)
	if err != nil {
		return nil, err
	}
	return append(append(args, cli.Switch("edit"), cli.Flag("export-to", exports)), d.DeviceArgs...), nil
}

// show starts the viewer of a model and returns its id, once it answers.
func (d *desk) show(ctx context.Context, rel string, edits bool) (string, error) {
	path, err := d.absolute(rel)
	if err != nil {
		return "", err
	}
	args, err := d.viewing(path, edits)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	if i := slices.IndexFunc(d.shows, func(s *shown) bool { return s.path == path && s.edits == edits }); i >= 0 {
		d.endShow(i) // the model may be a newer one
	}
	if len(d.shows) == mostShown {
		d.endShow(0)
	}
	d.lastShown++
	life, end := context.WithCancel(d.ctx)
	s := &shown{id: "m" + strconv.Itoa(d.lastShown), path: path, edits: edits, end: end, over: make(chan struct{})}
	d.shows = append(d.shows, s)
	d.mu.Unlock()
	ready := make(chan struct{}, 1)
	var said lastWords
	d.running.Go(func() {
		defer close(s.over)
		defer d.forget(s) // another program may get its port
		_ = d.runChild(life, args, &s.process, func(line []byte) {
			if address, is := strings.CutPrefix(string(line), shownAt); is {
				d.mu.Lock()
				s.address = address
				d.mu.Unlock()
				select {
				case ready <- struct{}{}:
				default:
				}
			}
		}, said.heard)
	})
	select {
	case <-ready:
		return s.id, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.over:
		err = said.err("the viewer did not start")
	}
	d.forget(s)
	return "", err
}

// forget ends a viewer and takes it off the list.
func (d *desk) forget(s *shown) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.shows, s); i >= 0 {
		d.endShow(i)
	}
}

// endShow ends a viewer. d.mu is held.
func (d *desk) endShow(i int) {
	d.shows[i].end()
	d.shows = slices.Delete(d.shows, i, i+1)
}

// pass hands a request to the viewer of a job or of a model.
func (d *desk) pass(w http.ResponseWriter, r *http.Request) {
	id, name, _ := strings.Cut(strings.TrimPrefix(d.server.Below(r), showPath), "/")
	d.mu.Lock()
	var address string
	var way *relayOnce
	if j := d.find(id); j != nil && j.stop != nil && j.address != "" {
		address, way = j.address, &j.relay
	}
	for _, s := range d.shows {
		if s.id == id && s.address != "" {
			address, way = s.address, &s.relay
		}
	}
	d.mu.Unlock()
	if way == nil {
		http.Error(w, "this viewer has ended: go back, and open it again", http.StatusNotFound)
		return
	}
	relay, err := way.to(r.Context(), address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	relay.Pass(w, r, name)
}

// lastWords are the error and the hint of a child that was to be short.
type lastWords struct {
	mu          sync.Mutex
	error, hint string
}

func (l *lastWords) heard(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := wording.Printable(string(line))
	if e, is := strings.CutPrefix(text, "vksplat: error: "); is && l.error == "" {
		l.error = e
	} else if h, is := strings.CutPrefix(text, "hint: "); is {
		l.hint = h
	}
}

// err is what the child said, or otherwise.
func (l *lastWords) err(otherwise string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.error == "" {
		return errors.New(otherwise)
	}
	return fault.WithHint(errors.New(l.error), l.hint)
}
