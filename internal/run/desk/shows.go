package desk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/view"
)

// relayOnce is the way to a viewer, made by the first request.
type relayOnce struct {
	address string // "" until it answers
	mu      sync.Mutex
	relay   *view.Relay
}

func (o *relayOnce) open(ctx context.Context) (*view.Relay, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.relay == nil {
		r, err := view.NewRelay(ctx, o.address)
		if err != nil {
			return nil, err
		}
		o.relay = r
	}
	return o.relay, nil
}

// shown is a finished model whose viewer runs.
type shown struct {
	id     string
	path   string
	edits  bool
	viewer relayOnce
	child  *child.Child
	end    context.CancelFunc
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
	s := &shown{id: "m" + strconv.Itoa(d.lastShown), path: path, edits: edits}
	life, end := context.WithCancel(d.ctx)
	s.end = end
	ready := make(chan struct{})
	if s.child, err = child.Start(life, d.Program, args, child.Options{Apart: true, OnEvent: func(e *child.Event) {
		if e.Event == child.EventViewer && s.viewer.address == "" {
			d.mu.Lock()
			s.viewer.address = e.URL
			d.mu.Unlock()
			close(ready)
		}
	}}); err != nil {
		end()
		d.mu.Unlock()
		return "", err
	}
	d.shows = append(d.shows, s)
	d.mu.Unlock()
	d.running.Go(func() {
		_ = s.child.Wait() // whoever waits below gets its error
		d.forget(s)        // another program may get its port
	})
	select {
	case <-ready:
		return s.id, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.child.Done():
		if err = s.child.Wait(); err == nil {
			err = errors.New("the viewer did not start")
		}
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
	var viewer *relayOnce
	if j := d.find(id); j != nil && j.stop != nil {
		viewer = &j.viewer
	}
	for _, s := range d.shows {
		if s.id == id {
			viewer = &s.viewer
		}
	}
	gone := viewer == nil || viewer.address == ""
	d.mu.Unlock()
	if gone {
		http.Error(w, "this viewer has ended: go back, and open it again", http.StatusNotFound)
		return
	}
	relay, err := viewer.open(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	relay.Pass(w, r, name)
}
