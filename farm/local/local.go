package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
)

// Options say which job runs, and with what.
type Options struct {
	Job  *spec.Job
	Plan *spec.Plan

	Only      []string // patterns of tasks' names or ids: these, and what they need; empty: all
	Retry     bool     // what failed for good is tried again
	Redo      bool     // what is done is made again, of Only, and with it what is made from that
	Inspected bool     // the first frames were approved
	KeepGoing bool     // other tasks go on when one has failed for good

	Roots    store.Roots
	Work     string // folder on the local disk for what is in the making
	Locks    string // folder of the locks of devices, which all runs of this machine share
	CacheMax int64  // bytes of inputs that stay in Work, 0: all

	Devices []task.Device
	Others  int                  // tasks without a device that run at a time
	Lacks   map[*spec.Kind]error // kinds of tasks that this machine cannot do, and why

	Program string // this program's file
	Version string // and version

	Report func(s *Status, changed int) // called from one goroutine, of a task that changed
	Note   func(text string)            // likewise, of what people should know
}

// State is that of a task.
type State string

// The states.
const (
	Waiting  State = "waiting" // for tasks that it needs, or for approval of the first frames
	Ready    State = "ready"
	Running  State = "running"
	Retrying State = "retrying" // an attempt failed, another one follows
	Done     State = "done"
	Failed   State = "failed"  // for good
	Skipped  State = "skipped" // a task that it cannot do without has failed
	Excluded State = "excluded"
)

// States are all of them, in the order in which people read them.
var States = []State{Done, Running, Retrying, Ready, Waiting, Failed, Skipped, Excluded}

// over says that a task of the state runs no more.
func (s State) over() bool { return s == Done || s == Failed || s == Skipped || s == Excluded }

// TaskStatus is how far a task is.
type TaskStatus struct {
	Index int    `json:"index"`
	Task  string `json:"task"`
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// of this run of the job; those that waited for the store, or lost their device, do not count
	Attempts int     `json:"attempts,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"` // that these took
	Device   string  `json:"device,omitempty"`  // name
	Step     int     `json:"step,omitempty"`
	Of       int     `json:"of,omitempty"`
	Rate     float64 `json:"rate,omitempty"` // steps a second
	Unit     string  `json:"unit,omitempty"` // of these
	Message  string  `json:"message,omitempty"`
	Error    string  `json:"error,omitempty"`
	Hint     string  `json:"hint,omitempty"`
	Preview  bool    `json:"preview,omitempty"` // there is a small picture

	before    bool // it was done, or had failed, when this run began
	forgotten bool // it failed, and the store does not know: the next run tries it again
}

// Before says that the task was done, or had failed, before this run of the job.
func (t *TaskStatus) Before() bool { return t.before }

// Forgotten says that the next run retries the failed task without --retry.
func (t *TaskStatus) Forgotten() bool { return t.forgotten }

// Status is how far a job is.
type Status struct {
	Job     string       `json:"job"`
	Host    string       `json:"host,omitempty"` // of the process that runs it
	Began   time.Time    `json:"began"`
	Updated time.Time    `json:"updated"`
	Ended   bool         `json:"ended"` // nothing runs any more
	Tasks   []TaskStatus `json:"tasks"`
}

// Counts says how many tasks are in which state.
func (s *Status) Counts() map[State]int {
	counts := map[State]int{}
	for i := range s.Tasks {
		counts[s.Tasks[i].State]++
	}
	return counts
}

// errLost is of a job that needs a device when there is none any more.
var errLost = error(&fault.Error{Op: "run job", Err: errors.New("every device was lost several times in a row"),
	Hint: "see dmesg for the driver's messages; reset the devices or restart the machine, then run the job again",
	Kind: fault.ErrTryAgain})

// Run runs the job until all of it is done that can be, or ctx ends: then children save, and what they saved goes to
// the store. That tasks failed says the status.
func Run(ctx context.Context, o Options) (*Status, error) {
	return run(ctx, o, task.Run)
}

func run(ctx context.Context, o Options,
	do func(context.Context, task.Options) (*store.Manifest, error)) (*Status, error) {
	r := &runner{Options: o, do: do, events: make(chan event), running: map[int]*attempt{}, due: map[int]time.Time{},
		shown: shown{previews: map[int][]byte{}},
		news:  news{latest: map[int]task.Progress{}, there: make(chan struct{}, 1)}}
	root, err := o.Roots.Open(o.Job.Store.Outputs)
	if err != nil {
		return nil, err
	}
	r.outputs = root.Attend(ctx, func(error) {})
	if err := r.plan(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Locks, 0o777); err != nil {
		return nil, &fault.Error{Op: "lock devices", Path: o.Locks, Err: err,
			Hint: "make room there, and give write permission", Kind: fault.ErrTryAgain}
	}
	for i := range o.Devices {
		r.devices = append(r.devices, &device{Device: o.Devices[i], lock: LockFile(o.Locks, &o.Devices[i]), user: -1})
	}
	r.loop(ctx)
	if ctx.Err() == nil && !r.halted && slices.ContainsFunc(r.order,
		func(i int) bool { return !r.status.Tasks[i].State.over() && !r.canRun(i) }) {
		return &r.status, errLost
	}
	return &r.status, nil
}

