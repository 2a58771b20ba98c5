package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// Options say which tasks a worker takes, and with what it does them.
type Options struct {
	Client    client.Client
	Namespace string
	Pools     []string

	Devices []task.Device
	Others  int                  // tasks without a device that run at a time
	Lacks   map[*spec.Kind]error // kinds of tasks that this machine cannot do, and why

	Roots    store.Roots
	Work     string // folder on the local disk for what is in the making
	Locks    string // folder of the locks of devices, which all runs of this machine share
	CacheMax int64  // bytes of inputs that stay in Work, 0: all

	Program string // this program's file
	Version string // and version

	Flows *flow.Expander // of a worker that also runs the workflows, where no server of ours does; nil: it does not

	Note func(text string) // of what people should know, from any goroutine
}

// worker is this machine at a farm.
type worker struct {
	Options
	do        func(context.Context, task.Options) (*store.Manifest, error)
	documents *flow.Documents
	host      string

	stopping context.Context // ends when tasks are to save
	running  sync.WaitGroup
	alone    sync.Mutex               // guards what follows
	at       map[string]chan struct{} // tasks that run here; closed when they have ended
	away     string                   // why the farm does not answer, as was said; "": it does
}

// place is where tasks run: a device, or those without one.
type place struct {
	*worker
	slots  *slots
	device *task.Device // nil: none

	mutex    sync.Mutex
	failures int // that may be this machine's fault, in a row
	lost     int // likewise, losses of the device
}

// Run takes tasks until ctx ends. Then those that run save, and others go on with them.
func Run(ctx context.Context, o Options) error { return run(ctx, o, task.Run) }

func run(ctx context.Context, o Options, do func(context.Context, task.Options) (*store.Manifest, error)) error {
	stopping, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	w := &worker{Options: o, do: do, documents: &flow.Documents{Roots: o.Roots}, stopping: stopping,
		at: map[string]chan struct{}{}}
	if w.host, _ = os.Hostname(); w.host == "" { // it is for people
		w.host = "worker"
	}
	if err := os.MkdirAll(o.Locks, 0o777); err != nil {
		return &fault.Error{Op: "lock devices", Path: o.Locks, Err: err,
			Hint: "make room there, and give write permission", Kind: fault.ErrTryAgain}
	}
	places := w.places()
	if len(places) == 0 && o.Flows == nil {
		return fault.Usagef("give devices, or tasks beside them", "this worker has no place for any task")
	}
	workers, err := w.join(places)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(context.Background())
	defer end()
	for _, p := range places {
		go p.slots.serve(serving)
	}
	<-ctx.Done()
	for _, p := range places {
		p.slots.close()
	}
	stop(task.ErrStopped)
	w.running.Wait() // tasks have saved, and say so
	var group sync.WaitGroup
	for _, one := range workers {
		group.Go(one.Stop)
	}
	group.Wait()
	return nil
}

// places makes the places of this machine.
func (w *worker) places() (list []*place) {
	for i := range w.Devices {
		d := &w.Devices[i]
		p := &place{worker: w, device: d, slots: newSlots(1)}
		lock := local.LockFile(w.Locks, d)
		p.slots.ready = func() (func(), bool) {
			unlock, err := store.TryLock(lock)
			if errors.Is(err, store.ErrLocked) {
				return func() {}, false
			}
			if err != nil { // there are no locks: it goes on without
				return func() {}, true
			}
			return unlock, true
		}
		list = append(list, p)
	}
	if w.Others > 0 {
		list = append(list, &place{worker: w, slots: newSlots(w.Others)})
	}
	return list
}

// classes are those of the tasks that the place takes.
func (p *place) classes() []string {
	if p.device != nil {
		return flow.ClassesOf(p.device)
	}
	return flow.ClassesWithout(p.Lacks)
}

// stopTimeout is how long the SDK waits at the end for answers of tasks that have ended.
const stopTimeout = 30 * time.Second

// throttle is the longest time between two heartbeats: pauses and cancels come with their answers.
const throttle = 5 * time.Second

