package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// calls are all requests with their answers.
var calls = []struct {
	req    Request
	answer any
}{
	{&DescribeNamespace{}, nil}, {&Start{}, nil}, {&Describe{}, &Description{}}, {&Signal{}, nil}, {&Cancel{}, nil},
	{&Query{}, &Queried{}}, {&List{}, &Listed{}}, {&History{}, &Events{}}, {&DescribeQueue{}, &Backlogged{}},
	{&Poll{}, &Given{}}, {&Heartbeat{}, &Heard{}}, {&Completed{}, nil}, {&Failed{}, nil}, {&Stopped{}, nil},
}

// names are those of fields here that are called otherwise in Temporal's API.
var names = map[string]string{
	"Start.Workflow": "workflow_id", "Start.Type": "workflow_type", "Start.Queue": "task_queue",
	"Start.Request": "request_id", "Start.Reuse": "workflow_id_reuse_policy",
	"Start.Conflict": "workflow_id_conflict_policy", "Describe.Of": "execution",
	"Description.Info": "workflow_execution_info", "Description.Activities": "pending_activities",
	"Execution.Workflow": "workflow_id", "Execution.Run": "run_id", "Payloads.List": "payloads",
	"Info.Start": "start_time", "Info.Close": "close_time", "Pending.ID": "activity_id", "Pending.Type": "activity_type",
	"Pending.Beat": "heartbeat_details", "Pending.Started": "last_started_time", "Pending.Failure": "last_failure",
	"Pending.Options": "activity_options", ".Queue": "task_queue", "Signal.Of": "workflow_execution",
	"Signal.Name": "signal_name", "Signal.Request": "request_id", "Cancel.Of": "workflow_execution",
	"Cancel.Request": "request_id", "Query.Of": "execution", "Queried.Result": "query_result", "List.Size": "page_size",
	"List.Next": "next_page_token", "Listed.Workflows": "executions", "Listed.Next": "next_page_token",
	"History.Of": "execution", "History.Filter": "history_event_filter_type",
	".Failed": "workflow_execution_failed_event_attributes", "DescribeQueue.Queue": "task_queue",
	"DescribeQueue.Type": "task_queue_type", "DescribeQueue.Stats": "report_stats",
	"Backlogged.ByPriority": "stats_by_priority_key", ".Count": "approximate_backlog_count", "Poll.Queue": "task_queue",
	"Given.Token": "task_token", "Given.Type": "activity_type", "Given.Beat": "heartbeat_details",
	"Given.Heartbeat": "heartbeat_timeout", "Heartbeat.Token": "task_token", "Heard.Canceled": "cancel_requested",
	"Heard.Paused": "activity_paused", "Heard.Reset": "activity_reset", "Completed.Token": "task_token",
	"Failed.Token": "task_token", "Failed.Beat": "last_heartbeat_details", "Stopped.Token": "task_token",
	"Failure.Own": "application_failure_info", "Failure.Timeout": "timeout_failure_info",
	"ApplicationFailure.Final": "non_retryable", "ApplicationFailure.Delay": "next_retry_delay",
	"Kind.Name": "query_type", // of a query; see same
}

// same wants a message to be what Temporal's API says of it.
func same(t *testing.T, of reflect.Type, d protoreflect.MessageDescriptor, seen map[string]bool) {
	t.Helper()
	if key := of.String() + string(d.FullName()); seen[key] {
		return
	} else {
		seen[key] = true
	}
	for n, i := range numbers(of) {
		f := of.Field(i)
		their := d.Fields().ByNumber(n)
		at := of.Name() + "." + f.Name
		if their == nil {
			t.Errorf("%s: %s has no field %d", at, d.FullName(), n)
			continue
		}
		if name := string(their.Name()); name != names[at] && name != strings.ToLower(f.Name) {
			t.Errorf("%s is %s", at, their.FullName())
		}
		sameKind(t, at, f.Type, their, seen)
	}
}

func sameKind(t *testing.T, at string, of reflect.Type, their protoreflect.FieldDescriptor, seen map[string]bool) {
	t.Helper()
	if of.Kind() == reflect.Map {
		if !their.IsMap() {
			t.Errorf("%s is no map", at)
			return
		}
		sameKind(t, at, of.Key(), their.MapKey(), seen)
		sameKind(t, at, of.Elem(), their.MapValue(), seen)
		return
	}
	if isList := of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8; isList != their.IsList() {
		t.Errorf("%s: is it a list? %v, %v", at, isList, their.IsList())
		return
	} else if isList {
		of = of.Elem()
	}
	want := map[protoreflect.Kind]reflect.Kind{protoreflect.StringKind: reflect.String,
		protoreflect.BytesKind: reflect.Slice, protoreflect.BoolKind: reflect.Bool, protoreflect.Int32Kind: reflect.Int,
		protoreflect.Int64Kind: reflect.Int, protoreflect.EnumKind: reflect.Int,
		protoreflect.MessageKind: reflect.Pointer}[their.Kind()]
	if want != of.Kind() {
		t.Errorf("%s is of kind %v, in the API %v", at, of.Kind(), their.Kind())
	} else if want == reflect.Pointer {
		same(t, of.Elem(), their.Message(), seen)
	}
}

