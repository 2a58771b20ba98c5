package queue

import "time"

// Format is the version of everything the queue stores. Programs of another format refuse to work on a farm.
const Format = 1

// State is where a task is.
type State string

// The states of a task. Blocked and Skipped are never stored, see doc.go.
const (
	Blocked   State = "blocked"
	Queued    State = "queued"
	Running   State = "running"
	Verifying State = "verifying" // the work is done, its outputs are looked at
	RetryWait State = "retry_wait"
	Canceling State = "canceling"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Canceled  State = "canceled"
	Skipped   State = "skipped"
)

// States lists them in the order in which tables show them.
var States = []State{Blocked, Queued, Running, Verifying, RetryWait, Canceling, Succeeded, Failed, Canceled, Skipped}

// Ended says whether a task in this state stays there unless somebody retries it.
func (s State) Ended() bool {
	return s == Succeeded || s == Failed || s == Canceled || s == Skipped
}

// owned says whether a worker holds, or held, the lease of a task in this state.
func (s State) owned() bool { return s == Running || s == Verifying || s == Canceling }

// Entry is what KV task holds of a task.
type Entry struct {
	Format     int               `json:"format"`
	Key        string            `json:"key"` // its own: a copy under another key is no entry
	State      State             `json:"state"`
	Generation int               `json:"generation"`        // how often it was retried by hand
	Attempt    int               `json:"attempt"`           // how often it was claimed, in all generations: never repeats, also where Fsck has rebuilt the queue, so it may name files
	Used       int               `json:"used"`              // attempts of this generation that count against MaxAttempts: those handed back do not
	Claim      string            `json:"claim,omitempty"`   // the fencing token: unique to each claim, "" if nobody holds it
	Node       string            `json:"node,omitempty"`    // who holds it, or held it last
	Device     string            `json:"device,omitempty"`  // of that attempt, as the worker names it: UUID or PCI address
	Driver     string            `json:"driver,omitempty"`  // of that attempt
	Version    string            `json:"version,omitempty"` // of vksplat in that attempt
	Beat       int               `json:"beat,omitempty"`    // counts the writes of a claim, so that no two are equal
	Step       int64             `json:"step,omitempty"`
	Of         int64             `json:"of,omitempty"`
	Rate       float64           `json:"rate,omitempty"`     // steps a second, while it runs; 0: not known
	Unit       string            `json:"unit,omitempty"`     // what steps are, for people
	Took       Duration          `json:"took,omitempty"`     // by that attempt so far, by its worker's clock
	Message    string            `json:"message,omitempty"`  // what the attempt does or said last
	Manifest   string            `json:"manifest,omitempty"` // SHA-256 of the manifest of a task that succeeded
	Error      string            `json:"error,omitempty"`    // of the last attempt that failed
	Declined   map[string]string `json:"declined,omitempty"` // by node, why it did not take the task, since somebody worked on it
	Redo       int               `json:"redo,omitempty"`     // the number of the last Redo of the job that reached it
	Again      bool              `json:"again,omitempty"`    // of Canceling: once it has stopped it is queued again
	Delay      Duration          `json:"delay,omitempty"`    // of RetryWait, from the entry's time stamp on
	Failures   []Failure         `json:"failures,omitempty"` // the last maxFailures of them, oldest first
}

// Failure is one attempt that failed.
type Failure struct {
	Attempt   int    `json:"attempt"`
	Node      string `json:"node"`
	Device    string `json:"device,omitempty"`
	Driver    string `json:"driver,omitempty"`
	Version   string `json:"version,omitempty"`
	Permanent bool   `json:"permanent,omitempty"` // the task is at fault, not the node
	Lost      bool   `json:"lost,omitempty"`      // its owner fell silent
	Error     string `json:"error"`
}

// Duration is a time.Duration that JSON shows as "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Head is what KV job holds of a job beside its document and its plan.
type Head struct {
	Format     int           `json:"format"`
	Name       string        `json:"name"`
	Owner      string        `json:"owner"`
	Priority   Priority      `json:"priority"`
	FailFast   bool          `json:"fail_fast,omitempty"`
	Tasks      int           `json:"tasks"`
	Parts      int           `json:"parts"`    // of the plan
	Document   string        `json:"document"` // SHA-256 of the document
	Plan       string        `json:"plan"`     // SHA-256 of the plan
	Version    string        `json:"version"`  // of vksplat that submitted it
	Age        uint64        `json:"age"`      // revision of the document: the lower, the older the job
	Generation int           `json:"generation"`
	Paused     bool          `json:"paused,omitempty"`
	Inspected  bool          `json:"inspected,omitempty"` // what waits for somebody to look may go on
	Canceled   bool          `json:"canceled,omitempty"`
	Ended      JobState      `json:"ended,omitempty"`
	Forgotten  bool          `json:"forgotten,omitempty"` // it has ended, and is being removed
	Gone       bool          `json:"gone,omitempty"`      // it was removed: only this is left, and nobody sees it; Tasks is the most that a job of the name had
	Former     int           `json:"former,omitempty"`    // the most tasks that a job of the name had that is gone
	Redo       *Redo         `json:"redo,omitempty"`      // what is to be done again, and has not been queued whole
	Redos      int           `json:"redos,omitempty"`     // how often somebody began that
	Counts     map[State]int `json:"counts,omitempty"`    // when it ended
}

// JobState is where a job is.
type JobState string

// The states of a job.
const (
	JobActive    JobState = "active"
	JobPaused    JobState = "paused"
	JobInspect   JobState = "inspect" // nothing runs until somebody has looked at its first frames and resumes it
	JobCanceling JobState = "canceling"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCanceled  JobState = "canceled"
	JobBroken    JobState = "broken" // its plan or document is lost or damaged: fsck says more
)

// Ended says whether nothing of a job in this state will run unless somebody retries it.
func (s JobState) Ended() bool { return s == JobSucceeded || s == JobFailed || s == JobCanceled }
