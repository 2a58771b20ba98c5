package wire

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	_ "go.temporal.io/api/errordetails/v1"
	_ "go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	must "vksplat/internal/musttest"
)

// calls are all requests with their answers.
var calls = []struct {
	req    Request
	answer proto.Message
}{
	{&DescribeNamespace{}, nil}, {&Start{}, nil}, {&Describe{}, &Description{}}, {&Signal{}, nil}, {&Cancel{}, nil},
	{&Query{}, &Queried{}}, {&List{}, &Listed{}}, {&History{}, &Events{}}, {&DescribeQueue{}, &Backlogged{}},
	{&Poll{}, &Given{}}, {&Heartbeat{}, &Heard{}}, {&Completed{}, nil}, {&Failed{}, nil}, {&Stopped{}, nil},
}

// names are those of fields here that are called otherwise in Temporal's API.
var names = map[string]string{
	"Start.workflow": "workflow_id", "Start.type": "workflow_type", "Start.queue": "task_queue",
	"Start.request": "request_id", "Start.reuse": "workflow_id_reuse_policy",
	"Start.conflict": "workflow_id_conflict_policy", "Describe.of": "execution",
	"Description.info": "workflow_execution_info", "Description.activities": "pending_activities",
	"Execution.workflow": "workflow_id", "Execution.run": "run_id", "Payloads.list": "payloads",
	"Info.start": "start_time", "Info.close": "close_time", "Pending.activity": "activity_id", "Pending.type": "activity_type",
	"Pending.beat": "heartbeat_details", "Pending.started": "last_started_time", "Pending.failure": "last_failure",
	"Pending.options": "activity_options", "Options.queue": "task_queue", "Signal.of": "workflow_execution",
	"Signal.name": "signal_name", "Signal.request": "request_id", "Cancel.of": "workflow_execution",
	"Cancel.request": "request_id", "Query.of": "execution", "Queried.result": "query_result", "List.size": "page_size",
	"List.next": "next_page_token", "Listed.workflows": "executions", "Listed.next": "next_page_token",
	"History.of": "execution", "History.filter": "history_event_filter_type",
	"Event.failed": "workflow_execution_failed_event_attributes", "DescribeQueue.queue": "task_queue",
	"DescribeQueue.type": "task_queue_type", "DescribeQueue.stats": "report_stats",
	"Backlogged.by_priority": "stats_by_priority_key", "Stats.count": "approximate_backlog_count", "Poll.queue": "task_queue",
	"Given.token": "task_token", "Given.type": "activity_type", "Given.beat": "heartbeat_details",
	"Given.heartbeat": "heartbeat_timeout", "Heartbeat.token": "task_token", "Heard.canceled": "cancel_requested",
	"Heard.paused": "activity_paused", "Heard.anew": "activity_reset", "Completed.token": "task_token",
	"Failed.token": "task_token", "Failed.beat": "last_heartbeat_details", "Stopped.token": "task_token",
	"Failure.own": "application_failure_info", "Failure.timeout": "timeout_failure_info",
	"ApplicationFailure.final": "non_retryable", "ApplicationFailure.delay": "next_retry_delay",
	"Kind.name": "query_type", // of a query; see same
}

// same wants a message to be what Temporal's API says of it.
func same(t *testing.T, own, api protoreflect.MessageDescriptor, seen map[string]bool) {
	t.Helper()
	key := string(own.FullName() + api.FullName())
	if seen[key] {
		return
	}
	seen[key] = true
	for i := range own.Fields().Len() {
		f := own.Fields().Get(i)
		at, their := string(own.Name()+"."+f.Name()), api.Fields().ByNumber(f.Number())
		if their == nil {
			t.Errorf("%s: %s has no field %d", at, api.FullName(), f.Number())
			continue
		}
		if their.Name() != f.Name() && string(their.Name()) != names[at] {
			t.Errorf("%s is %s", at, their.FullName())
		}
		sameKind(t, at, f, their, seen)
	}
}

// sameKind wants a field to be of the API's kind. Values of enumerations are numbers here.
func sameKind(t *testing.T, at string, f, their protoreflect.FieldDescriptor, seen map[string]bool) {
	t.Helper()
	kind := their.Kind()
	if kind == protoreflect.EnumKind {
		kind = protoreflect.Int32Kind
	}
	switch {
	case f.Kind() != kind || f.Cardinality() != their.Cardinality() || f.IsMap() != their.IsMap():
		t.Errorf("%s is %v %v, in the API %v %v", at, f.Cardinality(), f.Kind(), their.Cardinality(), their.Kind())
	case f.IsMap():
		sameKind(t, at, f.MapKey(), their.MapKey(), seen)
		sameKind(t, at, f.MapValue(), their.MapValue(), seen)
	case kind == protoreflect.MessageKind:
		same(t, f.Message(), their.Message(), seen)
	}
}

