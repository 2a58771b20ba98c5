package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/wire/wiretest"
	"vksplat/farm/worker"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

type (
	starting   = workflowservice.StartWorkflowExecutionRequest
	started    = workflowservice.StartWorkflowExecutionResponse
	describing = workflowservice.DescribeWorkflowExecutionRequest
	described  = workflowservice.DescribeWorkflowExecutionResponse
	querying   = workflowservice.QueryWorkflowRequest
	queried    = workflowservice.QueryWorkflowResponse
	signaling  = workflowservice.SignalWorkflowExecutionRequest
	signaled   = workflowservice.SignalWorkflowExecutionResponse
	canceling  = workflowservice.RequestCancelWorkflowExecutionRequest
	canceled   = workflowservice.RequestCancelWorkflowExecutionResponse
	listing    = workflowservice.ListWorkflowExecutionsRequest
	listed     = workflowservice.ListWorkflowExecutionsResponse
	reading    = workflowservice.GetWorkflowExecutionHistoryRequest
	read       = workflowservice.GetWorkflowExecutionHistoryResponse
)

// server plays a farm's, which knows some workflows.
type server struct {
	*wiretest.Server
	mutex     sync.Mutex
	workflows map[string]*described
	states    map[string]flow.State
	failures  map[string]*failurepb.Failure
	starts    []*starting
	signals   []*signaling
	cancels   []*canceling
}

func payload(value any) *commonpb.Payload {
	data, _ := json.Marshal(value) // JSON can say it
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}
}

func payloads(value any) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(value)}}
}

func newServer(t *testing.T) (*server, *Farm) {
	t.Helper()
	s := &server{Server: wiretest.Start(t), workflows: map[string]*described{}, states: map[string]flow.State{},
		failures: map[string]*failurepb.Failure{}}
	s.handle()
	f := must.Get(Dial(t.Context(), Options{Address: s.Address, Namespace: "splats", Owner: "anna"}))(t)
	t.Cleanup(f.Close)
	return s, f
}

func (s *server) handle() {
	lookup := func(of *commonpb.WorkflowExecution) (*described, error) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if d := s.workflows[of.GetWorkflowId()]; d != nil {
			return d, nil
		}
		return nil, serviceerror.NewNotFound("workflow not found for ID: " + of.GetWorkflowId())
	}
	wiretest.Handle(s.Server, func(_ context.Context, r *describing) (*described, error) {
		return lookup(r.GetExecution())
	})
	wiretest.Handle(s.Server, func(_ context.Context, r *querying) (*queried, error) {
		if _, err := lookup(r.GetExecution()); err != nil || r.GetQuery().GetQueryType() != flow.StateQuery {
			return nil, errors.Join(err, errors.New("unknown query"))
		}
		return &queried{QueryResult: payloads(s.states[r.GetExecution().GetWorkflowId()])}, nil
	})
	wiretest.Handle(s.Server, func(_ context.Context, r *starting) (*started, error) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.starts = append(s.starts, r)
		if d := s.workflows[r.GetWorkflowId()]; d != nil && d.GetWorkflowExecutionInfo().GetCloseTime() == nil {
			return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "request", "run")
		}
		s.workflows[r.GetWorkflowId()] = &described{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: r.GetWorkflowId()}, Memo: r.GetMemo(),
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, StartTime: timestamppb.Now()}}
		return &started{}, nil
	})
	wiretest.Handle(s.Server, func(_ context.Context, r *signaling) (*signaled, error) {
		s.signals = append(s.signals, r)
		d, err := lookup(r.GetWorkflowExecution())
		if err == nil && d.GetWorkflowExecutionInfo().GetCloseTime() != nil {
			err = serviceerror.NewNotFound("workflow execution already completed")
		}
		return &signaled{}, err
	})
	wiretest.Handle(s.Server, func(_ context.Context, r *canceling) (*canceled, error) {
		s.cancels = append(s.cancels, r)
		_, err := lookup(r.GetWorkflowExecution())
		return &canceled{}, err
	})
	wiretest.Handle(s.Server, func(_ context.Context, r *reading) (*read, error) {
		if r.GetHistoryEventFilterType() != enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT {
			return nil, serviceerror.NewInvalidArgument("the whole history is asked for")
		}
		return &read{History: &historypb.History{Events: []*historypb.HistoryEvent{{
			Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
				WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{
					Failure: s.failures[r.GetExecution().GetWorkflowId()]}}}}}}, nil
	})
}

