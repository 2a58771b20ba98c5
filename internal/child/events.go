package child

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
)

// eventsVariable tells a child the descriptor, on Windows the handle, of the pipe for its events.
const eventsVariable = "VKSPLAT_EVENTS"

// Names of events. Those of progress are in package meter.
const (
	EventError   = "error"
	EventWarning = "warning"
	EventViewer  = "viewer"
	EventTable   = "table" // of scores, Markdown
)

// Event is a report of a child: one JSON object per line. Progress is reported as --progress json prints it, with more
// keys than these; numbers that are not known are 0 here.
type Event struct {
	Event  string   `json:"event"`
	Text   string   `json:"text,omitempty"`   // for people: of an error or a warning, what is being done, a table
	Kind   string   `json:"kind,omitempty"`   // of an error, see package fault
	Hint   string   `json:"hint,omitempty"`   // likewise
	Causes []string `json:"causes,omitempty"` // likewise
	URL    string   `json:"url,omitempty"`    // of a viewer that answers

	Stage       string  `json:"stage,omitempty"` // of the work, where it has several
	Step        int     `json:"step,omitempty"`  // steps, pictures or parts that are done, in the stage
	Total       int     `json:"total,omitempty"`
	Splats      int     `json:"splats,omitempty"`
	Loss        float64 `json:"loss,omitempty"`
	PSNR        float64 `json:"psnr,omitempty"`         // dB
	Rate        float64 `json:"steps_per_s,omitempty"`  //
	ETA         float64 `json:"eta_s,omitempty"`        //
	Seconds     float64 `json:"seconds,omitempty"`      // of training
	DeviceBytes int64   `json:"device_bytes,omitempty"` //
}

// parent is the pipe to the process that started this one.
var parent struct {
	mutex sync.Mutex
	pipe  *os.File // nil: it wants no events
}

// Reports says whether a parent listens.
func Reports() bool {
	parent.mutex.Lock()
	defer parent.mutex.Unlock()
	return parent.pipe != nil
}

// Report sends an event to the parent, if it listens: an Event, or what has its keys. A parent that is gone is no
// reason to stop.
func Report(v any) {
	parent.mutex.Lock()
	defer parent.mutex.Unlock()
	if parent.pipe == nil {
		return
	}
	if data, err := json.Marshal(v); err == nil {
		_, _ = parent.pipe.Write(append(data, '\n'))
	}
}

// Forward reports what a child of this process did. Its error is this process's to judge.
func Forward(e *Event) {
	if e.Event != EventError {
		Report(e)
	}
}

// listenTo gives a child that is about to start a pipe for its events. listen, called once it runs or could not start,
// hands them on until the child has ended, and returns its last error, nil for none.
func listenTo(cmd *exec.Cmd, onEvent func(*Event)) (listen func() *Event, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := inherit(cmd, theirs); err != nil {
		_, _ = ours.Close(), theirs.Close()
		return nil, err
	}
	return func() (failed *Event) {
		defer ours.Close() // only read from
		_ = theirs.Close() // the child has its own
		events := json.NewDecoder(ours)
		for {
			e := new(Event)
			if events.Decode(e) != nil {
				_, _ = io.Copy(io.Discard, ours) // a child that writes nonsense is not held up
				return failed
			}
			if e.Event == EventError {
				failed = e
			}
			onEvent(e)
		}
	}, nil
}
