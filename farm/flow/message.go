package flow

// Version is that of TaskInput. A worker leaves tasks of a higher one to others.
const Version = 1

// Document says where a job's document is, and which.
type Document struct {
	Root   string `json:"root"` // name of the root of outputs
	Key    string `json:"key"`  // below it
	SHA256 string `json:"sha256"`
}

// Settings are those that may change while a job runs.
type Settings struct {
	Paused    bool   `json:"paused,omitempty"`
	Inspected bool   `json:"inspected,omitempty"` // the first frames were approved
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

// With gives the settings after a change.
func (s Settings) With(c *Change) Settings {
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

// SetSignal is the signal with a Change to a job, StateQuery the query of the State of a job or a chunk.
const (
	SetSignal  = "set"
	StateQuery = "state"
)

// JobInput is the input of a job's workflow.
type JobInput struct {
	Document
	Settings
}

// TaskInput is the input of a task's activity.
type TaskInput struct {
	Version int `json:"version"`
	Document
	Index  int    `json:"index"`
	Task   string `json:"task"`
	Hash   string `json:"hash"`             // what the server takes for the task's identity
	Failed int    `json:"failed,omitempty"` // attempts that count, before this activity
	Gather bool   `json:"gather,omitempty"` // the tasks of some of its models have failed, see task.Options
}

// Failure is a task that has failed for good.
type Failure struct {
	Index int    `json:"index"`
	Task  string `json:"task"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// MostFailures bounds how many failures are reported: events of workflows are small.
const MostFailures = 50

// State is how far a job or chunk is.
type State struct {
	Settings
	Halted   bool      `json:"halted,omitempty"`
	Tasks    int       `json:"tasks"`
	Done     int       `json:"done"`
	Before   int       `json:"before,omitempty"` // of Done, when the job began
	Queued   int       `json:"queued"`           // or running
	Waiting  int       `json:"waiting"`          // for others, for a place, or to be resumed
	Gated    int       `json:"gated,omitempty"`  // of Waiting, until the first frames are approved
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
	if room := MostFailures - len(s.Failures); room > 0 {
		s.Failures = append(s.Failures, c.Failures[:min(room, len(c.Failures))]...)
	}
}

// SinceHeader is a header of answers to workers: since when the server has been there without a break.
const SinceHeader = "vksplat-since"