// workflow adds one.
func (s *server) workflow(id string, status enumspb.WorkflowExecutionStatus, began time.Duration, m *memo) *described {
	info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r"},
		Status: status, StartTime: timestamppb.New(time.Unix(1000, 0).Add(began))}
	if status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		info.CloseTime = timestamppb.New(time.Unix(5000, 0))
	}
	if m != nil {
		info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{flow.MemoKey: payload(m)}}
	}
	s.workflows[id] = &described{WorkflowExecutionInfo: info}
	return s.workflows[id]
}

const (
	runs = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	over = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
)

// job is one of two tasks, with a store.
func job(t *testing.T, name string, more string) (store.Roots, *spec.Job, *spec.Plan) {
	t.Helper()
	roots := store.Roots{}
	for _, name := range []string{"inputs", "outputs"} {
		dir := filepath.Join(t.TempDir(), name)
		must.Do(t, os.Mkdir(dir, 0o777))
		roots[name] = store.Options{URL: dir}
	}
	j, plan := spectest.Job(t, "version = 1\nname = \""+name+"\"\n"+more+"[[task]]\nkind = \"demo\"\nid = \"a\"\n"+
		"[[task]]\nkind = \"train\"\nid = \"b\"\nsource = \"@a\"\n")
	return roots, j, plan
}

// TestSubmit starts a job once, whatever the network does, and says what runs under its name already.
func TestSubmit(t *testing.T) {
	s, f := newServer(t)
	roots, j, plan := job(t, "Garden", "")
	id, running, err := f.Submit(t.Context(), roots, j, plan, flow.Settings{Max: 2})
	if err != nil || running || id != flow.JobID("anna", "Garden") {
		t.Fatalf("%s, %v, %v", id, running, err)
	}
	r := s.starts[0]
	var input flow.JobInput
	if json.Unmarshal(r.GetInput().GetPayloads()[0].GetData(), &input) != nil || input.Max != 2 ||
		r.GetWorkflowType().GetName() != flow.JobType || r.GetTaskQueue().GetName() != flow.FlowQueue ||
		r.GetNamespace() != "splats" || r.GetRequestId() == "" || r.GetIdentity() == "" ||
		r.GetWorkflowIdReusePolicy() != enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE ||
		r.GetWorkflowIdConflictPolicy() != enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL {
		t.Errorf("%v", r)
	}
	if d, err := f.Document(t.Context(), id); err != nil || d != input.Document || d != flow.DocumentOf(j) {
		t.Errorf("its document is %v, not %v: %v", d, input.Document, err)
	}
	if _, running, err = f.Submit(t.Context(), roots, j, plan, flow.Settings{}); err != nil || !running {
		t.Errorf("the same again: %v, %v", running, err)
	}
	_, other, plan := job(t, "Garden", "priority = \"low\"\n")
	if _, _, err := f.Submit(t.Context(), roots, other, plan, flow.Settings{}); !errors.Is(err, errRuns) ||
		!errors.Is(err, fault.ErrTryAgain) {
		t.Errorf("another document: %v", err)
	}
	s.workflows[id].WorkflowExecutionInfo.CloseTime = timestamppb.Now()
	if _, running, err := f.Submit(t.Context(), roots, other, plan, flow.Settings{}); err != nil || running {
		t.Errorf("after its end: %v, %v", running, err)
	}
	requests := map[string]bool{}
	for _, r := range s.starts {
		requests[r.GetRequestId()] = true
	}
	if len(requests) != len(s.starts) {
		t.Error("two submissions are one to the server")
	}
}

