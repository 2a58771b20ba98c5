package flows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"vksplat/farm/flow"
)

// FailedType is the type of the error that a job ends with when tasks have failed.
const FailedType = "tasks failed"

// jobRun is a job that runs.
type jobRun struct {
	settings flow.Settings
	halted   bool
	outline  Outline
	chunks   []chunkRun // as in the outline
	sum      flow.State // of chunks that have ended
	err      error      // of a chunk that did not come to its end
}

// chunkRun is a chunk as its job sees it.
type chunkRun struct {
	future workflow.ChildWorkflowFuture // nil: it has not begun
	ended  bool
	lost   []int  // tasks that failed or were skipped, once it has ended
	told   orders // last
	begun  bool   // it was told that what it waited for has ended
}

// job runs all tasks of a document. Its id says whose it is.
func job(ctx workflow.Context, in flow.JobInput) (*flow.State, error) {
	r := &jobRun{settings: in.Settings}
	state := func() (flow.State, error) { return r.state(), nil }
	if err := workflow.SetQueryHandler(ctx, flow.StateQuery, state); err != nil {
		return nil, err
	}
	if err := workflow.ExecuteActivity(ownActivity(ctx), outlineType, in.Document).Get(ctx, &r.outline); err != nil {
		return nil, cmpErr(ctx, err)
	}
	selector := workflow.NewSelector(ctx)
	r.listen(ctx, selector)
	r.chunks = make([]chunkRun, len(r.outline.Chunks))
	for r.goOn(ctx, selector, &in) {
		selector.Select(ctx)
		for selector.HasPending() {
			selector.Select(ctx)
		}
	}
	return r.end(ctx)
}

// goOn begins chunks that may begin, tells those that run what has changed, and says whether there is something to wait
// for.
func (r *jobRun) goOn(ctx workflow.Context, selector workflow.Selector, in *flow.JobInput) bool {
	mayBegin := ctx.Err() == nil && !r.halted
	if mayBegin {
		r.startNext(ctx, selector, in)
	}
	if ctx.Err() == nil {
		r.tell(ctx)
	}
	return slices.ContainsFunc(r.chunks, func(c chunkRun) bool { return !c.ended && (c.future != nil || mayBegin) })
}

// startNext begins the chunks that may run, in their order, while one of their lanes has room. What a chunk needs comes
// before it, so that of two which have a lane in common the one that waits for the other is never the first. Outlines
// of earlier servers have no window: all begin.
func (r *jobRun) startNext(ctx workflow.Context, selector workflow.Selector, in *flow.JobInput) {
	running := map[int]int{} // chunks by lane
	for k := range r.chunks {
		lanes := r.outline.Chunks[k].Lanes
		hasRoom := func(lane int) bool { return running[lane] < r.outline.Window }
		switch c := &r.chunks[k]; {
		case c.ended:
			continue
		case c.future == nil && r.outline.Window > 0 && !slices.ContainsFunc(lanes, hasRoom):
			continue
		case c.future == nil:
			r.start(ctx, selector, in, k)
		}
		for _, lane := range lanes {
			running[lane]++
		}
	}
}

// ownActivity are options of activities that the server does itself. One that is started again has lost those that it
// was at, which say that they live.
func ownActivity(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: workflow.GetInfo(ctx).TaskQueueName,
		StartToCloseTimeout: 10 * time.Minute, HeartbeatTimeout: DefaultHeartbeat,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2,
			MaximumInterval: time.Minute}})
}

// cmpErr is the error that a workflow ends with: that it was canceled, where it was.
func cmpErr(ctx workflow.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// listen takes in what users and chunks say.
func (r *jobRun) listen(ctx workflow.Context, selector workflow.Selector) {
	selector.AddReceive(workflow.GetSignalChannel(ctx, flow.SetSignal), func(c workflow.ReceiveChannel, _ bool) {
		var change flow.Change
		c.Receive(ctx, &change)
		r.settings = r.settings.With(&change)
	})
	selector.AddReceive(workflow.GetSignalChannel(ctx, haltSignal), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		r.halted = true
	})
}

