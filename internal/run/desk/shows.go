package desk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	q, j := d.queue, &job{Kind: kindView, lane: laneNone, args: args}
	q.mu.Lock()
	var open []*job
	for _, old := range slices.Clone(q.jobs) {
		switch {
		case old.Kind != kindView:
		case slices.Equal(old.args, args): // the model may be a newer one
			q.drop(old)
		default:
			open = append(open, old)
		}
	}
	if len(open) == mostShown {
		q.drop(open[0])
	}
	q.put(j)
	q.start(j)
	q.mu.Unlock()
	select {
	case <-j.ready:
		return j.ID, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-j.over:
		if err = j.err; err == nil {
			err = errors.New("the viewer did not start")
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(j)
	return "", err
}

// pass hands a request to the viewer of a job or of a model.
func (d *desk) pass(w http.ResponseWriter, r *http.Request) {
	id, name, _ := strings.Cut(strings.TrimPrefix(d.server.Below(r), showPath), "/")
	d.queue.mu.Lock()
	j := d.queue.find(id)
	gone := j == nil || j.stop == nil || j.viewer.address == ""
	d.queue.mu.Unlock()
	if gone {
		http.Error(w, "this viewer has closed: go back and open it again", http.StatusNotFound)
		return
	}
	relay, err := j.viewer.open(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	relay.Pass(w, r, name)
}