// TestSubmitLost starts one job where the answer to the first call is lost.
func TestSubmitLost(t *testing.T) {
	s, f := newServer(t)
	var requests []string
	wiretest.Handle(s.Server, func(_ context.Context, r *starting) (*started, error) {
		if requests = append(requests, r.GetRequestId()); len(requests) == 1 {
			return nil, serviceerror.NewUnavailable("stopping")
		}
		return &started{}, nil
	})
	roots, j, plan := job(t, "j", "")
	if _, _, err := f.Submit(t.Context(), roots, j, plan, flow.Settings{}); err != nil || len(requests) != 2 ||
		requests[0] != requests[1] {
		t.Errorf("%v, %q", err, requests)
	}
}

// TestSteer changes and cancels jobs that run, and says of others why not.
func TestSteer(t *testing.T) {
	s, f := newServer(t)
	s.workflow("anna/runs", runs, 0, nil)
	s.workflow("anna/over", over, 0, nil)
	yes := true
	if err := f.Set(t.Context(), "anna/runs", flow.Change{Paused: &yes}); err != nil ||
		string(s.signals[0].GetInput().GetPayloads()[0].GetData()) != `{"paused":true}` ||
		s.signals[0].GetSignalName() != flow.SetSignal || s.signals[0].GetRequestId() == "" {
		t.Errorf("%v, %v", err, s.signals)
	}
	if err := f.Cancel(t.Context(), "anna/runs"); err != nil || len(s.cancels) != 1 || s.cancels[0].GetRequestId() == "" {
		t.Errorf("%v, %v", err, s.cancels)
	}
	for name, err := range map[string]error{
		"change": f.Set(t.Context(), "anna/over", flow.Change{}), "cancel": f.Cancel(t.Context(), "anna/over")} {
		if !errors.Is(err, fault.ErrUsage) || !strings.Contains(fmt.Sprint(err), "it has ended") {
			t.Errorf("%s a job that has ended: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"change": f.Set(t.Context(), "anna/none", flow.Change{}), "cancel": f.Cancel(t.Context(), "anna/none")} {
		if !errors.Is(err, fault.ErrUsage) || !strings.Contains(fmt.Sprint(err), "no such job in the farm") {
			t.Errorf("%s a job that is not known: %v", name, err)
		}
	}
	if len(s.cancels) != 2 {
		t.Errorf("%d cancels", len(s.cancels))
	}
}

// TestShow adds up what a job and its chunks say, and what waits, runs and has failed.
func TestShow(t *testing.T) {
	s, f := newServer(t)
	roots, j, plan := job(t, "film", "")
	d, err := flow.Put(t.Context(), roots, j, "anna")
	if err != nil {
		t.Fatal(err)
	}
	s.workflow("anna/film", runs, 0, &memo{"film", d, 9})
	s.states["anna/film"] = flow.State{Tasks: 9, Done: 3, Chunks: []int{1, 2}, Settings: flow.Settings{Paused: true}}
	chunk := s.workflow("anna/film/1", runs, 0, nil) // the chunk 2 has not begun
	s.states["anna/film/1"] = flow.State{Tasks: 4, Done: 1, Queued: 3}
	beat := worker.Beat{Host: "atlas", Device: "H200"}
	beat.Task, beat.Step = "b", 70
	kind := &commonpb.ActivityType{Name: flow.TaskType}
	chunk.PendingActivities = []*workflowpb.PendingActivityInfo{
		{ActivityId: "1/1", ActivityType: kind, State: enumspb.PENDING_ACTIVITY_STATE_STARTED,
			LastStartedTime: timestamppb.New(time.Unix(2000, 0)), HeartbeatDetails: payloads(beat)},
		{ActivityId: "0/2", ActivityType: kind, State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED,
			HeartbeatDetails: payloads(worker.Beat{Host: "nova"}), LastFailure: &failurepb.Failure{
				FailureInfo: &failurepb.Failure_TimeoutFailureInfo{}}},
		{ActivityId: "3/1", ActivityType: kind, State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED,
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: "pool/any/gpu"}}},
		{ActivityId: "x", ActivityType: &commonpb.ActivityType{Name: "running"}},
	}
	got := must.Get(f.Show(t.Context(), "anna/film"))(t)
	if got.Status != Paused || got.Name != "film" || got.Over() || got.Tasks != 9 || got.State.Done != 4 ||
		got.State.Queued != 3 || got.State.Waiting != 2 || !maps.Equal(got.Waits, map[string]int{"pool/any/gpu": 1}) {
		t.Errorf("%+v, %+v", got, got.State)
	}
	if len(got.Now) != 2 || got.Now[1].Host != "atlas" || got.Now[1].Step != 70 || !got.Now[1].Running ||
		got.Now[1].Index != 1 || got.Now[0].Running || got.Now[0].Failure != "lost contact with nova" ||
		got.Now[0].Task != "task 0 of the document" {
		t.Errorf("%+v", got.Now)
	}
	status, err := f.status(t.Context(), "anna/film", plan)
	if err != nil || len(status.Tasks) != 2 || status.Tasks[0].State != local.Retrying ||
		status.Tasks[1].State != local.Running || status.Tasks[1].Device != "atlas/H200" {
		t.Errorf("%v, %+v", err, status)
	}
}