// start begins a chunk.
func (r *jobRun) start(ctx workflow.Context, selector workflow.Selector, in *flow.JobInput, k int) {
	c := &r.chunks[k]
	c.told = r.orders(k)
	input := chunkInput{Document: in.Document, Span: r.outline.Chunks[k], Orders: c.told,
		KeepGoing: r.outline.KeepGoing, Heartbeat: r.outline.Heartbeat}
	c.future = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:          flow.ChunkID(workflow.GetInfo(ctx).WorkflowExecution.ID, k),
		WaitForCancellation: true, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	}), chunkType, input)
	selector.AddFuture(c.future, func(f workflow.Future) {
		var o outcome
		err := f.Get(ctx, &o)
		c.ended = true
		if err != nil {
			// what it did not tell has not come to its end
			o.State, o.Lost = flow.State{Tasks: input.Count, Waiting: input.Count}, input.Tasks
			if r.err == nil {
				r.err = err
			}
		}
		c.lost, _ = o.Lost.list(MostTasks) // as the chunk wrote it
		slices.Sort(c.lost)
		r.sum.Add(&o.State)
	})
}

// orders are what a chunk is to do now. With a bound on tasks one chunk has its turn at a time.
func (r *jobRun) orders(k int) orders {
	o := orders{Settings: r.settings, Halted: r.halted}
	if r.settings.Max > 0 {
		o.Hold = k != slices.IndexFunc(r.chunks, func(c chunkRun) bool { return !c.ended })
	}
	return o
}

// tell tells chunks what has changed for them.
func (r *jobRun) tell(ctx workflow.Context) {
	for k := range r.chunks {
		c := &r.chunks[k]
		if c.ended || c.future == nil {
			continue
		}
		// Signals wait until a chunk runs. One that has just ended needs none.
		if o := r.orders(k); o != c.told {
			c.told = o
			c.future.SignalChildWorkflow(ctx, orderSignal, o)
		}
		needs := r.outline.Chunks[k].Needs
		if c.begun || len(needs) == 0 || slices.ContainsFunc(needs, func(n int) bool { return !r.chunks[n].ended }) {
			continue
		}
		c.begun = true
		var lost []int
		for _, n := range needs {
			lost = append(lost, r.chunks[n].lost...)
		}
		slices.Sort(lost)
		c.future.SignalChildWorkflow(ctx, beforeSignal, indicesOf(lost))
	}
}

// state is how far the job is. Chunks that run are asked for theirs.
func (r *jobRun) state() flow.State {
	s := r.sum
	s.Settings, s.Halted = r.settings, r.halted
	for k := range r.outline.Chunks {
		s.Tasks += r.outline.Chunks[k].Count
		if k < len(r.chunks) && r.chunks[k].future != nil && !r.chunks[k].ended {
			s.Chunks = append(s.Chunks, k)
		}
	}
	return s
}

// mostNamed is how many tasks an error names.
const mostNamed = 5

// end says how the job ended.
func (r *jobRun) end(ctx workflow.Context) (*flow.State, error) {
	s := r.state()
	switch {
	case ctx.Err() != nil:
		return nil, temporal.NewCanceledError(s)
	case r.err != nil:
		return nil, r.err
	case s.Failed > 0:
		var names []string
		for _, f := range s.Failures[:min(len(s.Failures), mostNamed)] {
			names = append(names, f.Task)
		}
		if s.Failed > len(names) {
			names = append(names, "...")
		}
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("%d of %d tasks failed: %s", s.Failed, s.Tasks,
			strings.Join(names, ", ")), FailedType, nil, s)
	}
	return &s, nil
}

// failureOf takes apart how an activity ended that did not succeed.
func failureOf(err error) (text, hint string, final bool) {
	var app *temporal.ApplicationError
	text = err.Error()
	if errors.As(err, &app) {
		text, final = app.Message(), app.NonRetryable()
		if app.HasDetails() {
			_ = app.Details(&hint) // there may be none
		}
	}
	return short(text), short(hint), final
}

// short bounds a text.
func short(s string) string {
	if len(s) > mostText {
		s = strings.ToValidUTF8(s[:mostText], "") + "..."
	}
	return s
}
