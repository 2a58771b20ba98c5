package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"vksplat/farm/flow"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/wire"
	"vksplat/farm/wire/wiretest"
	must "vksplat/internal/musttest"
)

type (
	polling   = workflowservice.PollActivityTaskQueueRequest
	given     = workflowservice.PollActivityTaskQueueResponse
	beating   = workflowservice.RecordActivityTaskHeartbeatRequest
	heard     = workflowservice.RecordActivityTaskHeartbeatResponse
	asking    = workflowservice.DescribeTaskQueueRequest
	asked     = workflowservice.DescribeTaskQueueResponse
	completed = workflowservice.RespondActivityTaskCompletedRequest
	failed    = workflowservice.RespondActivityTaskFailedRequest
	stopped   = workflowservice.RespondActivityTaskCanceledRequest
)

// farm is a server with tasks, whose workers' words it keeps.
type farm struct {
	*wiretest.Server
	t       *testing.T
	roots   store.Roots
	in      flow.TaskInput
	pollFor time.Duration // without a task
	beat    time.Duration // that a worker may be silent
	since   string        // of the server's header, "" without it
	reply   func(token string, n int) (*heard, error)
	unknown string       // begins classes that the server does not know, "": none
	refuse  func() error // an answer to a poll or report in place of the usual one

	mutex  sync.Mutex
	queues map[string][]*given
	polls  map[string]int // that gave nothing
	beats  map[string][]Beat
	ends   map[string][]any // what was said of the end of a task, by its token
}

const document = "version = 1\nname = \"j\"\nretry.max_attempts = 3\nretry.backoff = \"7s\"\n[[task]]\nkind = \"train\"\n" +
	"id = \"a\"\nsource = \"x\"\nlimits.vram_min_mb = 4000\n"

func newFarm(t *testing.T) *farm {
	t.Helper()
	f := &farm{t: t, roots: store.Roots{}, pollFor: 200 * time.Millisecond, queues: map[string][]*given{},
		polls: map[string]int{}, beats: map[string][]Beat{}, ends: map[string][]any{}}
	f.reply = func(string, int) (*heard, error) { return &heard{}, nil }
	f.refuse = func() error { return nil }
	for _, name := range []string{"inputs", "outputs"} {
		dir := filepath.Join(t.TempDir(), name)
		must.Do(t, os.Mkdir(dir, 0o777))
		f.roots[name] = store.Options{URL: dir}
	}
	job, plan := spectest.Job(t, document)
	d := must.Get(flow.Put(t.Context(), f.roots, job, "anna"))(t)
	f.in = flow.TaskInput{Version: flow.Version, Document: d, Task: "a", Hash: plan.Hash(0)}
	f.Server = wiretest.Start(t)
	f.handle()
	return f
}

func (f *farm) handle() {
	wiretest.Handle(f.Server, func(ctx context.Context, r *polling) (*given, error) {
		if err := f.refuse(); err != nil {
			return nil, err
		}
		return f.poll(ctx, r.GetTaskQueue().GetName()), nil
	})
	wiretest.Handle(f.Server, func(_ context.Context, r *asking) (*asked, error) {
		queue := r.GetTaskQueue().GetName()
		if f.unknown != "" && strings.Contains(queue, "/"+f.unknown) {
			return nil, serviceerror.NewPermissionDenied("not one of one", "")
		}
		f.mutex.Lock()
		defer f.mutex.Unlock()
		n := int64(len(f.queues[queue]))
		return &asked{StatsByPriorityKey: map[int32]*taskqueuepb.TaskQueueStats{3: {ApproximateBacklogCount: n}}}, nil
	})
	wiretest.Handle(f.Server, func(ctx context.Context, r *beating) (*heard, error) {
		if f.since != "" {
			if err := grpc.SetHeader(ctx, metadata.Pairs(flow.SinceHeader, f.since)); err != nil {
				f.t.Error(err)
			}
		}
		token := string(r.GetTaskToken())
		f.mutex.Lock()
		f.beats[token] = append(f.beats[token], f.read(r.GetDetails()))
		n := len(f.beats[token])
		f.mutex.Unlock()
		return f.reply(token, n)
	})
	wiretest.Handle(f.Server, func(_ context.Context, r *completed) (
		*workflowservice.RespondActivityTaskCompletedResponse, error) {
		return nil2[workflowservice.RespondActivityTaskCompletedResponse](f.end(r.GetTaskToken(), r))
	})
	wiretest.Handle(f.Server, func(_ context.Context, r *failed) (
		*workflowservice.RespondActivityTaskFailedResponse, error) {
		return nil2[workflowservice.RespondActivityTaskFailedResponse](f.end(r.GetTaskToken(), r))
	})
	wiretest.Handle(f.Server, func(_ context.Context, r *stopped) (
		*workflowservice.RespondActivityTaskCanceledResponse, error) {
		return nil2[workflowservice.RespondActivityTaskCanceledResponse](f.end(r.GetTaskToken(), r))
	})
}