// plan finds out from the store where the job stands.
func (r *runner) plan(ctx context.Context) error {
	tasks := r.Plan.Tasks
	host, _ := os.Hostname()
	r.status = Status{Job: r.Job.Name, Host: host, Began: time.Now(), Tasks: make([]TaskStatus, len(tasks))}
	r.missing, r.dependants = make([]int, len(tasks)), make([][]int, len(tasks))
	r.partial = make([][]string, len(tasks))
	for i := range tasks {
		r.status.Tasks[i] = TaskStatus{Index: i, Task: tasks[i].Name, Kind: tasks[i].Kind.Name, State: Waiting}
		for _, need := range tasks[i].Needs {
			r.dependants[need] = append(r.dependants[need], i)
		}
	}
	meant, err := named(r.Plan, r.Only)
	if err != nil {
		return err
	}
	if r.Redo {
		meant = closure(meant, func(i int) []int { return r.dependants[i] })
	}
	chosen := closure(meant, func(i int) []int { return tasks[i].Needs })
	err = parallel.Limited(len(tasks), lookers, func(i int) error {
		return cmp.Or(ctx.Err(), r.look(i, chosen[i] && (r.Retry || r.Redo)))
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return store.Explain("read results", r.Job.Name, err)
	}
	if err := r.redo(ctx, meant, chosen); err != nil {
		return err
	}
	if r.inspected = r.Inspected; r.inspected {
		err = NoteInspected(r.outputs, r.Job)
	} else {
		r.inspected, err = Inspected(r.outputs, r.Job)
	}
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &r.status.Tasks[i]
		switch {
		case !chosen[i] && t.State != Done:
			t.State, t.Error, t.Hint = Excluded, "", ""
		case chosen[i] && t.State == Done && r.partial[i] != nil:
			// what its results lack may be there, or be made now
			t.State, t.before, t.Message = Waiting, false, ""
		}
		if t.State == Waiting {
			r.order = append(r.order, i)
		}
	}
	rank := map[string]int{"high": 0, "normal": 1, "low": 2}
	slices.SortStableFunc(r.order, func(a, b int) int { return rank[tasks[a].Priority] - rank[tasks[b].Priority] })
	return r.arrange()
}

// arrange finds out which tasks can begin.
func (r *runner) arrange() error {
	for i := range r.Plan.Tasks {
		for _, need := range r.Plan.Tasks[i].Needs {
			if r.status.Tasks[need].State != Done {
				r.missing[i]++
			}
		}
	}
	for i := range r.status.Tasks {
		if r.status.Tasks[i].State == Failed {
			r.lose(i)
		}
	}
	for _, i := range r.order {
		switch t := &r.status.Tasks[i]; {
		case r.partial[i] == nil || t.State.over():
		case r.missing[i] == 0 && slices.Equal(r.partial[i], r.lacking(i)):
			t.before = true
			r.done(i)
		default:
			if err := r.fits(&r.Plan.Tasks[i]); err != nil {
				return err
			}
		}
	}
	for _, i := range r.order {
		r.awake(i)
	}
	return nil
}

// redo has tasks be made again, with Redo, once all that is left to do can be done here.
func (r *runner) redo(ctx context.Context, meant, chosen []bool) error {
	for i := range r.status.Tasks {
		if t := &r.status.Tasks[i]; r.Redo && meant[i] {
			*t = TaskStatus{Index: i, Task: t.Task, Kind: t.Kind, State: Waiting}
			r.partial[i] = nil
		}
		if chosen[i] && r.status.Tasks[i].State == Waiting {
			if err := r.fits(&r.Plan.Tasks[i]); err != nil {
				return err
			}
		}
	}
	waits := func(i int) bool { return chosen[i] && r.status.Tasks[i].State == Waiting }
	if slices.ContainsFunc(r.Plan.Tasks, func(t spec.Task) bool { return waits(t.Index) && len(t.Keys()) > 0 }) {
		root, err := r.Roots.Open(r.Job.Store.Inputs)
		if err == nil {
			err = CheckInputs(root.Attend(ctx, func(error) {}), r.Job, r.Plan, waits, task.InputHint)
		}
		if err != nil {
			return err
		}
	}
	for i, again := range meant { // where this is interrupted, the same call begins it again
		if !r.Redo || !again {
			continue
		}
		now, err := store.Generation(r.outputs, r.key(i))
		if err == nil {
			err = store.Outdate(r.outputs, r.key(i), now+1)
		}
		if err != nil {
			return store.Explain("outdate results", r.key(i), err)
		}
	}
	return nil
}