// TestShowFailed says why a job has failed, in the words of who knows.
func TestShowFailed(t *testing.T) {
	s, f := newServer(t)
	s.workflow("anna/film", enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, 0, &memo{Name: "film"})
	s.failures["anna/film"] = &failurepb.Failure{Message: "activity error", Cause: &failurepb.Failure{
		Message: "plan job: no such root", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Details: payloads("mount it")}}}}
	got, err := f.Show(t.Context(), "anna/film")
	if err != nil || got.Status != Failed || got.Error != "plan job: no such root" || got.Hint != "mount it" ||
		!got.Over() || !got.Ended.Equal(time.Unix(5000, 0)) {
		t.Errorf("%v, %+v", err, got)
	}
	if _, err := f.Show(t.Context(), "anna/none"); !errors.Is(err, fault.ErrUsage) {
		t.Error(err)
	}
}

// TestSilent says that nobody runs jobs, where nobody answers for one that is known.
func TestSilent(t *testing.T) {
	s, f := newServer(t)
	s.workflow("anna/film", runs, 0, nil)
	s.workflow("ben/film", runs, 0, nil)
	var asked atomic.Int32 // the two jobs of the list may be asked at one moment
	wiretest.Handle(s.Server, func(context.Context, *querying) (*queried, error) {
		asked.Add(1)
		return nil, serviceerror.NewDeadlineExceeded("nobody polls")
	})
	wiretest.Handle(s.Server, func(context.Context, *listing) (*listed, error) {
		return &listed{Executions: []*workflowpb.WorkflowExecutionInfo{s.workflows["anna/film"].WorkflowExecutionInfo,
			s.workflows["ben/film"].WorkflowExecutionInfo}}, nil
	})
	if _, err := f.Show(t.Context(), "anna/film"); !errors.Is(err, fault.ErrTryAgain) ||
		!strings.Contains(err.Error(), "no server is running it") {
		t.Error(err)
	}
	list, more, err := f.List(t.Context(), false, 0)
	if err != nil || more || len(list) != 2 || asked.Load() < 2 || asked.Load() > 3 {
		t.Errorf("%v, %d jobs, asked %d times", err, len(list), asked.Load())
	}
}