func nil2[T any](err error) (*T, error) { return new(T), err }

// poll gives a task, as soon as there is one.
func (f *farm) poll(ctx context.Context, queue string) *given {
	for until := time.Now().Add(f.pollFor); ; time.Sleep(time.Millisecond) {
		f.mutex.Lock()
		if list := f.queues[queue]; len(list) > 0 {
			f.queues[queue] = list[1:]
			f.mutex.Unlock()
			return list[0]
		}
		if ctx.Err() != nil || time.Now().After(until) {
			f.polls[queue]++
			f.mutex.Unlock()
			return &given{}
		}
		f.mutex.Unlock()
	}
}

// end notes an answer.
func (f *farm) end(token []byte, what any) error {
	if err := f.refuse(); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ends[string(token)] = append(f.ends[string(token)], what)
	return nil
}

// read takes in what a heartbeat says.
func (f *farm) read(p *commonpb.Payloads) (b Beat) {
	if len(p.GetPayloads()) != 1 || json.Unmarshal(p.GetPayloads()[0].GetData(), &b) != nil {
		f.t.Errorf("a heartbeat says %v", p)
	}
	return b
}

func payloads(value any) *commonpb.Payloads {
	data, _ := json.Marshal(value) // JSON can say it
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}}}
}

// task makes one with a token.
func (f *farm) task(token string, before *Beat) *given {
	g := &given{TaskToken: []byte(token), ActivityType: &commonpb.ActivityType{Name: flow.TaskType},
		Input: payloads(f.in)}
	if f.beat > 0 {
		g.HeartbeatTimeout = durationpb.New(f.beat)
	}
	if before != nil {
		g.HeartbeatDetails = payloads(before)
	}
	return g
}

// add queues tasks of a class, whose tokens are its name and a number.
func (f *farm) add(class string, n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	queue := flow.Queue("any", class)
	for i := range n {
		f.queues[queue] = append(f.queues[queue], f.task(fmt.Sprint(class, i), nil))
	}
}

// ended is what was said of the end of a task.
func (f *farm) ended(token string) []any {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.ends[token])
}

// until waits for something.
func (f *farm) until(what string, is func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("it does not come to pass: %s", what)
		}
	}
}

// work has a worker take the farm's tasks, until stop is called, which waits for its end.
func (f *farm) work(o Options, do func(ctx context.Context, o task.Options) error) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	o.Conn, o.Pools, o.Roots = wire.Open(f.Address, "splats", nil), []string{"any"}, f.roots
	o.Locks = filepath.Join(f.t.TempDir(), "locks")
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, o, func(ctx context.Context, o task.Options) (*store.Manifest, error) {
			return nil, do(ctx, o)
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				f.t.Error(err)
			}
		case <-time.After(20 * time.Second):
			f.t.Error("the worker does not stop")
		}
	})
	f.t.Cleanup(stop)
	return stop
}

// card is a device for the tasks of these tests.
func card(name string) task.Device { return task.Device{Name: name, UUID: name, MemoryBytes: 8 << 30} }

// own is a failure as a worker says it.
type own struct {
	text  string
	final bool
	delay time.Duration
	last  Beat
}

// failureOf reads an answer that is a failure.
func (f *farm) failureOf(answer any) (o own, is bool) {
	r, is := answer.(*failed)
	if !is {
		return o, false
	}
	a := r.GetFailure().GetApplicationFailureInfo()
	if a == nil || a.GetType() != failureType {
		f.t.Errorf("a failure that is none of a task: %v", r)
	}
	return own{r.GetFailure().GetMessage(), a.GetNonRetryable(), a.GetNextRetryDelay().AsDuration(),
		f.read(r.GetLastHeartbeatDetails())}, true
}
