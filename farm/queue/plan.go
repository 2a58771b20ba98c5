package queue

import (
	"time"
)

// Priority decides which tasks are handed out first. Within a priority the older job goes first.
type Priority string

// The priorities, highest first.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// Priorities lists them in the order in which workers ask.
var Priorities = []Priority{High, Normal, Low}

// AnyPool is the pool whose tasks every worker takes.
const AnyPool = "any"

// Limits of a job, checked before anything is written.
const (
	MaxDocument = 256 << 10
	MaxTasks    = 100_000
	maxNeeds    = 1_000_000 // of all tasks together
	maxName     = 255
	maxPool     = 72
)

// JobPlan is a job as it is submitted. The same JobPlan submitted twice is one job.
type JobPlan struct {
	Name     string   // unique in the farm
	Document []byte   // what workers make their tasks from; opaque here, at most MaxDocument
	Owner    string   // whose limit it counts against
	Priority Priority // "" means Normal
	FailFast bool     // after the first failed task no other is started
	Canceled bool     // of a queue that is rebuilt: nothing of it is started
	Tasks    []Task
}

// Task is a task as the queue sees it.
type Task struct {
	Name        string        `json:"n"`           // readable and unique in its job: "fly/0001-0050"
	Needs       []int         `json:"d,omitempty"` // indices of tasks of the job that must have succeeded
	Pool        string        `json:"p,omitempty"` // "" means AnyPool
	Limit       string        `json:"g,omitempty"` // name under which Limits count it with those of other pools; "" means Pool
	Priority    Priority      `json:"o,omitempty"` // "" means the job's
	MaxAttempts int           `json:"a,omitempty"` // 0 means 4
	Backoff     time.Duration `json:"b,omitempty"` // wait after the first failed attempt, doubled by each further one; 0 means 10 s
	BackoffMax  time.Duration `json:"m,omitempty"` // 0 means 10 minutes
	Lease       time.Duration `json:"l,omitempty"` // how long its owner may be silent, where that is longer than the farm's lease
	Stall       time.Duration `json:"s,omitempty"` // how long its step may stand still before the lease ends; 0 means 10 minutes
	Timeout     time.Duration `json:"t,omitempty"` // of one attempt; 0 means none
	Inspect     bool          `json:"i,omitempty"` // what needs it waits, once it has succeeded, for Resume: somebody looks at it first
}