// TestList lists jobs of all pages: those that run, with their states, before the others, the newest first.
func TestList(t *testing.T) {
	s, f := newServer(t)
	a := s.workflow("anna/a", runs, time.Hour, &memo{Name: "A", Tasks: 5})
	b := s.workflow("ben/b", over, 2*time.Hour, &memo{Name: "b", Tasks: 2})
	c := s.workflow("somebody", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, 0, nil)
	s.states["anna/a"] = flow.State{Tasks: 6, Done: 2}
	var queries []string
	wiretest.Handle(s.Server, func(_ context.Context, r *listing) (*listed, error) {
		queries = append(queries, r.GetQuery())
		if len(r.GetNextPageToken()) == 0 {
			return &listed{NextPageToken: []byte("2"), Executions: []*workflowpb.WorkflowExecutionInfo{
				a.WorkflowExecutionInfo, b.WorkflowExecutionInfo}}, nil
		}
		return &listed{Executions: []*workflowpb.WorkflowExecutionInfo{c.WorkflowExecutionInfo}}, nil
	})
	list, more, err := f.List(t.Context(), true, 0)
	var names []string
	for i := range list {
		names = append(names, list[i].Name+" "+list[i].Status)
	}
	if err != nil || more || !slices.Equal(names, []string{"A running", "b done", "somebody " + Ended}) {
		t.Fatalf("%v, %q", err, names)
	}
	if list[0].State == nil || list[0].Tasks != 6 || list[0].State.Waiting != 4 || list[1].State != nil ||
		list[1].Tasks != 2 {
		t.Errorf("%+v", list)
	}
	some, more, err := f.List(t.Context(), false, 2)
	if err != nil || !more || len(some) != 2 || !strings.Contains(queries[len(queries)-1], "'Running'") ||
		strings.Contains(queries[0], "'Running'") {
		t.Errorf("%v, %d jobs, %q", err, len(some), queries)
	}
}

// TestDial tells what can be done about a server that is not there, or has no such namespace, or does not want us.
func TestDial(t *testing.T) {
	s := wiretest.Start(t)
	for _, c := range []struct {
		err  error
		kind error
		text string
	}{
		{serviceerror.NewNamespaceNotFound("splats"), fault.ErrSetup, "namespace"},
		{serviceerror.NewPermissionDenied("Request unauthorized.", "the pass of x was revoked"), fault.ErrSetup,
			"the pass of x was revoked"},
		{serviceerror.NewInvalidArgument("no such pool"), fault.ErrUsage, "no such pool"},
		{serviceerror.NewInternal("odd"), fault.ErrTryAgain, "odd"},
	} {
		wiretest.Handle(s, func(context.Context, *workflowservice.DescribeNamespaceRequest) (
			*workflowservice.DescribeNamespaceResponse, error) {
			return nil, c.err
		})
		_, err := Dial(t.Context(), Options{Address: s.Address, Namespace: "splats"})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error()+fault.Hint(err), c.text) || fault.Hint(err) == "" {
			t.Errorf("%v: %v, hint %q", c.err, err, fault.Hint(err))
		}
	}
	s.Down()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, Options{Address: s.Address, Namespace: "splats"}); !errors.Is(err, fault.ErrTryAgain) ||
		!strings.Contains(err.Error(), "it does not respond: dial tcp ") ||
		!strings.Contains(fault.Hint(err), "tls-ca") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}

// TestDialWrongClock says that a clock is wrong, not that a server is away.
func TestDialWrongClock(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	trust := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.Time = func() time.Time { return s.Certificate().NotBefore.Add(-time.Hour) }
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, Options{Address: s.Listener.Addr().String(), Namespace: "splats", TLS: trust})
	if !errors.Is(err, fault.ErrTryAgain) || !strings.Contains(fault.Hint(err), "clock") ||
		strings.Contains(fault.Hint(err), "tls-ca") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}

// TestJobID takes jobs of others by their owner's name.
func TestJobID(t *testing.T) {
	f := &Farm{Options: Options{Owner: "anna"}}
	if f.JobID("film") != "anna/film" || f.JobID("ben/film") != "ben/film" || f.JobID("Film") == "anna/Film" {
		t.Error(f.JobID("film"), f.JobID("ben/film"), f.JobID("Film"))
	}
}
