package live

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/reconstruct"
	"vksplat/internal/run/train"
	"vksplat/view"
)

const (
	// modelEvery is the least time between two copies of a model that grows, and modelShare how many times as long as
	// a copy took mapping continues before the next.
	modelEvery = 300 * time.Millisecond
	modelShare = 30
	// polled is how long after its last request a browser surely asks again.
	polled = 3 * time.Second
)

// Search shows a search for cameras in the browser, until a training takes its place. It implements capture.Watcher.
type Search struct {
	port  *port
	heard chan struct{} // a value: a browser has got the end
	next  time.Time     // when the model may be copied again

	mu    sync.Mutex // guards what follows
	found found
	model json.RawMessage
	asked time.Time // of the last request
}

// found is what browsers get.
type found struct {
	Stages  []capture.Stage `json:"stages"`           // the last one is being done
	Version int             `json:"version"`          // of the model; 0: there is none yet
	Model   json.RawMessage `json:"model,omitempty"`  // a grown; unless the browser has that version
	Trains  bool            `json:"trains,omitempty"` // the page is that of a training by now
	End     string          `json:"end,omitempty"`    // how the search ended, or by which error
}

// grown is a model that grows. Its frame and scale are its own.
type grown struct {
	Cameras []view.LiveCamera `json:"cameras"`
	Points  []byte            `json:"points"` // x, y, z as float32, little endian, and red, green, blue; of each
	Up      [3]float64        `json:"up"`     // of the photos, a unit vector
	Eye     [3]float64        `json:"eye"`    // from where one sees most of it
	Middle  [3]float64        `json:"middle"`
}

// NewSearch shows a search, if it is to be watched; it is nil otherwise.
func NewSearch(o *train.ViewerOptions, title string, console *cli.Console) (*Search, error) {
	p, err := listen(o, console)
	if err != nil || p == nil {
		return nil, err
	}
	s := &Search{port: p, heard: make(chan struct{}, 1)}
	view.ShowSearch(p.server, title, s)
	p.answer()
	return s, nil
}

// Train is one of train.Options.Observers, instead of New.
func (s *Search) Train(_ *train.Options, console *cli.Console) (train.Observer, error) {
	s.Stage(&capture.Stage{Name: "training", ETA: meter.Rounded(math.NaN()), Text: "reading photos"})
	l := newTraining(console, s.port)
	l.search = s
	return l, nil
}

// Stage implements capture.Watcher.
func (s *Search) Stage(e *capture.Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.found.Stages
	if n := len(list); n > 0 && list[n-1].Name == e.Name {
		list = list[:n-1]
	}
	s.found.Stages = append(slices.Clone(list), *e) // an answer may be on its way
}

// Growing implements capture.Watcher. How often it looks changes nothing but what is shown.
func (s *Search) Growing(look func() *reconstruct.Sketch, last bool) {
	begin := time.Now()
	if begin.Before(s.next) && !last {
		return
	}
	data, err := json.Marshal(grownOf(look()))
	s.next = begin.Add(max(modelEvery, modelShare*time.Since(begin)))
	if err != nil {
		return // it is not finite: the next may be
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = data
	s.found.Version++
}

// grownOf is what browsers get of a model.
func grownOf(m *reconstruct.Sketch) *grown {
	g := &grown{Up: view.Up(m.Cameras), Points: make([]byte, 0, 15*len(m.Points))}
	positions := make([][3]float64, 0, len(m.Points)+len(m.Cameras))
	for i := range m.Points {
		p := &m.Points[i]
		positions = append(positions, p.Pos)
		for _, x := range p.Pos {
			g.Points = binary.LittleEndian.AppendUint32(g.Points, math.Float32bits(float32(x)))
		}
		g.Points = append(g.Points, p.Color[:]...)
	}
	for i := range m.Cameras {
		g.Cameras = append(g.Cameras, frames.LiveCamera(&m.Cameras[i], false))
		positions = append(positions, g.Cameras[i].Position)
	}
	g.Eye, g.Middle = view.Outside(g.Up, positions)
	return g
}

// ServeHTTP answers with found as JSON. The browser's version of the model is in the query.
func (s *Search) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = time.Now()
	answer := s.found
	if r.URL.Query().Get("version") != strconv.Itoa(answer.Version) {
		answer.Model = s.model
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if json.NewEncoder(w).Encode(answer) == nil && answer.End != "" {
		select {
		case s.heard <- struct{}{}:
		default:
		}
	}
}

// handOver has browsers load the page of the training.
func (s *Search) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Trains = true
}

// Close ends the server, unless the training did. Browsers get to know how the search ended, by err.
func (s *Search) Close(err error) error {
	s.mu.Lock()
	end := &s.found.End
	switch {
	case s.found.Trains:
	case err == nil:
		*end = "The cameras are found."
	case errors.Is(err, fault.ErrInterrupted):
		*end = "Stopped."
	default:
		*end = err.Error()
	}
	here := *end != "" && time.Since(s.asked) < polled
	s.mu.Unlock()
	if here {
		select {
		case <-s.heard:
		case <-time.After(polled):
		}
	}
	return s.port.close()
}
