package proof

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	batchpb "go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/api/adminservice/v1"
	tokenspb "go.temporal.io/server/api/token/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
)

// refused says that the server has decided that somebody may not do something, or that it does not serve it at all.
func refused(err error) bool {
	code := status.Code(err)
	return code == codes.PermissionDenied || code == codes.Unimplemented ||
		err != nil && strings.HasSuffix(err.Error(), "Request unauthorized.") // of streams
}

// reason is why something was refused.
func reason(err error) string {
	var denied *serviceerror.PermissionDenied
	if errors.As(err, &denied) || errors.As(serviceerror.FromStatus(status.Convert(err)), &denied) {
		return denied.Reason
	}
	return err.Error()
}

// attack is something that somebody must not be able to do.
type attack struct {
	what   string
	method string // of WorkflowService
	req    proto.Message
}

// invoke calls a method as somebody.
func invoke(ctx context.Context, c *grpc.ClientConn, method string, req, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return c.Invoke(ctx, method, req, answer)
}

const service = "/temporal.api.workflowservice.v1.WorkflowService/"

// TestAttacks has a viewer, workers and a foreign submitter try what they must not, against a job that runs: by the
// names of its workflow, its run and its activity, which all of them can know. Nothing of it changes.
func TestAttacks(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna, ben := s.join("--role", "submit", "--name", "anna"), s.join("--role", "submit", "--name", "ben")
	viewer := s.join("--role", "view", "--name", "wall")
	gpu1, gpu2 := s.join("--role", "worker", "--name", "gpu1"), s.join("--role", "worker", "--name", "gpu2", "--pools", "other")
	client := s.client(anna)
	run := mustSubmit(t, client, roots, "anna", demos("garden", 2))

	// gpu1 takes a task, as a worker's SDK does.
	poll := &workflowservice.PollActivityTaskQueueRequest{Namespace: "vksplat",
		TaskQueue: &taskqueuepb.TaskQueue{Name: demoQueue}, Identity: "root"}
	task := pollTask(t, s.conn(gpu1), poll)
	at := task.GetWorkflowExecution()
	steps := attacksOn(run.GetID(), run.GetRunID(), task)

	tried, let := 0, []string{}
	for _, p := range []*pass.Pass{viewer, ben, gpu1, gpu2} {
		c := s.conn(p)
		for _, a := range steps {
			if p == gpu1 && strings.HasPrefix(a.what, "own") {
				continue
			}
			tried++
			if err := invoke(t.Context(), c, service+a.method, a.req, answerOf(t, a.method)); !refused(err) {
				let = append(let, p.Name+": "+a.what+": "+status.Convert(err).Message())
			}
		}
	}
	if tried < 150 || len(let) > 0 {
		t.Errorf("%d attempts, not refused: %d\n%s", tried, len(let), strings.Join(let, "\n"))
	}
	t.Logf("%d attempts refused", tried)

	// The job is as it was: anna's worker finishes it.
	if who := identities(t, s.client(viewer), at); slices.ContainsFunc(who, func(name string) bool { return name != "gpu1" && name != "farmd" && name != "history-service" }) {
		t.Errorf("the history names %q", who)
	}
	done := &workflowservice.RespondActivityTaskCompletedRequest{Namespace: "vksplat", TaskToken: task.TaskToken}
	if err := invoke(t.Context(), s.conn(gpu1), service+"RespondActivityTaskCompleted", done,
		&workflowservice.RespondActivityTaskCompletedResponse{}); err != nil {
		t.Errorf("gpu1 reports its own task: %v", err)
	}
	work(t, s.client(gpu1), demoQueue, 1, func(context.Context, flow.TaskInput) error { return nil })
	var state flow.State
	if err := run.Get(t.Context(), &state); err != nil || state.Done != 2 {
		t.Errorf("the job ended with %+v, %v", state, err)
	}
	mustSubmit(t, s.client(ben), roots, "ben", demos("own", 1)) // who was refused may do what is his
}

// pollTask waits for a task.
func pollTask(t *testing.T, c *grpc.ClientConn, poll *workflowservice.PollActivityTaskQueueRequest) *workflowservice.PollActivityTaskQueueResponse {
	t.Helper()
	for {
		task := &workflowservice.PollActivityTaskQueueResponse{}
		if err := invoke(t.Context(), c, service+"PollActivityTaskQueue", poll, task); err != nil {
			t.Fatal(reason(err))
		}
		if len(task.GetTaskToken()) > 0 {
			return task
		}
	}
}

