package gate

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"vksplat/farm/pass"
)

var (
	viewer = pass.Who{ID: strings.Repeat("0", 32), Name: "wall", Role: pass.View}
	anna   = pass.Who{ID: strings.Repeat("1", 32), Name: "anna-pc", Role: pass.Submit, Owner: "anna"}
	worker = pass.Who{ID: strings.Repeat("2", 32), Name: "gpu1", Role: pass.Worker, Pools: []string{"default", "big"}}
	admin  = pass.Who{ID: strings.Repeat("3", 32), Name: "root", Role: pass.Admin, Owner: "root"}
)

// open is what each role may call: the whole of it, in words of its own, so that a change of methods.go shows here.
var open = map[pass.Role]string{
	pass.View: `CountWorkflowExecutions DescribeNamespace DescribeTaskQueue DescribeWorkflowExecution GetClusterInfo
		GetSearchAttributes GetSystemInfo GetWorkflowExecutionHistory GetWorkflowExecutionHistoryReverse
		ListClosedWorkflowExecutions ListNamespaces ListOpenWorkflowExecutions ListWorkflowExecutions QueryWorkflow`,
	pass.Submit: `CountWorkflowExecutions DescribeNamespace DescribeTaskQueue DescribeWorkflowExecution GetClusterInfo
		GetSearchAttributes GetSystemInfo GetWorkflowExecutionHistory GetWorkflowExecutionHistoryReverse
		ListClosedWorkflowExecutions ListNamespaces ListOpenWorkflowExecutions ListWorkflowExecutions QueryWorkflow
		RequestCancelWorkflowExecution SignalWorkflowExecution StartWorkflowExecution TerminateWorkflowExecution`,
	pass.Worker: `DescribeNamespace DescribeTaskQueue GetClusterInfo GetSystemInfo PollActivityTaskQueue RecordActivityTaskHeartbeat
		RespondActivityTaskCanceled RespondActivityTaskCompleted RespondActivityTaskFailed`,
}

func init() { open[pass.Admin] = open[pass.Submit] }

func newGate() *Gate {
	g := New([]byte("a key of thirty-two bytes, or so"))
	g.Namespace, g.FlowQueue, g.FlowType = "vksplat", "flow", "job"
	g.Revoked = func(string) bool { return false }
	g.OpenJobs = func(context.Context, string) (int, error) { return 0, nil }
	g.HasPool = func(name string) bool { return name == "big" }
	return g
}

// check asks the gate, with a context that ends, as those of requests do.
func check(t *testing.T, g *Gate, who pass.Who, method string, req any) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return g.Check(ctx, who, method, req)
}

// methods are all methods of a service, with a request for each that names the farm's namespace.
func methods(t *testing.T, service protoreflect.ServiceDescriptor, each func(name string, req proto.Message)) {
	t.Helper()
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
		if err != nil {
			t.Fatal(err)
		}
		req := kind.New()
		if f := m.Input().Fields().ByName("namespace"); f != nil && f.Kind() == protoreflect.StringKind {
			req.Set(f, protoreflect.ValueOfString("vksplat"))
		}
		each(string(m.Name()), req.Interface())
	}
}

func workflowMethods(t *testing.T, each func(name string, req proto.Message)) {
	t.Helper()
	methods(t, workflowservice.File_temporal_api_workflowservice_v1_service_proto.Services().ByName("WorkflowService"), each)
}

// Every method of Temporal's API is open to the roles that the table of this test lists, and to no others. A method
// of a later version is in no table, and refused.
func TestEveryMethod(t *testing.T) {
	n, refused := 0, 0
	known := map[string]bool{}
	workflowMethods(t, func(name string, req proto.Message) {
		known[name] = true
		for _, who := range []pass.Who{viewer, anna, worker, admin, {}} {
			n++
			err := check(t, newGate(), who, servicePrefix+name, req)
			closed := err != nil && strings.Contains(err.Error(), "does not allow")
			if listed := slices.Contains(strings.Fields(open[who.Role]), name); listed == closed {
				t.Errorf("%s calls %s: %v", who.Role, name, err)
			}
			if closed {
				refused++
			}
		}
	})
	for name := range rules {
		if !known[name] {
			t.Errorf("there is no method %s", name)
		}
	}
	if len(known) < 100 {
		t.Errorf("Temporal has %d methods only", len(known))
	}
	t.Logf("%d calls, %d refused", n, refused)
}

