package flows

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/flow"
)

// Types of workflows and activities that nobody but this package calls.
const (
	chunkType   = "chunk"
	expandType  = "expand"
	outlineType = "outline"
	runningType = "running"
)

// Signals between a job and its chunks.
const (
	orderSignal  = "order"  // orders, to a chunk
	beforeSignal = "before" // Indices of tasks that have failed in chunks that a chunk waited for
	haltSignal   = "halt"   // a chunk to its job: a task has failed, and keep_going is false
)

// mostText bounds the texts of a failure in bytes: events of workflows are small.
const mostText = 1000

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
	flow.Settings
	Hold   bool `json:"hold,omitempty"`   // nothing more is queued: another chunk's turn, with Max
	Halted bool `json:"halted,omitempty"` // likewise: a task has failed, and keep_going is false
}

// chunkInput is what a chunk begins with.
type chunkInput struct {
	flow.Document
	Span
	Orders    orders        `json:"orders"`
	KeepGoing bool          `json:"keep_going"`
	Heartbeat time.Duration `json:"heartbeat"`
	// of a chunk that goes on with a new history
	Earlier *progress `json:"earlier,omitempty"`
}

// Item is a task as a chunk sees it.
type Item struct {
	Index    int    `json:"index"`
	Name     string `json:"name"`
	Hash     string `json:"hash"`
	Class    string `json:"class"`
	Pool     string `json:"pool"`
	Priority string `json:"priority"`
	needs
	Gated bool `json:"gated,omitempty"` // somebody has to look at the first frames before
	Done  bool `json:"done,omitempty"`
}

// outcome is how a chunk ended.
type outcome struct {
	flow.State
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
			return fmt.Errorf("%.40q is not a list of tasks", part)
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
