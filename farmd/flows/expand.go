package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
)

// Expander makes tasks of documents, where the workflows run. It reads the store, and writes nothing.
type Expander struct {
	Roots     store.Roots
	Heartbeat time.Duration // a worker that is silent for so long is given up; 0: DefaultHeartbeat
	// Admit counts the queues that a job of an owner is to use, and may refuse them; nil: all
	Admit func(owner string, queues []string) error

	window    int // 0: mostChunks
	documents flow.Documents
	once      sync.Once
}

// DefaultHeartbeat is how long a worker may be silent.
const DefaultHeartbeat = 30 * time.Second

// Register adds the workflows and their own activities to a worker of flow.FlowQueue.
func Register(r worker.Registry, e *Expander) {
	r.RegisterWorkflowWithOptions(job, workflow.RegisterOptions{Name: flow.JobType})
	r.RegisterWorkflowWithOptions(chunk, workflow.RegisterOptions{Name: chunkType})
	for name, f := range map[string]any{outlineType: e.outline, expandType: e.expand, runningType: running} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

func (e *Expander) read(ctx context.Context, d flow.Document) (*flow.Planned, error) {
	e.once.Do(func() { e.documents.Roots = e.Roots })
	return e.documents.Read(ctx, d)
}

// alive tells the server that an activity goes on, until end is called.
func alive(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(DefaultHeartbeat / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return cancel
}

// outline plans a document and cuts its tasks into chunks.
func (e *Expander) outline(ctx context.Context, d flow.Document) (*Outline, error) {
	defer alive(ctx)()
	return e.outlineOf(ctx, d, flow.OwnerOf(activity.GetInfo(ctx).WorkflowExecution.ID))
}

func (e *Expander) outlineOf(ctx context.Context, d flow.Document, owner string) (*Outline, error) {
	p, err := e.read(ctx, d)
	if err != nil {
		return nil, e.told(d, err)
	}
	root, err := e.Roots.Open(d.Root)
	if err == nil {
		err = e.Roots.Apart(p.Job.Store.Inputs, d.Root)
	}
	if err == nil {
		err = flow.Own(root.Attend(ctx, func(error) {}), p.Job.Name, owner, false)
	}
	if err != nil {
		return nil, e.told(d, err)
	}
	if err := e.admit(p.Plan, owner); err != nil {
		kind := fault.ErrData
		var later *serviceerror.ResourceExhausted
		if errors.As(err, &later) {
			kind = fault.ErrTryAgain
		}
		return nil, e.told(d, &fault.Error{Op: "queue tasks", Path: p.Job.Name, Err: err, Kind: kind,
			Hint: "use fewer values of pool, pin.device and pin.driver"})
	}
	order := inOrder(p.Plan)
	return &Outline{KeepGoing: p.Job.Retry.KeepGoing, Heartbeat: cmp.Or(e.Heartbeat, DefaultHeartbeat),
		Window: cmp.Or(e.window, mostChunks), Chunks: cut(p.Plan, order)}, nil
}

// MaxQueues is how many queues the tasks of a job may be in. The server keeps each in memory.
const MaxQueues = 100

// admit refuses jobs that would have the server make too many queues.
func (e *Expander) admit(plan *spec.Plan, owner string) error {
	queues := map[string]bool{}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		queues[flow.Queue(t.Pool, flow.ClassOf(t))] = true
	}
	if len(queues) > MaxQueues {
		return fmt.Errorf("its tasks use %d combinations of pool and device, at most %d are allowed", len(queues),
			MaxQueues)
	}
	if e.Admit == nil {
		return nil
	}
	return e.Admit(owner, slices.Sorted(maps.Keys(queues)))
}

// told makes an error of an activity, which may be tried again or not.
func (e *Expander) told(d flow.Document, err error) error {
	final := task.IsFinal(task.ExitOf(err)) || errors.Is(err, flow.ErrDocument)
	how := temporal.ApplicationErrorOptions{NonRetryable: final && !e.isUnmounted(d.Root, err),
		Details: []any{fault.Hint(err)}}
	return temporal.NewApplicationErrorWithOptions("plan job, on the farm's server: "+err.Error(), "expand", how)
}

// isUnmounted says that an error comes of a root which this server knows and cannot reach. No other server can do what
// this one cannot: the job waits.
func (e *Expander) isUnmounted(root string, err error) bool {
	o, known := e.Roots[root]
	if !known || !errors.Is(err, fault.ErrSetup) {
		return false
	}
	r, err := store.Open(o)
	return err != nil || !store.HasAny(r)
}

// inOrder puts each task behind those that it needs, and soon behind them: a render follows its training.
func inOrder(plan *spec.Plan) []int {
	missing, dependants := make([]int, len(plan.Tasks)), make([][]int, len(plan.Tasks))
	for i := range plan.Tasks {
		missing[i] = len(plan.Tasks[i].Needs)
		for _, need := range plan.Tasks[i].Needs {
			dependants[need] = append(dependants[need], i)
		}
	}
	order := make([]int, 0, len(plan.Tasks))
	var add func(i int)
	add = func(i int) {
		order = append(order, i)
		for _, next := range dependants[i] {
			if missing[next]--; missing[next] == 0 {
				add(next)
			}
		}
	}
	for i := range plan.Tasks {
		if len(plan.Tasks[i].Needs) == 0 {
			add(i)
		}
	}
	return order
}

// MostTasks is how many tasks a chunk has at most.
const MostTasks = 500

// mostChunks is how many chunks that have tasks of a lane run at a time. With 100,000 tasks in its queues the server
// took two gigabytes of memory, and minutes to answer. Lanes have their own bounds, or tasks that no machine takes
// would keep others from machines that wait.
const mostChunks = 20

// cut cuts tasks in order into chunks, where few tasks have needs on the other side: they wait for a whole chunk.
func cut(plan *spec.Plan, order []int) (spans []Span) {
	place := make([]int, len(order)) // of each task in order
	for at, i := range order {
		place[i] = at
	}
	crossing := make([]int, len(order)+1) // tasks behind a place that need some before it; first as differences
	for at, i := range order {
		first := at
		for _, need := range plan.Tasks[i].Needs {
			first = min(first, place[need])
		}
		if first < at {
			crossing[first+1]++
			crossing[at+1]--
		}
	}
	for at := 1; at < len(crossing); at++ {
		crossing[at] += crossing[at-1]
	}
	chunkOf, lanes := make([]int, len(order)), laneNumbers{} // chunks by place
	for from := 0; from < len(order); {
		to := fitting(plan, order, from)
		if to < len(order) {
			for at := to; at > from+(to-from)/2; at-- {
				if crossing[at] < crossing[to] {
					to = at
				}
			}
		}
		needs := map[int]bool{}
		for at := from; at < to; at++ {
			chunkOf[at] = len(spans)
			for _, need := range plan.Tasks[order[at]].Needs {
				if place[need] < from {
					needs[chunkOf[place[need]]] = true
				}
			}
		}
		span := Span{Tasks: indicesOf(order[from:to]), Count: to - from, Lanes: lanes.of(plan, order[from:to])}
		for k := range spans {
			if needs[k] {
				span.Needs = append(span.Needs, k)
			}
		}
		spans = append(spans, span)
		from = to
	}
	return spans
}

// mostNeeds bounds what a chunk's tasks need, as text in bytes: Temporal takes no result of an activity above 2 MB.
const mostNeeds = 1 << 20

// fitting is how far a chunk may reach that begins at a place in order.
func fitting(plan *spec.Plan, order []int, from int) (to int) {
	size := 0
	for to = from; to < min(from+MostTasks, len(order)); to++ {
		n := needsOf(&plan.Tasks[order[to]])
		if size += n.size(); size > mostNeeds && to > from {
			break
		}
	}
	return to
}

// laneNumbers numbers the ways in which tasks are queued.
type laneNumbers map[string]int

// of lists the lanes of some tasks, ascending.
func (n laneNumbers) of(plan *spec.Plan, tasks []int) (list []int) {
	for _, i := range tasks {
		t := &plan.Tasks[i]
		key := flow.Queue(t.Pool, flow.ClassOf(t)) + " " + t.Priority
		lane, known := n[key]
		if !known {
			lane = len(n)
			n[key] = lane
		}
		if !slices.Contains(list, lane) {
			list = append(list, lane)
		}
	}
	slices.Sort(list)
	return list
}

// expand gives the tasks of a chunk, and says which are done.
func (e *Expander) expand(ctx context.Context, d flow.Document, tasks Indices) ([]Item, error) {
	defer alive(ctx)()
	p, err := e.read(ctx, d)
	if err != nil {
		return nil, e.told(d, err)
	}
	list, err := tasks.list(MostTasks)
	if err == nil && len(list) > 0 && slices.Max(list) >= len(p.Plan.Tasks) {
		err = errors.New("the document has fewer tasks than the chunk names")
	}
	if err != nil {
		return nil, e.told(d, &fault.Error{Op: "plan chunk", Path: d.Key, Err: err, Kind: fault.ErrData})
	}
	root, err := e.Roots.Open(d.Root)
	if err != nil {
		return nil, e.told(d, err)
	}
	root = root.Attend(ctx, func(error) {})
	inspected, err := local.Inspected(root, p.Job)
	if err != nil {
		return nil, e.told(d, err)
	}
	items := make([]Item, len(list))
	for n, i := range list {
		t := &p.Plan.Tasks[i]
		items[n] = Item{Index: i, Name: t.Name, Hash: p.Plan.Hash(i), Class: flow.ClassOf(t), Pool: t.Pool,
			Priority: t.Priority, needs: needsOf(t),
			Gated: !inspected && slices.ContainsFunc(t.Needs,
				func(need int) bool { return p.Plan.Tasks[need].Inspect })}
	}
	if err := look(ctx, root, p, items); err != nil {
		return nil, e.told(d, store.Explain("read results", p.Job.Name, err))
	}
	return items, nil
}

// lookers is how many tasks the store is asked about at a time: a bucket answers after some milliseconds.
const lookers = 16

// look finds out which tasks have results.
func look(ctx context.Context, root store.Root, p *flow.Planned, items []Item) error {
	return parallel.Limited(len(items), lookers, func(i int) error {
		m, err := store.ReadManifest(root, store.OutOf(task.KeyOf(p.Job, &p.Plan.Tasks[items[i].Index])))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			// the task itself says what of another one's results, and whether there are models now that a table lacks
			items[i].Done = m.Hash == items[i].Hash && len(m.Missing) == 0
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDamaged):
			return err
		}
		return nil
	})
}

// running lists the ids of a workflow's activities that a worker has begun. The workflow itself cannot know.
func running(ctx context.Context) (ids []string, err error) {
	of := activity.GetInfo(ctx).WorkflowExecution
	d, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, of.ID, of.RunID)
	if err != nil {
		return nil, err
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED {
			ids = append(ids, a.GetActivityId())
		}
	}
	return ids, nil
}