// Other services, streams, and methods that do not exist are closed to everybody.
func TestOtherServices(t *testing.T) {
	for _, who := range []pass.Who{viewer, anna, worker, admin} {
		methods(t, operatorservice.File_temporal_api_operatorservice_v1_service_proto.Services().Get(0),
			func(name string, req proto.Message) {
				if err := check(t, newGate(), who, "/temporal.api.operatorservice.v1.OperatorService/"+name,
					req); err == nil {
					t.Errorf("%s calls %s of the operator service", who.Role, name)
				}
			})
		for _, method := range []string{
			"/temporal.server.api.adminservice.v1.AdminService/DescribeCluster",
			"/grpc.health.v1.Health/Check",
			servicePrefix + "AMethodOfNextYear",
			servicePrefix,
			"",
			"/temporal.api.nexusservice.v1.NexusService/DispatchByNamespaceAndTaskQueue",
		} {
			if check(t, newGate(), who, method, &workflowservice.GetSystemInfoRequest{}) == nil {
				t.Errorf("%s calls %q", who.Role, method)
			}
		}
		// Streams have no request.
		if check(t, newGate(), who, servicePrefix+"GetSystemInfo", nil) == nil {
			t.Errorf("%s opens a stream", who.Role)
		}
	}
}

// Requests that change something set listed fields only, whatever the other fields are.
func TestEveryField(t *testing.T) {
	n := 0
	workflowMethods(t, func(name string, req proto.Message) {
		rule := rules[name]
		if rule.fields == nil {
			return
		}
		fields := req.ProtoReflect().Descriptor().Fields()
		for _, listed := range append(slices.Clone(rule.fields), rule.dropped...) {
			if fields.ByName(protoreflect.Name(listed)) == nil {
				t.Errorf("%s has no field %s", name, listed)
			}
		}
		who := anna
		if rule.roles == "w" {
			who = worker
		}
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Name() == "namespace" || f.Name() == "identity" || slices.Contains(rule.fields, string(f.Name())) {
				continue
			}
			n++
			m := proto.Clone(req)
			set(m.ProtoReflect(), f)
			if slices.Contains(rule.dropped, string(f.Name())) {
				_ = check(t, newGate(), who, servicePrefix+name, m)
				if m.ProtoReflect().Has(f) {
					t.Errorf("%s keeps %s", name, f.Name())
				}
				continue
			}
			if err := check(t, newGate(), who, servicePrefix+name, m); err == nil || !strings.Contains(err.Error(),
				"may not set") {
				t.Errorf("%s with %s: %v", name, f.Name(), err)
			}
		}
		m := proto.Clone(req)
		m.ProtoReflect().SetUnknown([]byte{0xf8, 0x7f, 1}) // field 2047
		if err := check(t, newGate(), who, servicePrefix+name, m); err == nil || !strings.Contains(err.Error(),
			"later version") {
			t.Errorf("%s with a field of a later version: %v", name, err)
		}
	})
	if n < 20 {
		t.Errorf("%d fields were tried only", n)
	}
}

// set gives a field some value that is not its default.
func set(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsList():
		list := m.Mutable(f).List()
		if f.Message() != nil {
			list.AppendMutable()
			return
		}
		list.Append(protoreflect.ValueOfEnum(1))
	case f.Message() != nil:
		m.Mutable(f)
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString("x"))
	case f.Kind() == protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(true))
	case f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes([]byte("x")))
	case f.Kind() == protoreflect.EnumKind:
		m.Set(f, protoreflect.ValueOfEnum(1))
	case f.Kind() == protoreflect.Int32Kind:
		m.Set(f, protoreflect.ValueOfInt32(1))
	default:
		panic(f.FullName())
	}
}

func goodStart() *workflowservice.StartWorkflowExecutionRequest {
	return &workflowservice.StartWorkflowExecutionRequest{Namespace: "vksplat", WorkflowId: "anna/garden",
		WorkflowType: &commonpb.WorkflowType{Name: "job"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "flow"}}
}