// join starts a worker of the SDK for each queue.
func (w *worker) join(places []*place) (workers []sdk.Worker, err error) {
	begin := func(one sdk.Worker) error {
		if err := one.Start(); err != nil {
			return fmt.Errorf("join farm: %w", err)
		}
		workers = append(workers, one)
		return nil
	}
	fixed, err := sdk.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		p.slots.backlog = w.backlog
		tuner, err := sdk.NewCompositeTuner(sdk.CompositeTunerOptions{WorkflowSlotSupplier: fixed,
			ActivitySlotSupplier: p.slots, LocalActivitySlotSupplier: fixed, NexusSlotSupplier: fixed,
			SessionActivitySlotSupplier: fixed})
		if err != nil {
			return nil, err
		}
		for _, pool := range w.Pools {
			for _, class := range p.classes() {
				one := sdk.New(w.Client, flow.Queue(pool, class), sdk.Options{Tuner: tuner, DisableWorkflowWorker: true,
					MaxConcurrentActivityTaskPollers: 1, WorkerStopTimeout: stopTimeout,
					MaxHeartbeatThrottleInterval: throttle, DefaultHeartbeatThrottleInterval: throttle})
				one.RegisterActivityWithOptions(p.perform, activity.RegisterOptions{Name: flow.TaskType})
				if err := begin(one); err != nil {
					return workers, err
				}
			}
		}
	}
	if w.Flows != nil {
		one := sdk.New(w.Client, flow.FlowQueue, sdk.Options{WorkerStopTimeout: stopTimeout})
		flow.Register(one, w.Flows)
		err = begin(one)
	}
	return workers, err
}

// backlog asks the server how urgent the first task of each queue is.
func (w *worker) backlog(ctx context.Context, queues []string) ([]int, error) {
	urgency, errs := make([]int, len(queues)), make([]error, len(queues))
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for i, queue := range queues {
		group.Go(func() {
			r, err := w.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
				Namespace: w.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
				TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true})
			if err != nil {
				errs[i] = err
				return
			}
			for key, stats := range r.GetStatsByPriorityKey() {
				if stats.GetApproximateBacklogCount() > 0 && (urgency[i] == 0 || int(key) < urgency[i]) {
					urgency[i] = int(key)
				}
			}
		})
	}
	group.Wait()
	at := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if at < 0 {
		w.hear(nil)
		return urgency, nil
	}
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	// of somebody else's cluster; or the pass was revoked
	if errors.As(errs[at], &unknown) || errors.As(errs[at], &denied) {
		w.hear(errs[at])
		return nil, errBlind
	}
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		w.hear(errs[at])
	}
	return nil, errs[at]
}

// hear takes in whether the farm answers, and says so where that has changed, or where it turns out that waiting does
// not help.
func (w *worker) hear(err error) {
	now, lasting := "", false
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &denied):
		now, lasting = "the farm refuses this machine: "+cmp.Or(denied.Reason, denied.Message), true
	case err != nil && flow.NeedsPass(err):
		now, lasting = "the farm refuses this machine: "+flow.Away(err)+"; join it again, then start the worker again", true
	case err != nil:
		now = "the farm does not answer; tasks that run go on: " + flow.Away(err)
	}
	w.alone.Lock()
	before := w.away
	w.away = now
	w.alone.Unlock()
	switch {
	case now == "" && before != "":
		w.say("the farm answers again")
	case now != "" && (before == "" || lasting && now != before):
		w.say(now)
	}
}

// holds has one attempt at a task at a time here: one that the server has given up may still be saving.
func (w *worker) holds(ctx context.Context, key string) (release func(), ok bool) {
	for {
		w.alone.Lock()
		before := w.at[key]
		if before == nil {
			done := make(chan struct{})
			w.at[key] = done
			w.alone.Unlock()
			return func() {
				w.alone.Lock()
				defer w.alone.Unlock()
				delete(w.at, key)
				close(done)
			}, true
		}
		w.alone.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, false
		}
	}
}