// fits refuses a task that could never run on this machine.
func (r *runner) fits(t *spec.Task) error {
	refuse := func(hint, format string, args ...any) error {
		why := fmt.Errorf("task %s (%s) %s", t.Name, t.Kind, fmt.Sprintf(format, args...))
		return &fault.Error{Op: "run job", Err: why, Hint: hint, Kind: fault.ErrUsage}
	}
	if !t.Kind.NeedsDevice {
		if r.Others <= 0 {
			return refuse("leave out "+fault.Setting("others")+", or give 1 or more",
				"runs alongside tasks with a device, and %s %d allows none", fault.Setting("others"), r.Others)
		}
		return nil
	}
	var lacks []string
	for i := range r.Options.Devices {
		why := r.Options.Devices[i].Lacks(t)
		if why == "" {
			return nil
		}
		lacks = append(lacks, why)
	}
	if len(lacks) == 0 {
		return refuse("leave out "+fault.Setting("devices")+" none: without a GPU, software Vulkan runs it",
			"needs a device, and %s none gives it none", fault.Setting("devices"))
	}
	return refuse("change the job's pin or limits.vram_min_mb, or give other "+fault.Setting("devices")+
		"; vksplat devices lists them",
		"can run on none of these devices: %s", strings.Join(slices.Compact(lacks), "; "))
}

// named says which tasks of a plan patterns name, all of them without any.
func named(plan *spec.Plan, only []string) (meant []bool, err error) {
	if len(only) == 0 {
		return slices.Repeat([]bool{true}, len(plan.Tasks)), nil
	}
	meant = make([]bool, len(plan.Tasks))
	for _, pattern := range only {
		found := false
		for i := range plan.Tasks {
			fits, err := path.Match(pattern, plan.Tasks[i].Name)
			if !fits && err == nil {
				fits, err = path.Match(pattern, plan.Tasks[i].ID)
			}
			if err != nil {
				return nil, &fault.Error{Op: "choose tasks", Err: err, Hint: "* and ? stand for parts of names",
					Kind: fault.ErrUsage}
			}
			meant[i], found = meant[i] || fits, found || fits
		}
		if !found {
			return nil, &fault.Error{Op: "choose tasks", Err: fmt.Errorf("none of the job is called %s",
				strconv.Quote(pattern)), Hint: fault.Setting("dry-run") + " lists them", Kind: fault.ErrUsage}
		}
	}
	return meant, nil
}

// Chosen says which tasks of a plan run where patterns name some: these, and what they need.
func Chosen(plan *spec.Plan, only []string) ([]bool, error) {
	meant, err := named(plan, only)
	return closure(meant, func(i int) []int { return plan.Tasks[i].Needs }), err
}

// closure adds to a choice of tasks all that follow from these.
func closure(choice []bool, next func(i int) []int) []bool {
	all := make([]bool, len(choice))
	var add func(i int)
	add = func(i int) {
		if all[i] {
			return
		}
		all[i] = true
		for _, k := range next(i) {
			add(k)
		}
	}
	for i, is := range choice {
		if is {
			add(i)
		}
	}
	return all
}

// lose has those tasks that need one which failed, or was skipped, do without it where they can, and skips the others.
func (r *runner) lose(lost int) {
	for _, i := range r.dependants[lost] {
		t := &r.status.Tasks[i]
		switch {
		case t.State.over():
		case r.Plan.Tasks[i].Without(r.isLost):
			r.missing[i]--
			r.awake(i)
		default:
			t.State, t.Message = Skipped, ""
			r.tell(i)
			r.lose(i)
		}
	}
}

func (r *runner) isLost(i int) bool {
	state := r.status.Tasks[i].State
	return state == Failed || state == Skipped
}

// lacking names the tasks that a task reads and does without.
func (r *runner) lacking(i int) (names []string) {
	for _, need := range r.Plan.Tasks[i].Reads() {
		if r.isLost(need) {
			names = append(names, r.Plan.Tasks[need].Name)
		}
	}
	return names
}

// awake makes a task ready whose needs are done.
func (r *runner) awake(i int) {
	t := &r.status.Tasks[i]
	if t.State != Waiting || r.missing[i] > 0 {
		return
	}
	if !r.inspected && slices.ContainsFunc(r.Plan.Tasks[i].Needs,
		func(need int) bool { return r.Plan.Tasks[need].Inspect }) {
		t.Message = "waits for approval of the first frames"
		return
	}
	t.State, t.Message = Ready, ""
}