// A start is of the caller's own job, of the one type, on the one queue.
func TestStart(t *testing.T) {
	const method = servicePrefix + "StartWorkflowExecution"
	if err := check(t, newGate(), anna, method, goodStart()); err != nil {
		t.Fatal(err)
	}
	named := goodStart()
	named.Identity = "root"
	if err := check(t, newGate(), anna, method, named); err != nil || named.Identity != anna.Name {
		t.Errorf("anna calls itself %q, %v", named.Identity, err)
	}
	for what, change := range map[string]func(*workflowservice.StartWorkflowExecutionRequest){
		"a foreign id":       func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowId = "ben/garden" },
		"an id like a chunk": func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowId = "anna/garden/1" },
		"no job":             func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowId = "anna/" },
		"an owner only":      func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowId = "anna" },
		"a quote":            func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowId = "anna/x'y" },
		"a chunk":            func(r *workflowservice.StartWorkflowExecutionRequest) { r.WorkflowType.Name = "chunk" },
		"a worker's queue":   func(r *workflowservice.StartWorkflowExecutionRequest) { r.TaskQueue.Name = "pool/default/cpu" },
		"a sticky queue": func(r *workflowservice.StartWorkflowExecutionRequest) {
			r.TaskQueue.Kind = enumspb.TASK_QUEUE_KIND_STICKY
		},
		"a foreign share": func(r *workflowservice.StartWorkflowExecutionRequest) {
			r.Priority = &commonpb.Priority{FairnessKey: "ben"}
		},
		"a double share": func(r *workflowservice.StartWorkflowExecutionRequest) {
			r.Priority = &commonpb.Priority{FairnessWeight: 2}
		},
		"another namespace": func(r *workflowservice.StartWorkflowExecutionRequest) { r.Namespace = "temporal-system" },
		"no namespace":      func(r *workflowservice.StartWorkflowExecutionRequest) { r.Namespace = "" },
	} {
		r := goodStart()
		change(r)
		var denied *serviceerror.PermissionDenied
		if err := check(t, newGate(), anna, method, r); !errors.As(err, &denied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r := goodStart()
	r.Input = &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: make([]byte, maxStart)}}}
	var invalid *serviceerror.InvalidArgument
	if err := check(t, newGate(), anna, method, r); !errors.As(err, &invalid) {
		t.Errorf("too large: %v", err)
	}
	full := newGate()
	full.OpenJobs = func(_ context.Context, owner string) (int, error) {
		if owner != "anna" {
			t.Errorf("jobs of %s are counted", owner)
		}
		return MaxOpenJobs, nil
	}
	var exhausted *serviceerror.ResourceExhausted
	if err := check(t, full, anna, method, goodStart()); !errors.As(err, &exhausted) {
		t.Errorf("a thousand jobs: %v", err)
	}
}

// Jobs are steered by their owner and by administrators.
func TestSteer(t *testing.T) {
	for id, allowed := range map[string][]pass.Role{
		"anna/garden":   {pass.Submit, pass.Admin},
		"ben/garden":    {pass.Admin},
		"anna/garden/1": nil,
		"anna":          nil,
		"":              nil,
	} {
		at := &commonpb.WorkflowExecution{WorkflowId: id}
		for name, req := range map[string]proto.Message{
			"SignalWorkflowExecution": &workflowservice.SignalWorkflowExecutionRequest{Namespace: "vksplat",
				SignalName: "set", WorkflowExecution: at},
			"RequestCancelWorkflowExecution": &workflowservice.RequestCancelWorkflowExecutionRequest{Namespace: "vksplat", WorkflowExecution: at},
			"TerminateWorkflowExecution":     &workflowservice.TerminateWorkflowExecutionRequest{Namespace: "vksplat", WorkflowExecution: at},
		} {
			for _, who := range []pass.Who{viewer, anna, worker, admin} {
				err := check(t, newGate(), who, servicePrefix+name, req)
				if (err == nil) != slices.Contains(allowed, who.Role) {
					t.Errorf("%s %s by %s: %v", name, id, who.Name, err)
				}
			}
		}
	}
}

// A worker takes tasks of its pools, and of no queue that is not a pool's or of no class of tasks. People see the
// queues that workers ask for.
func TestPoll(t *testing.T) {
	for queue, allowed := range map[string]bool{
		"pool/default/cpu/demo": true, "pool/big/vram-24": true, "pool/big/gpu": true, "pool/big/device/a=2Fb/*": true,
		"pool/other/gpu": false, "pool/default": false, "pool/default/": false, "pool//gpu": false, "": false,
		"/_sys/pool/default/gpu/1": false, "pool/default2/gpu": false, "pool/default/cpu": false,
		"pool/default/cpu/made-up": false, "pool/default/vram-25": false, "pool/default/vram-024": false,
		"pool/default/anything": false, "pool/default/gpu/1": false, "pool/default/device/x": false,
		"pool/default/device/a b/*": false, "pool/default/device/a/b/c": false,
		"pool/default/device/*/" + strings.Repeat("x", 1000): false,
	} {
		g := newGate()
		req := &workflowservice.PollActivityTaskQueueRequest{Namespace: "vksplat",
			TaskQueue: &taskqueuepb.TaskQueue{Name: queue}}
		look := &workflowservice.DescribeTaskQueueRequest{Namespace: "vksplat",
			TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY}
		if check(t, g, viewer, servicePrefix+"DescribeTaskQueue", look) == nil {
			t.Errorf("a viewer looks at %q, which nobody uses", queue)
		}
		if err := check(t, g, worker, servicePrefix+"PollActivityTaskQueue", req); (err == nil) != allowed {
			t.Errorf("%q: %v", queue, err)
		}
		if err := check(t, g, worker, servicePrefix+"DescribeTaskQueue", look); (err == nil) != allowed {
			t.Errorf("a look at %q: %v", queue, err)
		}
		if err := check(t, g, viewer, servicePrefix+"DescribeTaskQueue", look); (err == nil) != allowed {
			t.Errorf("a look at %q by a viewer: %v", queue, err)
		}
		look.TaskQueueType = enumspb.TASK_QUEUE_TYPE_WORKFLOW
		if check(t, g, worker, servicePrefix+"DescribeTaskQueue", look) == nil {
			t.Errorf("a look at workflows of %q", queue)
		}
		req.TaskQueue.Kind = enumspb.TASK_QUEUE_KIND_STICKY
		if check(t, g, worker, servicePrefix+"PollActivityTaskQueue", req) == nil {
			t.Errorf("%q as a sticky queue", queue)
		}
	}
	flow := &workflowservice.DescribeTaskQueueRequest{Namespace: "vksplat",
		TaskQueue: &taskqueuepb.TaskQueue{Name: "flow"}}
	if check(t, newGate(), worker, servicePrefix+"DescribeTaskQueue", flow) == nil {
		t.Error("a worker looks at the queue of workflows")
	}
	if err := check(t, newGate(), viewer, servicePrefix+"DescribeTaskQueue", flow); err != nil {
		t.Errorf("a viewer looks at the queue of workflows: %v", err)
	}
}

