package flow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Version is that of TaskInput. A worker leaves tasks of a higher one to others.
const Version = 1

// Document says where a job's document is, and which.
type Document struct {
	Root   string `json:"root"` // name of the root of outputs
	Key    string `json:"key"`  // below it
	SHA256 string `json:"sha256"`
}

// Settings are what may change while a job runs.
type Settings struct {
	Paused    bool   `json:"paused,omitempty"`
	Inspected bool   `json:"inspected,omitempty"` // somebody has looked at the first frames
	Max       int    `json:"max,omitempty"`       // tasks that are queued or run at a time; 0: no bound
	Priority  string `json:"priority,omitempty"`  // "": that of each task
	Pool      string `json:"pool,omitempty"`      // "": that of each task
}

// Change is the content of the signal SetSignal: what is nil stays as it is.
type Change struct {
	Paused    *bool   `json:"paused,omitempty"`
	Inspected *bool   `json:"inspected,omitempty"`
	Max       *int    `json:"max,omitempty"`
	Priority  *string `json:"priority,omitempty"`
	Pool      *string `json:"pool,omitempty"`
}

// with gives the settings after a change.
func (s Settings) with(c *Change) Settings {
	set(&s.Paused, c.Paused)
	set(&s.Inspected, c.Inspected)
	set(&s.Max, c.Max)
	set(&s.Priority, c.Priority)
	set(&s.Pool, c.Pool)
	return s
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Signals and queries.
const (
	SetSignal    = "set"    // Change, to a job
	orderSignal  = "order"  // orders, to a chunk
	beforeSignal = "before" // Indices of tasks that have failed in chunks that a chunk waited for
	haltSignal   = "halt"   // a chunk to its job: a task has failed, and keep_going is false
	StateQuery   = "state"  // State, of a job or a chunk
)

// JobInput is what a job begins with.
type JobInput struct {
	Document
	Settings
}

// Outline is what becomes of a document.
type Outline struct {
	KeepGoing bool          `json:"keep_going"`
	Heartbeat time.Duration `json:"heartbeat"`        // a worker that is silent for so long is given up
	Window    int           `json:"window,omitempty"` // chunks of a lane that run at a time; 0: all
	Chunks    []Span        `json:"chunks"`
}

// Span is the tasks of a chunk.
type Span struct {
	Tasks Indices `json:"tasks"`
	Count int     `json:"count"`
	Needs []int   `json:"needs,omitempty"` // earlier chunks that have tasks which some of these need
	// numbers of what tells these tasks apart where they are queued: pool, class and priority
	Lanes []int `json:"lanes,omitempty"`
}

// orders are what a job tells its chunks.
type orders struct {
	Settings
	Hold   bool `json:"hold,omitempty"`   // nothing more is queued: another chunk's turn, with Max
	Halted bool `json:"halted,omitempty"` // likewise: a task has failed, and keep_going is false
}

// chunkInput is what a chunk begins with.
type chunkInput struct {
	Document
	Span
	Orders    orders        `json:"orders"`
	KeepGoing bool          `json:"keep_going"`
	Heartbeat time.Duration `json:"heartbeat"`
	// of a chunk that goes on with a new history
	Earlier *progress `json:"earlier,omitempty"`
}

// Item is a task as a chunk sees it.
type Item struct {
	Index    int     `json:"index"`
	Name     string  `json:"name"`
	Hash     string  `json:"hash"`
	Class    string  `json:"class"`
	Pool     string  `json:"pool"`
	Priority string  `json:"priority"`
	Needs    Indices `json:"needs,omitempty"`
	Gated    bool    `json:"gated,omitempty"` // somebody has to look at the first frames before
	Done     bool    `json:"done,omitempty"`
}

// TaskInput is what a worker gets.
type TaskInput struct {
	Version int `json:"version"`
	Document
	Index  int    `json:"index"`
	Task   string `json:"task"`
	Hash   string `json:"hash"`             // what the server takes for the task's identity
	Failed int    `json:"failed,omitempty"` // attempts that count, before this activity
}

// Failure is a task that has failed for good.
type Failure struct {
	Index int    `json:"index"`
	Task  string `json:"task"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// mostFailures bounds how many failures are told, and mostText their texts in bytes: events of workflows are small.
const (
	mostFailures = 50
	mostText     = 1000
)

// State is how far a job or chunk is.
type State struct {
	Settings
	Halted   bool      `json:"halted,omitempty"`
	Tasks    int       `json:"tasks"`
	Done     int       `json:"done"`
	Before   int       `json:"before,omitempty"` // of Done, when the job began
	Queued   int       `json:"queued"`           // or running
	Waiting  int       `json:"waiting"`          // for others, for a place, or to be resumed
	Gated    int       `json:"gated,omitempty"`  // of Waiting, until somebody has looked at the first frames
	Failed   int       `json:"failed"`
	Skipped  int       `json:"skipped"`
	Failures []Failure `json:"failures,omitempty"` // the first ones
	// of a job: its chunks that run, whose counts are not in the above but as Waiting
	Chunks []int `json:"chunks,omitempty"`
}

// Add takes in the state of a chunk.
func (s *State) Add(c *State) {
	s.Done += c.Done
	s.Before += c.Before
	s.Queued += c.Queued
	s.Waiting += c.Waiting
	s.Gated += c.Gated
	s.Failed += c.Failed
	s.Skipped += c.Skipped
	if room := mostFailures - len(s.Failures); room > 0 {
		s.Failures = append(s.Failures, c.Failures[:min(room, len(c.Failures))]...)
	}
}

// outcome is how a chunk ended.
type outcome struct {
	State
	Lost Indices `json:"lost,omitempty"` // tasks that have failed or were skipped
}

// Indices are tasks by their index, written as in 0-17,22, not in any order.
type Indices string

// indicesOf writes a list.
func indicesOf(list []int) Indices {
	var b strings.Builder
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if k > i {
			fmt.Fprintf(&b, "-%d", list[k])
		}
		i = k + 1
	}
	return Indices(b.String())
}

// each calls f for each range of tasks.
func (s Indices) each(f func(first, last int)) error {
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(string(s), ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first {
			return fmt.Errorf("%.40q is no list of tasks", part)
		}
		f(first, last)
	}
	return nil
}

// list gives the tasks in the order in which they are written, at most so many.
func (s Indices) list(most int) (list []int, err error) {
	wrong := s.each(func(first, last int) {
		for i := first; i <= last && err == nil; i++ {
			if list = append(list, i); len(list) > most {
				err = fmt.Errorf("more than %d tasks are named", most)
			}
		}
	})
	if wrong != nil {
		return nil, wrong
	}
	return list, err
}
