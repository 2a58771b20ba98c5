package flows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"vksplat/farm/flow"
)

// phase is where a task stands.
type phase int

const (
	waiting phase = iota // for tasks that it needs, or for a place
	queued               // or running
	done
	failed
	skipped
)

// taskRun is a task of a chunk.
type taskRun struct {
	Item
	phase   phase
	missing int   // tasks of this chunk that it needs and that have not ended
	next    []int // tasks of this chunk that need it
	outside bool  // it needs tasks of other chunks, which have not ended

	begun   int // activities
	stop    workflow.CancelFunc
	stopped bool   // the activity that is queued is to end
	queue   string // of that
	key     int    // its priority
	failed  int    // attempts that count, in activities that were stopped
}

// chunkJob is a chunk that runs.
type chunkJob struct {
	in       *chunkInput
	orders   orders
	owner    string
	tasks    []taskRun
	order    []int        // places in tasks, those first that go first
	queued   int          // tasks
	lost     []int        // indices of tasks that have failed or were skipped
	outside  Indices      // likewise, of chunks that this one waited for
	gone     map[int]bool // both
	failures []flow.Failure
	before   int  // tasks that were done when the job began
	halted   bool // a task has failed here, and keep_going is false
	settled  bool // nothing is queued that these orders do not want
	asking   bool // which tasks run
	newest   workflow.Selector
}

// progress is what a chunk that goes on with a new history has done.
type progress struct {
	Done     Indices        `json:"done"`
	Failed   Indices        `json:"failed"`
	Skipped  Indices        `json:"skipped"`
	Failures []flow.Failure `json:"failures"`
	Counted  map[int]int    `json:"counted,omitempty"` // attempts that count, by index
	Before   int            `json:"before"`
	Begun    bool           `json:"begun"`             // what it waited for has ended
	Outside  Indices        `json:"outside,omitempty"` // tasks of that which have failed or were skipped
}

// longHistory is so many events that a chunk which rests goes on with a new history. The server ends one of 51,200.
const longHistory = 10_000

// chunk runs some tasks of a job.
func chunk(ctx workflow.Context, in chunkInput) (*outcome, error) {
	r := &chunkJob{in: &in, orders: in.Orders, newest: workflow.NewSelector(ctx), gone: map[int]bool{}}
	r.owner = flow.OwnerOf(workflow.GetInfo(ctx).WorkflowExecution.ID)
	state := func() (flow.State, error) { return r.state(), nil }
	if err := workflow.SetQueryHandler(ctx, flow.StateQuery, state); err != nil {
		return nil, err
	}
	var items []Item
	if err := workflow.ExecuteActivity(ownActivity(ctx), expandType, in.Document, in.Tasks).Get(ctx,
		&items); err != nil {
		return nil, cmpErr(ctx, err)
	}
	if err := r.plan(items); err != nil {
		return nil, err
	}
	r.listen(ctx)
	r.carryOut(ctx)
	for !r.over(ctx) {
		r.newest.Select(ctx)
		for r.newest.HasPending() {
			r.newest.Select(ctx)
		}
		if r.queued == 0 && !r.asking && r.orders.Paused && ctx.Err() == nil &&
			workflow.GetInfo(ctx).GetCurrentHistoryLength() > longHistory {
			in.Earlier, in.Orders = r.progress(), r.orders
			return nil, workflow.NewContinueAsNewError(ctx, chunkType, in)
		}
		r.carryOut(ctx)
	}
	o := outcome{r.state(), indicesOf(r.lost)}
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError(o)
	}
	return &o, nil
}

// over says that nothing is left to do or to wait for.
func (r *chunkJob) over(ctx workflow.Context) bool {
	return r.queued == 0 && (ctx.Err() != nil || r.isHalted() ||
		!slices.ContainsFunc(r.tasks, func(t taskRun) bool { return t.phase == waiting }))
}

// plan takes in the tasks, and what of them was done.
func (r *chunkJob) plan(items []Item) error {
	r.tasks = make([]taskRun, len(items))
	for i := range items {
		r.tasks[i].Item = items[i]
		r.order = append(r.order, i)
	}
	slices.SortStableFunc(r.order, func(a, b int) int {
		return flow.PriorityKey(items[a].Priority) - flow.PriorityKey(items[b].Priority)
	})
	place := map[int]int{}
	for i := range items {
		place[items[i].Index] = i
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		err := t.Needs.each(func(first, last int) {
			own := 0
			for k := range r.tasks {
				if n := &r.tasks[k]; n.Index >= first && n.Index <= last {
					n.next = append(n.next, i)
					t.missing++
					own++
				}
			}
			t.outside = t.outside || own < last-first+1
		})
		if err != nil {
			return err
		}
	}
	if err := r.resume(place); err != nil {
		return err
	}
	for i := range r.tasks {
		if r.tasks[i].Done && r.tasks[i].phase == waiting {
			r.before++
			r.ended(i, done)
		}
	}
	return nil
}

