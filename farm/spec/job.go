package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"vksplat/internal/fault"
)

// version is that of job documents which this package reads.
const version = 1

// Limits on documents and what they expand to. They are checked before anything is allocated for what they bound.
const (
	MaxDocument = 256 << 10 // bytes, as written and as Canonical gives it
	MaxTasks    = 100_000   // after expansion
	MaxNeeds    = 1_000_000 // of all tasks together
	maxDepth    = 16        // of lists and tables in each other
	maxWritten  = 4096      // [[task]] entries
)

// Job is a document that was read and checked.
type Job struct {
	Version  int        `key:"version"`
	Name     string     `key:"name"`
	Priority string     `key:"priority"` // high, normal or low
	Pool     string     `key:"pool"`     // of machines, for schedulers and farms
	Retry    Retry      `key:"retry"`
	Limits   Limits     `key:"limits"`
	Store    Store      `key:"store"`
	Pin      Pin        `key:"pin"`
	Tasks    []TaskSpec // as written

	tree   map[string]any // the whole document
	file   string         // its name in errors
	text   []byte         // as it was given, for the lines of errors
	places map[string]int // in text, by path
}

// Retry says what happens with tasks that fail for reasons that may pass.
type Retry struct {
	MaxAttempts int           `key:"max_attempts"`
	Backoff     time.Duration `key:"backoff"` // before the second attempt; it doubles from then on
	BackoffMax  time.Duration `key:"backoff_max"`
	KeepGoing   bool          `key:"keep_going"` // other tasks go on when one has failed for good
}

// Pause is the pause after a number of attempts.
func (r *Retry) Pause(attempts int) time.Duration {
	pause := r.Backoff
	for range attempts - 1 {
		if pause >= r.BackoffMax {
			break
		}
		pause *= 2
	}
	return min(pause, r.BackoffMax)
}

// Limits bound what a task takes.
type Limits struct {
	TaskTimeout     time.Duration `key:"task_timeout"`     // of one attempt; 0: none
	StallTimeout    time.Duration `key:"stall_timeout"`    // without progress
	CheckpointEvery time.Duration `key:"checkpoint_every"` // between uploads of checkpoints
	VRAMMinMB       int           `key:"vram_min_mb"`      // of the device, 0: any
	DiskMinGB       int           `key:"disk_min_gb"`      // free for the work folder, 0: any
}

// Store names the roots of keys.
type Store struct {
	Inputs  string `key:"inputs"`
	Outputs string `key:"outputs"`
}

// Pin keeps tasks to devices of a name or UUID and to a version of the driver; "" is any.
type Pin struct {
	Device string `key:"device"`
	Driver string `key:"driver"`
}

// TaskSpec is a [[task]] as written. Defaults of the job are filled in.
type TaskSpec struct {
	ID       string `key:"id"`
	Kind     *Kind
	Needs    []string `key:"needs"` // ids that must be done before, beside those that inputs name
	Pool     string   `key:"pool"`
	Priority string   `key:"priority"`
	Retry    Retry    `key:"retry"`
	Limits   Limits   `key:"limits"`
	Pin      Pin      `key:"pin"`
	Matrix   []Axis

	fields map[string]any // the kind's own, with the axes not yet put in
	at     int            // its place in the document, from 0
}

// Axis is one key of a matrix.
type Axis struct {
	Key    string
	Values []any
}

// Flag is a flag of the command that a task runs, and its value.
type Flag struct {
	Name  string `json:"name"` // without dashes in front
	Value string `json:"value"`
}

// ErrSpec is the kind of errors about documents.
var ErrSpec = fault.Sentinel(fault.ErrSetup, "bad job document", "")

// Parse reads a document in TOML or, where it begins with a brace, JSON. Errors name the line.
func Parse(name string, data []byte) (*Job, error) {
	j := &Job{file: name, text: data}
	if len(data) > MaxDocument {
		return nil, j.wrong(nil, "large files stay outside: name them by their keys", "it is larger than %d KiB",
			MaxDocument>>10)
	}
	if err := j.readText(); err != nil {
		return nil, err
	}
	if err := j.read(); err != nil {
		return nil, err
	}
	if n := len(j.Canonical()); n > MaxDocument {
		return nil, j.wrong(nil, "split it into several jobs", "as JSON it has %d KiB, %d are allowed", (n+1023)>>10,
			MaxDocument>>10)
	}
	return j, nil
}

// Canonical is the document as JSON in one form, whatever it was written in: what is stored, sent and hashed.
func (j *Job) Canonical() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(j.tree); err != nil {
		panic(err) // the tree holds what JSON can, readText sees to it
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Hash is the identity of a job: the SHA-256 of its canonical form, in hexadecimal.
func (j *Job) Hash() string {
	sum := sha256.Sum256(j.Canonical())
	return hex.EncodeToString(sum[:])
}

// WrongTask is the error of a task whose settings its command refuses. flag is the one that is wrong, "" where it is
// not known.
func (j *Job) WrongTask(t *Task, flag string, refused error) error {
	return j.wrongTask(t, refused, func(key string, _ any) bool {
		f := find(settings, key)
		return f != nil && f.flag == flag
	})
}

// WrongInput is the error of a task that reads the key of an input which is refused.
func (j *Job) WrongInput(t *Task, input string, refused error) error {
	return j.wrongTask(t, refused, func(_ string, value any) bool {
		list, isList := value.([]any)
		return !isList && value == any(input) || slices.ContainsFunc(list, func(v any) bool { return v == any(input) })
	})
}

// wrongTask is an error at the key of a task that is to blame, or else at the task.
func (j *Job) wrongTask(t *Task, refused error, blame func(key string, value any) bool) error {
	at := slices.IndexFunc(j.Tasks, func(s TaskSpec) bool { return s.ID == t.ID })
	written, root := j.tree["task"].([]any)[at].(map[string]any), path{"task", at}
	place := root
	for _, name := range []string{"", "matrix", "set"} {
		table, below := written, root
		if name != "" {
			table, _ = written[name].(map[string]any)
			below = root.add(name)
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if _, isTable := table[key].(map[string]any); !isTable && blame(key, table[key]) {
				place = below.add(key)
			}
		}
	}
	// The kind of the refusal is that of a command line, and this is a document.
	return j.wrongLine(j.line(place), fault.Hint(refused), fmt.Errorf("task %s: %s", t.Name, refused))
}

// wrong is an error at a place in the document.
func (j *Job) wrong(at path, hint, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if where := at.String(); where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return j.wrongLine(j.line(at), hint, err)
}