// forged is a task token as anybody can make it who can see a history.
func forged(t *workflowservice.PollActivityTaskQueueResponse) []byte {
	token := &tokenspb.Task{}
	if err := proto.Unmarshal(t.TaskToken, token); err != nil {
		panic(err)
	}
	token.ProtoReflect().SetUnknown(nil) // the seal
	data, err := proto.Marshal(token)
	if err != nil {
		panic(err)
	}
	return data
}

// attacksOn lists what nobody may do to anna's job but she, and to gpu1's task but gpu1.
func attacksOn(id, runID string, task *workflowservice.PollActivityTaskQueueResponse) []attack {
	const ns = "vksplat"
	job, part := &commonpb.WorkflowExecution{WorkflowId: id}, task.GetWorkflowExecution()
	kind, queue := &commonpb.WorkflowType{Name: "job"}, &taskqueuepb.TaskQueue{Name: "flow"}
	start := func(id string) *workflowservice.StartWorkflowExecutionRequest {
		return &workflowservice.StartWorkflowExecutionRequest{Namespace: ns, WorkflowId: id, WorkflowType: kind, TaskQueue: queue}
	}
	eager := start("ben/eager")
	eager.RequestEagerExecution = true
	callback := start("ben/callback")
	callback.CompletionCallbacks = []*commonpb.Callback{{}}
	cron := start("ben/cron")
	cron.CronSchedule = "* * * * *"
	chunk := start("ben/chunk")
	chunk.WorkflowType = &commonpb.WorkflowType{Name: "chunk"}
	elsewhere := start("ben/elsewhere")
	elsewhere.TaskQueue = &taskqueuepb.TaskQueue{Name: "pool/any/cpu/demo"}
	share := start("ben/share")
	share.Priority = &commonpb.Priority{FairnessKey: "anna"}
	system := start("ben/system")
	system.Namespace = "temporal-system"
	foreign := start("anna/more")
	list := []attack{
		{"start as anna", "StartWorkflowExecution", foreign},
		{"start over anna's job", "StartWorkflowExecution", start(id)},
		{"start a chunk", "StartWorkflowExecution", chunk},
		{"start elsewhere", "StartWorkflowExecution", elsewhere},
		{"start with a foreign share", "StartWorkflowExecution", share},
		{"start in the system's namespace", "StartWorkflowExecution", system},
		{"get a workflow task by an eager start", "StartWorkflowExecution", eager},
		{"have the server call somebody", "StartWorkflowExecution", callback},
		{"start again and again", "StartWorkflowExecution", cron},
		{"cancel", "RequestCancelWorkflowExecution", &workflowservice.RequestCancelWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: job}},
		{"cancel a part", "RequestCancelWorkflowExecution", &workflowservice.RequestCancelWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: part}},
		{"terminate", "TerminateWorkflowExecution", &workflowservice.TerminateWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: job}},
		{"terminate a part", "TerminateWorkflowExecution", &workflowservice.TerminateWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: part}},
		{"signal", "SignalWorkflowExecution", &workflowservice.SignalWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: job, SignalName: "set"}},
		{"signal a part", "SignalWorkflowExecution", &workflowservice.SignalWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: part, SignalName: "before"}},
		{"signal with start", "SignalWithStartWorkflowExecution", &workflowservice.SignalWithStartWorkflowExecutionRequest{Namespace: ns, WorkflowId: id, WorkflowType: kind, TaskQueue: queue, SignalName: "set"}},
		{"reset", "ResetWorkflowExecution", &workflowservice.ResetWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: runID}, WorkflowTaskFinishEventId: 4}},
		{"delete", "DeleteWorkflowExecution", &workflowservice.DeleteWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: job}},
		{"pause", "PauseWorkflowExecution", &workflowservice.PauseWorkflowExecutionRequest{Namespace: ns, WorkflowId: id}},
		{"unpause", "UnpauseWorkflowExecution", &workflowservice.UnpauseWorkflowExecutionRequest{Namespace: ns, WorkflowId: id}},
		{"update", "UpdateWorkflowExecution", &workflowservice.UpdateWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: job}},
		{"update options", "UpdateWorkflowExecutionOptions", &workflowservice.UpdateWorkflowExecutionOptionsRequest{Namespace: ns, WorkflowExecution: job, WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{}}},
		{"two at once", "ExecuteMultiOperation", &workflowservice.ExecuteMultiOperationRequest{Namespace: ns, Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{{
			Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: foreign}}}}},
		{"pause the task", "PauseActivity", &workflowservice.PauseActivityRequest{Namespace: ns, Execution: part, Activity: &workflowservice.PauseActivityRequest_Id{Id: task.ActivityId}}},
		{"unpause the task", "UnpauseActivity", &workflowservice.UnpauseActivityRequest{Namespace: ns, Execution: part, Activity: &workflowservice.UnpauseActivityRequest_Id{Id: task.ActivityId}}},
		{"reset the task", "ResetActivity", &workflowservice.ResetActivityRequest{Namespace: ns, Execution: part, Activity: &workflowservice.ResetActivityRequest_Id{Id: task.ActivityId}}},
		{"move the task", "UpdateActivityOptions", &workflowservice.UpdateActivityOptionsRequest{Namespace: ns, Execution: part, ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: "pool/other/cpu"}}, Activity: &workflowservice.UpdateActivityOptionsRequest_Id{Id: task.ActivityId}}},
		{"a standalone activity", "StartActivityExecution", &workflowservice.StartActivityExecutionRequest{Namespace: ns, ActivityId: "ben/x", ActivityType: &commonpb.ActivityType{Name: "task"}, TaskQueue: &taskqueuepb.TaskQueue{Name: "pool/any/cpu/demo"}, StartToCloseTimeout: durationpb.New(time.Minute)}},
		{"a batch", "StartBatchOperation", &workflowservice.StartBatchOperationRequest{Namespace: ns, JobId: "b", Reason: "r", VisibilityQuery: "WorkflowType = 'job'", Operation: &workflowservice.StartBatchOperationRequest_TerminationOperation{TerminationOperation: &batchpb.BatchOperationTermination{}}}},
		{"a schedule", "CreateSchedule", &workflowservice.CreateScheduleRequest{Namespace: ns, ScheduleId: "s", Schedule: &schedulepb.Schedule{Action: &schedulepb.ScheduleAction{}}}},
		{"a namespace", "RegisterNamespace", &workflowservice.RegisterNamespaceRequest{Namespace: "mine", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)}},
		{"update the namespace", "UpdateNamespace", &workflowservice.UpdateNamespaceRequest{Namespace: ns}},
		{"another namespace", "DescribeNamespace", &workflowservice.DescribeNamespaceRequest{Namespace: "temporal-system"}},
		{"a rule", "CreateWorkflowRule", &workflowservice.CreateWorkflowRuleRequest{Namespace: ns}},
		{"limits of a queue", "UpdateTaskQueueConfig", &workflowservice.UpdateTaskQueueConfigRequest{Namespace: ns, TaskQueue: "pool/any/cpu/demo"}},
		{"versions of a queue", "UpdateWorkerVersioningRules", &workflowservice.UpdateWorkerVersioningRulesRequest{Namespace: ns, TaskQueue: "pool/any/cpu/demo"}},
		{"a deployment", "SetWorkerDeploymentCurrentVersion", &workflowservice.SetWorkerDeploymentCurrentVersionRequest{Namespace: ns, DeploymentName: "d", BuildId: "b"}},
		{"Nexus", "PollNexusTaskQueue", &workflowservice.PollNexusTaskQueueRequest{Namespace: ns, TaskQueue: queue}},
		{"a Nexus operation", "StartNexusOperationExecution", &workflowservice.StartNexusOperationExecutionRequest{Namespace: ns}},
		{"workflow tasks", "PollWorkflowTaskQueue", &workflowservice.PollWorkflowTaskQueueRequest{Namespace: ns, TaskQueue: queue}},
		{"answer a query", "RespondQueryTaskCompleted", &workflowservice.RespondQueryTaskCompletedRequest{Namespace: ns, TaskToken: []byte("x")}},
		{"complete a workflow task", "RespondWorkflowTaskCompleted", &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: ns, TaskToken: forged(task)}},
		{"the server's queue", "PollActivityTaskQueue", &workflowservice.PollActivityTaskQueueRequest{Namespace: ns, TaskQueue: queue}},
		{"a partition of it", "PollActivityTaskQueue", &workflowservice.PollActivityTaskQueueRequest{Namespace: ns, TaskQueue: &taskqueuepb.TaskQueue{Name: "/_sys/flow/1"}}},
		{"a foreign pool", "PollActivityTaskQueue", &workflowservice.PollActivityTaskQueueRequest{Namespace: ns, TaskQueue: &taskqueuepb.TaskQueue{Name: "pool/third/cpu"}}},
		{"complete by id", "RespondActivityTaskCompletedById", &workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: ns, WorkflowId: part.WorkflowId, RunId: part.RunId, ActivityId: task.ActivityId}},
		{"fail by id", "RespondActivityTaskFailedById", &workflowservice.RespondActivityTaskFailedByIdRequest{Namespace: ns, WorkflowId: part.WorkflowId, RunId: part.RunId, ActivityId: task.ActivityId}},
		{"heartbeat by id", "RecordActivityTaskHeartbeatById", &workflowservice.RecordActivityTaskHeartbeatByIdRequest{Namespace: ns, WorkflowId: part.WorkflowId, RunId: part.RunId, ActivityId: task.ActivityId}},
	}
	for what, token := range map[string][]byte{"forged": forged(task), "own": task.TaskToken,
		"changed": append(slices.Clone(task.TaskToken[:len(task.TaskToken)-1]), task.TaskToken[len(task.TaskToken)-1]^1)} {
		list = append(list,
			attack{what + " token: complete", "RespondActivityTaskCompleted", &workflowservice.RespondActivityTaskCompletedRequest{Namespace: ns, TaskToken: token}},
			attack{what + " token: fail", "RespondActivityTaskFailed", &workflowservice.RespondActivityTaskFailedRequest{Namespace: ns, TaskToken: token}},
			attack{what + " token: cancel", "RespondActivityTaskCanceled", &workflowservice.RespondActivityTaskCanceledRequest{Namespace: ns, TaskToken: token}},
			attack{what + " token: heartbeat", "RecordActivityTaskHeartbeat", &workflowservice.RecordActivityTaskHeartbeatRequest{Namespace: ns, TaskToken: token}})
	}
	return list
}