// resume takes in what this chunk did with an earlier history.
func (r *chunkJob) resume(place map[int]int) error {
	e := r.in.Earlier
	if e == nil {
		return nil
	}
	r.before, r.failures = e.Before, e.Failures
	all := r.loseOutside(e.Outside)
	for _, of := range []struct {
		tasks Indices
		phase phase
	}{{e.Done, done}, {e.Failed, failed}, {e.Skipped, skipped}} {
		list, err := of.tasks.list(MostTasks)
		all = errors.Join(all, err)
		for _, index := range list {
			r.ended(place[index], of.phase)
		}
	}
	for i := range r.tasks {
		r.tasks[i].failed = e.Counted[r.tasks[i].Index]
		r.tasks[i].outside = r.tasks[i].outside && !e.Begun
	}
	return all
}

// progress is what was done, for a new history.
func (r *chunkJob) progress() *progress {
	p := &progress{Failures: r.failures, Before: r.before, Begun: true, Outside: r.outside, Counted: map[int]int{}}
	lists := map[phase][]int{}
	for i := range r.tasks {
		t := &r.tasks[i]
		lists[t.phase] = append(lists[t.phase], t.Index)
		if t.failed > 0 {
			p.Counted[t.Index] = t.failed
		}
		p.Begun = p.Begun && !t.outside
	}
	p.Done, p.Failed, p.Skipped = indicesOf(lists[done]), indicesOf(lists[failed]), indicesOf(lists[skipped])
	return p
}

// listen takes in what the job says.
func (r *chunkJob) listen(ctx workflow.Context) {
	r.newest.AddReceive(workflow.GetSignalChannel(ctx, orderSignal), func(c workflow.ReceiveChannel, _ bool) {
		r.orders = orders{}
		c.Receive(ctx, &r.orders)
		r.settled = false
	})
	r.newest.AddReceive(workflow.GetSignalChannel(ctx, beforeSignal), func(c workflow.ReceiveChannel, _ bool) {
		var lost Indices
		c.Receive(ctx, &lost)
		r.begin(lost)
	})
	canceled, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		set.SetValue(nil)
	})
	r.newest.AddFuture(canceled, func(workflow.Future) {})
}

// begin takes in that chunks which this one waited for have ended, and which of their tasks have failed.
func (r *chunkJob) begin(lost Indices) {
	_ = r.loseOutside(lost) // as the job wrote it
	for i := range r.tasks {
		if t := &r.tasks[i]; t.outside {
			t.outside = false
			r.skip(i)
		}
	}
}

func (r *chunkJob) loseOutside(lost Indices) error {
	r.outside = lost
	return lost.each(func(first, last int) {
		for i := first; i <= last; i++ {
			r.gone[i] = true
		}
	})
}

// carryOut queues what may be, and takes back what may not.
func (r *chunkJob) carryOut(ctx workflow.Context) {
	if ctx.Err() != nil {
		return // activities end with it
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		if queue, _ := r.place(t); r.orders.Paused ||
			queue != t.queue { // it moves to other machines, also where it runs
			r.takeBack(i)
		}
	}
	r.settle(ctx)
	for _, i := range r.order {
		if r.orders.Paused || r.isHalted() || r.orders.Hold || r.orders.Max > 0 && r.queued >= r.orders.Max {
			break
		}
		if t := &r.tasks[i]; t.phase == waiting && t.missing == 0 && !t.outside && !r.isGated(t) {
			r.queue(ctx, i)
		}
	}
}

func (r *chunkJob) isGated(t *taskRun) bool { return t.Gated && !r.orders.Inspected }

func (r *chunkJob) isHalted() bool { return r.halted || r.orders.Halted }

// place is where a task is to be queued, and with which priority.
func (r *chunkJob) place(t *taskRun) (queue string, key int) {
	pool, priority := t.Pool, t.Priority
	if r.orders.Pool != "" {
		pool = r.orders.Pool
	}
	if r.orders.Priority != "" {
		priority = r.orders.Priority
	}
	return flow.Queue(pool, t.Class), flow.PriorityKey(priority)
}

// excess is how many tasks more are queued than may be.
func (r *chunkJob) excess() (n int) {
	for i := range r.tasks {
		if t := &r.tasks[i]; t.phase == queued && !t.stopped {
			n++
		}
	}
	switch {
	case r.isHalted() || r.orders.Hold:
		return n
	case r.orders.Max > 0:
		return n - r.orders.Max
	}
	return 0
}

// isStale says that a task is queued with another priority than it should have.
func (r *chunkJob) isStale(t *taskRun) bool {
	_, key := r.place(t)
	return t.phase == queued && !t.stopped && key != t.key
}