func theirs(t *testing.T, name protoreflect.FullName) protoreflect.Descriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
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
		same(t, reflect.TypeOf(c.req).Elem(), m.Input(), seen)
		if c.answer != nil {
			same(t, reflect.TypeOf(c.answer).Elem(), m.Output(), seen)
		}
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

// fill gives every field a value of its own.
func fill(v reflect.Value, n *int, deep int) {
	const deepest = 12
	if *n++; deep == deepest && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("ü", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n, deep+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Timeout" { // a failure has that, or what it says itself
				fill(v.Field(i), n, deep)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{byte(*n), 0, 255})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n, deep)
		fill(v.Index(1), n, deep)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n, deep)
			fill(value, n, deep)
			v.SetMapIndex(key, value)
		}
	}
}

// TestOthersRead wants the library of protocol buffers to read what is written here, and the other way round, without
// anything being lost.
func TestOthersRead(t *testing.T) {
	ours, read := &Failed{}, &Failed{}
	fill(reflect.ValueOf(ours).Elem(), new(int), 0)
	data := encode(reflect.ValueOf(ours).Elem())
	var their workflowservice.RespondActivityTaskFailedRequest
	if err := proto.Unmarshal(data, &their); err != nil || len(their.ProtoReflect().GetUnknown()) > 0 {
		t.Fatalf("%v, %q", err, their.ProtoReflect().GetUnknown())
	}
	again, err := proto.Marshal(&their)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(again, reflect.ValueOf(read).Elem(), 0); err != nil || !reflect.DeepEqual(ours, read) {
		t.Errorf("%v: %+v, want %+v", err, read, ours)
	}
	own := their.GetFailure().GetApplicationFailureInfo()
	if their.GetFailure().GetCause() == nil || own.GetDetails() == nil ||
		own.GetNextRetryDelay().AsDuration() != ours.Failure.Own.Delay.Span() {
		t.Errorf("%v", &their)
	}
	var heard Heard
	if err := decode(again[:len(again)-1], reflect.ValueOf(read).Elem(), 0); err == nil {
		t.Error("half a message was read")
	}
	data, err = proto.Marshal(&workflowservice.RecordActivityTaskHeartbeatResponse{ActivityPaused: true})
	if err != nil || decode(data, reflect.ValueOf(&heard).Elem(), 0) != nil || heard != (Heard{Paused: true}) {
		t.Errorf("%v, %+v", err, heard)
	}
}

// TestDeep refuses messages in each other without end, which would end the process.
func TestDeep(t *testing.T) {
	f := &failurepb.Failure{}
	for range 100_000 {
		f = &failurepb.Failure{Cause: f}
	}
	data, err := proto.MarshalOptions{}.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(data, reflect.ValueOf(&Failure{}).Elem(), 0); !errors.Is(err, errDeep) {
		t.Error(err)
	}
}

// FuzzDecode reads anything without a panic, and makes messages that nobody trips over.
func FuzzDecode(f *testing.F) {
	for _, c := range calls {
		if c.answer != nil {
			v := reflect.New(reflect.TypeOf(c.answer).Elem())
			fill(v.Elem(), new(int), 0)
			f.Add(encode(v.Elem()))
		}
	}
	f.Add([]byte{8<<3 | 2, 2, 1 << 3, 5}) // an urgency without a count
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range calls {
			if c.answer == nil {
				continue
			}
			v := reflect.New(reflect.TypeOf(c.answer).Elem())
			if decode(data, v.Elem(), 0) == nil {
				encode(v.Elem())
			}
			if r, is := v.Interface().(*Backlogged); is {
				for _, stats := range r.ByPriority {
					if stats == nil {
						t.Error("an urgency has no count")
					}
				}
			}
		}
	})
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
		{&Failure{Message: "timed out", Timeout: &struct{}{}}, "timed out", ""},
		{nil, "", ""},
	} {
		if text, hint := c.f.Explain(); text != c.text || hint != c.hint {
			t.Errorf("%q, %q, want %q, %q", text, hint, c.text, c.hint)
		}
	}
}