// A report on a task counts with the seal that the server gave it for this pass, unchanged.
func TestSeal(t *testing.T) {
	g := newGate()
	answer := &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("\x0a\x05token")}
	plain := slices.Clone(answer.TaskToken)
	g.Seal(worker, answer)
	other := worker
	other.ID = strings.Repeat("9", 32)
	otherFarm := New([]byte("another"))
	changed := slices.Clone(answer.TaskToken)
	changed[3] ^= 1
	twice := slices.Clone(answer.TaskToken)
	twice = append(twice, otherFarm.sealOf(twice, worker)...)
	report := func(who pass.Who, token []byte) error {
		return check(t, g, who, servicePrefix+"RespondActivityTaskCompleted",
			&workflowservice.RespondActivityTaskCompletedRequest{Namespace: "vksplat", TaskToken: token})
	}
	if err := report(worker, answer.TaskToken); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another worker":       report(other, answer.TaskToken),
		"no seal":              report(worker, plain),
		"a changed token":      report(worker, changed),
		"another farm's seal":  report(worker, append(slices.Clone(plain), otherFarm.sealOf(plain, worker)...)),
		"another seal on top":  report(worker, twice),
		"a seal and no token":  report(worker, g.sealOf(nil, worker)),
		"nothing":              report(worker, nil),
		"a cut seal":           report(worker, answer.TaskToken[:len(answer.TaskToken)-1]),
		"something at the end": report(worker, append(slices.Clone(answer.TaskToken), 0)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	none := &workflowservice.PollActivityTaskQueueResponse{}
	if g.Seal(worker, none); len(none.TaskToken) > 0 {
		t.Error("an answer without a task is sealed")
	}
}

// A pass uses what it may: more is refused for now, and does not touch others.
func TestUsage(t *testing.T) {
	g := newGate()
	req := &workflowservice.GetSystemInfoRequest{}
	ctx, cancel := context.WithCancel(t.Context())
	var exhausted *serviceerror.ResourceExhausted
	for n := range peopleBounds.atOnce + 1 {
		err := g.Check(ctx, anna, servicePrefix+"GetSystemInfo", req)
		if last := n == peopleBounds.atOnce; errors.As(err, &exhausted) != last {
			t.Fatalf("request %d at once: %v", n, err)
		}
	}
	if err := check(t, g, viewer, servicePrefix+"GetSystemInfo", req); err != nil {
		t.Errorf("another pass: %v", err)
	}
	cancel()
	allowed := 0
	for range 10 * int(peopleBounds.burst) { // faster than the bucket fills
		if check(t, g, admin, servicePrefix+"GetSystemInfo", req) == nil {
			allowed++
		}
		for running := 1; running > 0; runtime.Gosched() { // the end of a request is counted by another goroutine
			g.usage.mu.Lock()
			running = g.usage.of[admin.ID].running
			g.usage.mu.Unlock()
		}
	}
	if allowed < int(peopleBounds.burst) || allowed > 5*int(peopleBounds.burst) {
		t.Errorf("%d of %d requests in a row were allowed", allowed, 10*int(peopleBounds.burst))
	}
	g.Revoked = func(id string) bool { return id == anna.ID }
	if check(t, g, anna, servicePrefix+"GetSystemInfo", req) == nil {
		t.Error("a revoked pass is let in")
	}
}
