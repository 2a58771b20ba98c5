package flows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"vksplat/farm/flow"
	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// rig runs a job with the SDK's simulated server. Tasks only pretend.
type rig struct {
	testsuite.WorkflowTestSuite
	t        *testing.T
	env      *testsuite.TestWorkflowEnvironment
	e        *Expander
	job      *spec.Job
	plan     *spec.Plan
	root     store.Root
	document flow.Document
	do       func(ctx context.Context, in flow.TaskInput) error // of a task; nil: it succeeds

	lock    sync.Mutex
	began   []string        // names of tasks, in the order in which they began
	queues  map[string]bool // in which they were
	running map[string]bool // ids of activities
	most    int             // that ran at a time
	asked   []asked
	back    int // activities that were taken back
}

const owner = "anna"

func newRig(t *testing.T, doc string) *rig {
	t.Helper()
	r := &rig{t: t, queues: map[string]bool{}, running: map[string]bool{}}
	r.job, r.plan = spectest.Job(t, "version = 1\nname = \"j\"\n"+doc)
	dir := t.TempDir()
	for _, name := range []string{"outputs", "inputs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	roots := store.Roots{"outputs": {URL: filepath.Join(dir, "outputs")}, "inputs": {URL: filepath.Join(dir, "inputs")}}
	var err error
	if r.root, err = roots.Open("outputs"); err != nil {
		t.Fatal(err)
	}
	if r.document, err = flow.Put(t.Context(), roots, r.job, owner); err != nil {
		t.Fatal(err)
	}
	r.e = &Expander{Roots: roots}
	r.begin()
	return r
}

// begin makes a new server for another run of the job.
func (r *rig) begin() {
	r.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r.env = r.NewTestWorkflowEnvironment()
	r.env.SetTestTimeout(30 * time.Second)
	r.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute,
		Interceptors: []interceptor.WorkerInterceptor{&listener{r: r}}})
	r.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: flow.JobID(owner, r.job.Name),
		TaskQueue: flow.FlowQueue})
	r.env.RegisterWorkflowWithOptions(job, workflow.RegisterOptions{Name: flow.JobType})
	r.env.RegisterWorkflowWithOptions(chunk, workflow.RegisterOptions{Name: chunkType})
	for name, f := range map[string]any{outlineType: r.e.outline, expandType: r.e.expand, runningType: r.runs,
		flow.TaskType: r.perform} {
		r.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	r.env.SetOnActivityCanceledListener(func(*activity.Info) {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.back++
	})
	r.began, r.asked = nil, nil
}

// asked is a task as the workflow wants it to be queued: the simulated server keeps no priorities.
type asked struct{ task, at string }

// listener notes how tasks are queued.
type listener struct {
	interceptor.WorkerInterceptorBase
	r *rig
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	r *rig
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *rig
}

func (l *listener) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &inbound{r: l.r}
	i.Next = next
	return i
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{r: i.r}
	o.Next = next
	return i.Next.Init(o)
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == flow.TaskType {
		a := workflow.GetActivityOptions(ctx)
		o.r.lock.Lock()
		o.r.asked = append(o.r.asked, asked{args[0].(flow.TaskInput).Task, fmt.Sprint(a.TaskQueue, " ",
			a.Priority.PriorityKey,
			" ", a.Priority.FairnessKey)})
		o.r.lock.Unlock()
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// runs is the activity running.
func (r *rig) runs(context.Context) (ids []string, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for id := range r.running {
		ids = append(ids, id)
	}
	return ids, nil
}

// perform is a worker's activity.
func (r *rig) perform(ctx context.Context, in flow.TaskInput) error {
	info := activity.GetInfo(ctx)
	r.lock.Lock()
	r.began = append(r.began, in.Task)
	r.queues[info.TaskQueue] = true
	r.running[info.ActivityID] = true
	r.most = max(r.most, len(r.running))
	do := r.do
	r.lock.Unlock()
	defer func() {
		r.lock.Lock()
		defer r.lock.Unlock()
		delete(r.running, info.ActivityID)
	}()
	if in.Version != flow.Version || in.Document != r.document || in.Hash != r.plan.Hash(in.Index) ||
		in.Task != r.plan.Tasks[in.Index].Name {
		r.t.Errorf("a worker got %+v", in)
	}
	if do != nil {
		return do(ctx, in)
	}
	return nil
}

// commit puts results of a task into the store, which lack those of others.
func (r *rig) commit(in flow.TaskInput, missing ...string) error {
	dir := r.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(in.Task), 0o666); err != nil {
		return err
	}
	open, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer open.Close() // only read
	_, _, err = store.Commit(r.t.Context(), r.root, task.KeyOf(r.job, &r.plan.Tasks[in.Index]), open, []string{"f"},
		store.Made{Job: r.job.Name, Task: in.Task, Hash: in.Hash, Missing: missing})
	return err
}

// run runs the job to its end.
func (r *rig) run(settings flow.Settings) (*flow.State, error) {
	r.t.Helper()
	r.env.ExecuteWorkflow(flow.JobType, flow.JobInput{Document: r.document, Settings: settings})
	if !r.env.IsWorkflowCompleted() {
		r.t.Fatal("the job has no end")
	}
	err := r.env.GetWorkflowError()
	s := &flow.State{}
	var app *temporal.ApplicationError
	var canceled *temporal.CanceledError
	switch {
	case err == nil:
		err := r.env.GetWorkflowResult(s)
		if err != nil {
			r.t.Fatal(err)
		}
	case errors.As(err, &canceled):
		_ = canceled.Details(s)
	case errors.As(err, &app) && app.Type() == FailedType:
		_ = app.Details(s)
	}
	return s, err
}

func (r *rig) want(s *flow.State, done, failed, skipped, waiting int) {
	r.t.Helper()
	if s.Done != done || s.Failed != failed || s.Skipped != skipped || s.Waiting != waiting || s.Queued != 0 ||
		s.Tasks != len(r.plan.Tasks) {
		r.t.Errorf("%+v, want %d done, %d failed, %d skipped, %d waiting of %d", s, done, failed, skipped, waiting,
			len(r.plan.Tasks))
	}
}

// final is an error of a worker that nothing helps against.
func final(text string) error {
	return temporal.NewApplicationErrorWithOptions(text, "task",
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{"look there"}})
}
