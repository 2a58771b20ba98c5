package proof

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/api/adminservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

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

// invoke calls a method as somebody.
func invoke(ctx context.Context, c *grpc.ClientConn, method string, req, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return c.Invoke(ctx, method, req, answer)
}

const service = "/temporal.api.workflowservice.v1.WorkflowService/"

// attack is something that somebody must not be able to do.
type attack struct {
	what, method string
	req          proto.Message
}

// TestAttacks has a viewer, workers and a foreign submitter try what they must not, against a job that runs: by the
// names of its workflow, its run and its activity, which all of them can know. Nothing of it changes.
func TestAttacks(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	anna, ben := s.join("--role", "submit", "--name", "anna"), s.join("--role", "submit", "--name", "ben")
	viewer, gpu1 := s.join("--role", "view", "--name", "wall"), s.join("--role", "worker", "--name", "gpu1")
	gpu2 := s.join("--role", "worker", "--name", "gpu2", "--pools", "other")
	run := mustSubmit(t, s.client(anna), roots, "anna", demos("garden", 2))
	task := pollTask(t, s.conn(gpu1))
	attacks := readAttacks(t, run, task)

	tried, let := 0, []string{}
	for _, p := range []*pass.Pass{viewer, ben, gpu1, gpu2} {
		c := s.conn(p)
		for _, a := range attacks {
			if p == gpu1 && strings.HasPrefix(a.what, "token") {
				continue
			}
			tried++
			err := invoke(t.Context(), c, service+a.method, a.req, answerOf(t, a.method))
			if !refused(err) {
				let = append(let, p.Name+": "+a.what+": "+status.Convert(err).Message())
			}
		}
	}
	if tried < 250 || len(let) > 0 {
		t.Errorf("%d attempts, not refused: %d\n%s", tried, len(let), strings.Join(let, "\n"))
	}
	t.Logf("%d attempts refused", tried)

	// The job is as it was: gpu1 finishes it.
	own := []string{"gpu1", "farmd", "history-service"}
	for _, name := range identities(t, s.client(viewer), task.GetWorkflowExecution()) {
		if !slices.Contains(own, name) {
			t.Errorf("the history names %s", name)
		}
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

// pollTask waits for a task, as a worker's SDK does.
func pollTask(t *testing.T, c *grpc.ClientConn) *workflowservice.PollActivityTaskQueueResponse {
	t.Helper()
	poll := &workflowservice.PollActivityTaskQueueRequest{Namespace: "vksplat",
		TaskQueue: &taskqueuepb.TaskQueue{Name: demoQueue}, Identity: "root"}
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

// readAttacks reads the list of attacks, for a job and a task of it that a worker has.
func readAttacks(t *testing.T, run client.WorkflowRun, task *workflowservice.PollActivityTaskQueueResponse) (
	list []attack) {
	t.Helper()
	text, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(task.TaskToken)
	changed[len(changed)-1] ^= 1
	words := strings.NewReplacer("$PARTRUN", task.GetWorkflowExecution().GetRunId(), "$PART",
		task.GetWorkflowExecution().GetWorkflowId(), "$JOB", run.GetID(), "$RUN", run.GetRunID(),
		"$ACTIVITY", task.GetActivityId(), "$TAKEN", base64.StdEncoding.EncodeToString(task.TaskToken),
		"$CHANGED", base64.StdEncoding.EncodeToString(changed),
		"$FORGED", base64.StdEncoding.EncodeToString(forged(t, task.TaskToken)))
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " | ")
		a := attack{what: parts[0], method: parts[1], req: messageOf(t, methodOf(t, parts[1]).Input())}
		if err := protojson.Unmarshal([]byte(words.Replace(parts[2])), a.req); err != nil {
			t.Fatalf("%s: %v", a.what, err)
		}
		if m := a.req.ProtoReflect(); !strings.Contains(parts[2], "temporal-system") && a.what != "a namespace" {
			if f := m.Descriptor().Fields().ByName("namespace"); f != nil {
				m.Set(f, protoreflect.ValueOfString("vksplat"))
			}
		}
		list = append(list, a)
	}
	return list
}

// forged is a token without its seal: anybody can make it who can see a history.
func forged(t *testing.T, token []byte) (plain []byte) {
	t.Helper()
	for rest := token; len(rest) > 0; {
		field, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			t.Fatal("the token is no message")
		}
		if field != 1000 {
			plain = append(plain, rest[:n]...)
		}
		rest = rest[n:]
	}
	if len(plain) == len(token) {
		t.Error("the token has no seal")
	}
	return plain
}

// methodOf is a method of WorkflowService.
func methodOf(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	file := workflowservice.File_temporal_api_workflowservice_v1_service_proto
	m := file.Services().Get(0).Methods().ByName(protoreflect.Name(name))
	if m == nil {
		t.Fatalf("there is no method %s", name)
	}
	return m
}

// answerOf is an empty answer of a method.
func answerOf(t *testing.T, method string) proto.Message {
	t.Helper()
	return messageOf(t, methodOf(t, method).Output())
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
					open = append(open, string(m.Name()))
				}
			}
		}
		t.Logf("%s: %d methods closed, open %v", p.Role, closed, open)
		if closed < 160 || len(open) > may[p.Role] {
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
func identities(t *testing.T, c client.Client, of *commonpb.WorkflowExecution) (names []string) {
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
