package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Limits of those who watch.
const (
	maxWatchers    = 8       // at a time
	maxMessage     = 4 << 10 // bytes from a browser
	messagesSecond = 120     // from a browser; mice move 60 to 120 times a second
	sendTimeout    = 10 * time.Second
	pingEvery      = 20 * time.Second
	statusEvery    = 500 * time.Millisecond
	lossesEvery    = 2 * time.Second
	refreshEvery   = 250 * time.Millisecond // of a still picture, because the model changes
	// that were sent and are not yet shown: the network's memory is not filled with old ones
	framesWaiting = 2
)

// watch is the WebSocket of a training, or of a finished model. What comes from browsers is JSON: {"view": wireQuery},
// {"shown": 1}, {"command": "pause"}. They get JSON with one of the fields of message, and pictures as binary messages.
type watch struct {
	scene    Streamed
	training Training // nil of a finished model
	edited   Edited   // nil of what is not edited
	cameras  int      // how many there are
	places   chan struct{}

	changes  sync.Mutex // one at a time, of watchers
	watchers int
}

func newWatch(scene Streamed, t Training) *watch {
	return &watch{scene: scene, training: t, cameras: len(scene.Cameras()), places: make(chan struct{}, maxWatchers)}
}

// count adds to those who watch.
func (h *watch) count(more int) {
	h.changes.Lock()
	defer h.changes.Unlock()
	h.watchers += more
	if h.training != nil {
		h.training.Watched(h.watchers)
	}
}

// message is sent to browsers.
type message struct {
	Status  *Status    `json:"status,omitempty"`
	History []Moment   `json:"history,omitempty"`
	Losses  []ViewLoss `json:"losses,omitempty"`
	Edits   *EditState `json:"edits,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// wanted is sent by browsers, one field at a time.
type wanted struct {
	View    *wireQuery `json:"view"`
	Shown   int        `json:"shown"`
	Command Command    `json:"command"`
}

func (h *watch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	// guard.go has compared Origin with Host; the library does so once more.
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	defer c.CloseNow()
	h.count(1)
	defer h.count(-1)
	c.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	v := &watcher{watch: h, c: c, turned: make(chan struct{}, 1), shown: make(chan struct{}, framesWaiting)}
	var all sync.WaitGroup
	for _, part := range []func(context.Context) error{v.read, v.frames, v.tell} {
		all.Go(func() {
			defer cancel()
			if err := part(ctx); err != nil && ctx.Err() == nil {
				_ = c.Close(websocket.StatusPolicyViolation, err.Error()) // or it has gone
			}
		})
	}
	all.Wait()
}

type watcher struct {
	*watch
	c *websocket.Conn

	mu    sync.Mutex
	query *FrameQuery // the newest; nil: none yet

	turned chan struct{} // a value: query is new
	shown  chan struct{} // a value for each frame that may still be sent
}

var errTooFast = errors.New("too many messages")

// read takes in what the browser sends.
func (v *watcher) read(ctx context.Context) error {
	for range framesWaiting {
		v.shown <- struct{}{}
	}
	second, messages := time.Now(), 0
	for {
		kind, data, err := v.c.Read(ctx)
		if err != nil {
			return nil // gone, or more than maxMessage, which the library answers
		}
		if now := time.Now(); now.Sub(second) > time.Second {
			second, messages = now, 0
		}
		if messages++; messages > messagesSecond {
			return errTooFast
		}
		var r wanted
		if kind != websocket.MessageText || json.Unmarshal(data, &r) != nil {
			return errors.New("not understood")
		}
		if err := v.take(ctx, &r); err != nil {
			return err
		}
	}
}

// take carries out a request.
func (v *watcher) take(ctx context.Context, r *wanted) error {
	switch {
	case r.View != nil:
		q, err := r.View.query(v.cameras)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.query = &q
		v.mu.Unlock()
		signal(v.turned)
	case r.Shown != 0:
		signal(v.shown)
	case r.Command != "":
		return v.command(ctx, r.Command)
	default:
		return errors.New("empty request")
	}
	return nil
}

// command has the training do something.
func (v *watcher) command(ctx context.Context, c Command) error {
	switch c {
	case CommandPause, CommandResume, CommandSave, CommandStop:
	default:
		return errors.New("no such command")
	}
	if v.training == nil {
		return errors.New("no training is running")
	}
	if err := v.training.Do(ctx, c); err != nil {
		return v.send(ctx, message{Error: err.Error()})
	}
	return nil
}

// signal leaves a value where there is room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// frames sends pictures of the newest query: when it is new, and now and then.
func (v *watcher) frames(ctx context.Context) error {
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	changed := v.edits()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-v.turned:
		case <-changed:
			changed = v.edits()
		case <-refresh.C:
			if v.training == nil || v.training.Status().Paused {
				continue
			}
		}
		v.mu.Lock()
		q := v.query
		v.mu.Unlock()
		if q == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.shown:
		}
		data, err := v.scene.Frame(ctx, *q)
		if err != nil {
			signal(v.shown)
			if ctx.Err() == nil {
				err = v.send(ctx, message{Error: err.Error()})
			}
		} else {
			err = v.write(ctx, websocket.MessageBinary, data)
		}
		if err != nil {
			return nil // it has gone
		}
	}
}

// tell sends how the training goes, and at last how it ended.
func (v *watcher) tell(ctx context.Context) error {
	status, losses, ping := time.NewTicker(statusEvery), time.NewTicker(lossesEvery), time.NewTicker(pingEvery)
	defer status.Stop()
	defer losses.Stop()
	defer ping.Stop()
	if v.training == nil {
		return v.tellEdits(ctx, ping.C)
	}
	m := message{History: v.training.History(), Losses: v.training.Losses()}
	for {
		s := v.training.Status()
		m.Status = &s
		if err := v.send(ctx, m); err != nil {
			return nil
		}
		if s.End != nil {
			_ = v.c.Close(websocket.StatusNormalClosure, "the training has ended") // or it has gone
			return nil
		}
		m = message{}
		select {
		case <-ctx.Done():
			return nil
		case <-v.training.Ended():
			m.History, m.Losses = v.training.History(), v.training.Losses()
		case <-status.C:
		case <-losses.C:
			m.History, m.Losses = v.training.History(), v.training.Losses()
		case <-ping.C:
			if v.ping(ctx) != nil {
				return nil
			}
		}
	}
}

// edits is closed when the edit has changed; nil of what is not edited.
func (h *watch) edits() <-chan struct{} {
	if h.edited == nil {
		return nil
	}
	return h.edited.EditsChange()
}

// tellEdits sends how an edit goes, and looks now and then whether the browser is still there.
func (v *watcher) tellEdits(ctx context.Context, now <-chan time.Time) error {
	for {
		changed := v.edits()
		if v.edited != nil {
			state := v.edited.Edits()
			if v.send(ctx, message{Edits: &state}) != nil {
				return nil
			}
		}
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				wait = false
			case <-now:
				if v.ping(ctx) != nil {
					return nil
				}
			}
		}
	}
}

func (v *watcher) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return v.c.Ping(ctx)
}

func (v *watcher) send(ctx context.Context, m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return v.write(ctx, websocket.MessageText, data)
}

// write gives up on a browser that takes nothing.
func (v *watcher) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return v.c.Write(ctx, kind, data)
}