func theirs(t *testing.T, name protoreflect.FullName) protoreflect.Descriptor {
	t.Helper()
	d := must.Get(protoregistry.GlobalFiles.FindDescriptorByName(name))(t)
	return d
}

// TestMessages wants every message to have the numbers, names and types of Temporal's API.
func TestMessages(t *testing.T) {
	service := theirs(t, "temporal.api.workflowservice.v1.WorkflowService").(protoreflect.ServiceDescriptor)
	seen := map[string]bool{}
	for _, c := range calls {
		m := service.Methods().ByName(protoreflect.Name(c.req.method()))
		if m == nil {
			t.Errorf("there is no call %s", c.req.method())
			continue
		}
		same(t, c.req.ProtoReflect().Descriptor(), m.Input(), seen)
		if c.answer != nil {
			same(t, c.answer.ProtoReflect().Descriptor(), m.Output(), seen)
		}
	}
	denied := theirs(t, detailsOf+"PermissionDeniedFailure").(protoreflect.MessageDescriptor)
	same(t, (&Denial{}).ProtoReflect().Descriptor(), denied, seen)
}

// TestMade wants the Go of the messages to be made of the file that says what they are.
func TestMade(t *testing.T) {
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("needs protoc: apt-get install protobuf-compiler")
	}
	out := filepath.Join(t.TempDir(), "set")
	made := exec.Command(protoc, "--descriptor_set_out="+out, "farm/wire/wire.proto")
	made.Dir = filepath.Join("..", "..")
	if said, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	data := must.Get(os.ReadFile(out))(t)
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil || len(set.File) != 1 {
		t.Fatalf("%v, %d files", err, len(set.File))
	}
	if !proto.Equal(set.File[0], protodesc.ToFileDescriptorProto(File_farm_wire_wire_proto)) {
		t.Error("wire_gen.go is of another wire.proto: make messages")
	}
}

// TestValues wants the values of enumerations to be those of Temporal's API.
func TestValues(t *testing.T) {
	for name, value := range map[string]int{
		"TASK_QUEUE_KIND_NORMAL": kindNormal, "TASK_QUEUE_TYPE_ACTIVITY": typeActivity,
		"WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE": reuseDuplicate, "WORKFLOW_ID_CONFLICT_POLICY_FAIL": conflictFail,
		"HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT": filterClose, "PENDING_ACTIVITY_STATE_SCHEDULED": ActivityScheduled,
		"WORKFLOW_EXECUTION_STATUS_RUNNING": StatusRunning, "WORKFLOW_EXECUTION_STATUS_COMPLETED": StatusCompleted,
		"WORKFLOW_EXECUTION_STATUS_FAILED": StatusFailed, "WORKFLOW_EXECUTION_STATUS_CANCELED": StatusCanceled,
		"WORKFLOW_EXECUTION_STATUS_PAUSED": StatusPaused,
	} {
		d := theirs(t, protoreflect.FullName("temporal.api.enums.v1."+name)).(protoreflect.EnumValueDescriptor)
		if int(d.Number()) != value {
			t.Errorf("%s is %d, not %d", name, d.Number(), value)
		}
	}
}

// TestSpans wants times to come back as they went.
func TestSpans(t *testing.T) {
	for _, d := range []time.Duration{0, time.Nanosecond, time.Millisecond, 90 * time.Second, 14*time.Second + 1} {
		if got := SpanOf(d).Span(); got != d {
			t.Errorf("%v became %v", d, got)
		}
	}
	if !(*Moment)(nil).Time().IsZero() {
		t.Error("no time is a time")
	}
}

// TestExplain takes the words of who has failed, behind those of the server.
func TestExplain(t *testing.T) {
	own := &Failure{Message: "bad photos", Own: &ApplicationFailure{Details: PayloadsOf("look there")}}
	for _, c := range []struct {
		f          *Failure
		text, hint string
	}{
		{own, "bad photos", "look there"},
		{&Failure{Message: "activity error", Cause: own}, "bad photos", "look there"},
		{&Failure{Message: "bad", Own: &ApplicationFailure{Details: PayloadsOf(map[string]int{"tasks": 1})}}, "bad", ""},
		{&Failure{Message: "timed out", Timeout: &Silence{}}, "timed out", ""},
		{nil, "", ""},
	} {
		if text, hint := c.f.Explain(); text != c.text || hint != c.hint {
			t.Errorf("%q, %q, want %q, %q", text, hint, c.text, c.hint)
		}
	}
}