// settle takes back tasks that should not be queued, or not like that, after orders have changed. Those that a worker
// has begun go on: which these are only the server knows.
func (r *chunkJob) settle(ctx workflow.Context) {
	if r.settled || r.asking {
		return
	}
	r.settled = true
	if r.excess() <= 0 && !slices.ContainsFunc(r.tasks, func(t taskRun) bool { return r.isStale(&t) }) {
		return
	}
	r.asking = true
	ask := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: workflow.GetInfo(ctx).TaskQueueName,
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3}})
	r.newest.AddFuture(workflow.ExecuteActivity(ask, runningType), func(f workflow.Future) {
		var running []string
		r.asking = false
		if f.Get(ctx, &running) != nil {
			return // tasks stay where they are
		}
		for _, i := range slices.Backward(r.order) {
			t := &r.tasks[i]
			if !slices.Contains(running, flow.ActivityID(t.Index, t.begun)) && (r.isStale(t) || r.excess() > 0) {
				r.takeBack(i)
			}
		}
	})
}

// queue queues a task.
func (r *chunkJob) queue(ctx workflow.Context, i int) {
	t := &r.tasks[i]
	t.begun++
	t.phase, t.stopped = queued, false
	t.queue, t.key = r.place(t)
	r.queued++
	own, stop := workflow.WithCancel(ctx)
	t.stop = stop
	own = workflow.WithActivityOptions(own, workflow.ActivityOptions{
		TaskQueue: t.queue, ActivityID: flow.ActivityID(t.Index, t.begun), Summary: t.Name,
		// Temporal wants a bound. The document's own is the worker's to keep.
		StartToCloseTimeout: 10 * 365 * 24 * time.Hour,
		HeartbeatTimeout:    r.in.Heartbeat, WaitForCancellation: true, DisableEagerExecution: true,
		Priority: temporal.Priority{PriorityKey: t.key, FairnessKey: r.owner},
		// Workers say when a task is tried again, and when no more. This is for those that fall silent.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1},
	})
	input := flow.TaskInput{Version: flow.Version, Document: r.in.Document, Index: t.Index, Task: t.Name, Hash: t.Hash,
		Failed: t.failed, Gather: t.Needs.has(r.gone, true)}
	r.newest.AddFuture(workflow.ExecuteActivity(own, flow.TaskType, input), func(f workflow.Future) {
		r.queued--
		r.take(ctx, i, f.Get(ctx, nil))
	})
}

// takeBack ends a task that is queued or runs. It saves, and is queued again once it may.
func (r *chunkJob) takeBack(i int) {
	if t := &r.tasks[i]; t.phase == queued && !t.stopped {
		t.stopped = true
		t.stop()
	}
}

// take takes in the end of an activity.
func (r *chunkJob) take(ctx workflow.Context, i int, err error) {
	t := &r.tasks[i]
	if err == nil {
		r.ended(i, done)
		return
	}
	var canceled *temporal.CanceledError
	text, hint, final := failureOf(err)
	if errors.As(err, &canceled) || t.stopped && !final {
		t.phase = waiting
		if canceled != nil && canceled.HasDetails() {
			_ = canceled.Details(&t.failed) // an attempt that nobody began has none
		}
		return
	}
	if len(r.failures) < flow.MostFailures {
		r.failures = append(r.failures, flow.Failure{Index: t.Index, Task: t.Name, Error: text, Hint: hint})
	}
	r.lose(i, failed)
	if !r.in.KeepGoing && !r.halted {
		r.halted, r.settled = true, false
		if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; parent != nil {
			workflow.SignalExternalWorkflow(ctx, parent.ID, parent.RunID, haltSignal, nil)
		}
	}
}

// ended notes how a task has ended.
func (r *chunkJob) ended(i int, how phase) {
	t := &r.tasks[i]
	t.phase = how
	if how != done {
		r.lost = append(r.lost, t.Index)
		r.gone[t.Index] = true
	}
	for _, next := range t.next {
		r.tasks[next].missing--
	}
}

// lose notes that a task has failed or was skipped. Those that need it and cannot do without it are skipped.
func (r *chunkJob) lose(i int, how phase) {
	r.ended(i, how)
	for _, next := range r.tasks[i].next {
		r.skip(next)
	}
}

// skip skips a task that cannot do without what is lost. One that has results already keeps them.
func (r *chunkJob) skip(i int) {
	if t := &r.tasks[i]; t.phase == waiting && !t.without(r.gone) {
		r.lose(i, skipped)
	}
}

// state is how far the chunk is.
func (r *chunkJob) state() flow.State {
	s := flow.State{Settings: r.orders.Settings, Halted: r.isHalted(), Tasks: len(r.tasks), Before: r.before,
		Failures: r.failures}
	if len(r.tasks) == 0 { // they are not known yet
		s.Tasks, s.Waiting = r.in.Count, r.in.Count
	}
	for i := range r.tasks {
		switch t := &r.tasks[i]; t.phase {
		case waiting:
			s.Waiting++
			if t.missing == 0 && !t.outside && r.isGated(t) {
				s.Gated++
			}
		case queued:
			s.Queued++
		case done:
			s.Done++
		case failed:
			s.Failed++
		case skipped:
			s.Skipped++
		}
	}
	return s
}