// answerOf is an empty answer of a method.
func answerOf(t *testing.T, method string) proto.Message {
	t.Helper()
	m := workflowservice.File_temporal_api_workflowservice_v1_service_proto.Services().Get(0).Methods().ByName(protoreflect.Name(method))
	if m == nil {
		t.Fatalf("there is no method %s", method)
	}
	return messageOf(t, m.Output())
}

func messageOf(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// TestAllMethods calls every method of every service that the server has, as each role: what is not open is refused
// before the server looks at the request.
func TestAllMethods(t *testing.T) {
	s := serve(t)
	// What roles may call is a table in package gate's test; here it is counted.
	may := map[pass.Role]int{pass.View: 14, pass.Submit: 18, pass.Admin: 18, pass.Worker: 9}
	for _, p := range []*pass.Pass{
		s.join("--role", "view", "--name", "wall"), s.join("--role", "submit", "--name", "ben"),
		s.join("--role", "worker", "--name", "gpu1"), s.join("--role", "admin", "--name", "root"),
	} {
		c := s.conn(p)
		open, closed := []string{}, 0
		for _, file := range []protoreflect.FileDescriptor{
			workflowservice.File_temporal_api_workflowservice_v1_service_proto,
			operatorservice.File_temporal_api_operatorservice_v1_service_proto,
			adminservice.File_temporal_server_api_adminservice_v1_service_proto,
		} {
			service := file.Services().Get(0)
			for i := range service.Methods().Len() {
				m := service.Methods().Get(i)
				method := "/" + string(service.FullName()) + "/" + string(m.Name())
				if err := call(t, c, method, m); refused(err) && !strings.Contains(err.Error(), "only the namespace") {
					closed++
				} else {
					open = append(open, string(m.Name())+" "+status.Convert(err).Message())
				}
			}
		}
		t.Logf("%s: %d methods closed, open %v", p.Role, closed, open)
		if closed < 100 || len(open) > may[p.Role] {
			t.Errorf("%s: %d methods closed, %d open: %v", p.Role, closed, len(open), open)
		}
	}
}

// call calls a method with an empty request that names the farm's namespace.
func call(t *testing.T, c *grpc.ClientConn, method string, m protoreflect.MethodDescriptor) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req := messageOf(t, m.Input())
	if f := m.Input().Fields().ByName("namespace"); f != nil && f.Kind() == protoreflect.StringKind {
		req.ProtoReflect().Set(f, protoreflect.ValueOfString("vksplat"))
	}
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return c.Invoke(ctx, method, req, messageOf(t, m.Output()))
	}
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err == nil {
		err = stream.RecvMsg(messageOf(t, m.Output()))
	}
	return err
}

// identities lists who has done something, by a workflow's history.
func identities(t *testing.T, c interface {
	WorkflowService() workflowservice.WorkflowServiceClient
}, of *commonpb.WorkflowExecution) (names []string) {
	t.Helper()
	resp, err := c.WorkflowService().GetWorkflowExecutionHistory(t.Context(),
		&workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: "vksplat", Execution: of})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range resp.GetHistory().GetEvents() {
		e.ProtoReflect().Range(func(_ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			m, is := v.Interface().(protoreflect.Message)
			if !is {
				return true
			}
			if f := m.Descriptor().Fields().ByName("identity"); f != nil && m.Get(f).String() != "" {
				names = append(names, m.Get(f).String())
			}
			return true
		})
	}
	return names
}
