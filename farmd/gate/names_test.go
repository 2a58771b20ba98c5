package gate

import (
	"fmt"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"vksplat/farm/pass"
)

// Made-up names of devices count: a pass may bring some, all together more, and names that others brought are free.
func TestNames(t *testing.T) {
	g := newGate()
	ask := func(who pass.Who, name string) error {
		g.usage.mu.Lock()
		g.usage.of = nil // this is about names
		g.usage.mu.Unlock()
		return check(t, g, who, servicePrefix+"DescribeTaskQueue", &workflowservice.DescribeTaskQueueRequest{
			Namespace: "vksplat", TaskQueue: &taskqueuepb.TaskQueue{Name: "pool/default/" + name},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY})
	}
	flood := func(who pass.Who) (allowed int) {
		for i := range 2 * MaxNames {
			if ask(who, fmt.Sprintf("device/%s-%d/*", who.Name, i)) == nil {
				allowed++
			}
		}
		return allowed
	}
	if n := flood(worker); n != MaxNames {
		t.Errorf("a pass brought %d names", n)
	}
	for i := range 3 {
		if err := ask(worker, fmt.Sprintf("device/%s-%d/*", worker.Name, i)); err != nil {
			t.Errorf("a name that it uses: %v", err)
		}
	}
	if err := ask(worker, "gpu"); err != nil {
		t.Errorf("a queue that all workers have: %v", err)
	}
	other := worker
	total := MaxNames + 1
	for i := range 2 * MaxAllNames / MaxNames {
		other.Name = fmt.Sprint("gpu", i+2)
		if err := ask(other, fmt.Sprintf("device/%s-7/*", worker.Name)); err != nil {
			t.Fatalf("a name that another pass brought: %v", err)
		}
		total += flood(other)
	}
	if total != MaxAllNames || len(g.names.used) != MaxAllNames {
		t.Errorf("all passes brought %d names, of which %d are kept", total, len(g.names.used))
	}
	if err := ask(other, "vram-24"); err != nil {
		t.Errorf("a queue that all workers have, afterwards: %v", err)
	}
	g.names.swept = g.names.swept.Add(-2 * nameLasts)
	for name, at := range g.names.used {
		g.names.used[name] = at.Add(-2 * nameLasts)
	}
	for _, own := range g.names.of {
		for name, at := range own {
			own[name] = at.Add(-2 * nameLasts)
		}
	}
	if n := flood(worker); n != MaxNames {
		t.Errorf("two days later a pass brought %d names", n)
	}
}

// Names in documents count for their owner, unless workers ask for them.
func TestAdmit(t *testing.T) {
	g := newGate()
	names := func(prefix string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("pool/%s%d/gpu", prefix, i))
		}
		return list
	}
	for _, q := range names("real", MaxNames) {
		if err := g.names.use("gpu1", q, false); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the same job again
		if err := g.Admit("anna", append(names("x", MaxNames), names("real", MaxNames)...)); err != nil {
			t.Error(err)
		}
	}
	if err := g.Admit("anna", names("y", 1)); err == nil || !strings.Contains(err.Error(), "jobs of anna") {
		t.Errorf("one name more: %v", err)
	}
	if err := g.Admit("ben", names("y", 1)); err != nil {
		t.Errorf("another owner: %v", err)
	}
}

// payloads is an input of a workflow.
func payloads(t *testing.T, v any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A job moves to pools that machines have, by the one signal that there is; its memo is as lists show it.
func TestContents(t *testing.T) {
	type object map[string]any
	signal := func(name string, content any) error {
		return check(t, newGate(), anna, servicePrefix+"SignalWorkflowExecution",
			&workflowservice.SignalWorkflowExecutionRequest{Namespace: "vksplat", SignalName: name,
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "anna/garden"}, Input: payloads(t, content)})
	}
	start := func(input any, memo string, content any) error {
		r := goodStart()
		r.Input = payloads(t, input)
		r.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{memo: payloads(t, content).Payloads[0]}}
		return check(t, newGate(), anna, servicePrefix+"StartWorkflowExecution", r)
	}
	query := func(kind string) error {
		return check(t, newGate(), viewer, servicePrefix+"QueryWorkflow", &workflowservice.QueryWorkflowRequest{
			Namespace: "vksplat", Query: &querypb.WorkflowQuery{QueryType: kind}})
	}
	for what, err := range map[string]error{
		"a pool": signal("set", object{"pool": "big"}), "another change": signal("set", object{"paused": true}),
		"its own pool again": signal("set", object{"pool": ""}),
		"a start":            start(object{"key": "k"}, "job", object{"tasks": 100_000}),
		"a start in a pool":  start(object{"pool": "big"}, "job", object{}), "the state": query("state"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a made-up pool": signal("set", object{"pool": "bog"}), "another signal": signal("halt", nil),
		"a signal of numbers":       signal("set", 7),
		"a start in a made-up pool": start(object{"pool": "bog"}, "job", object{}),
		"a start of text":           start("x", "job", object{}),
		"2^63-1 tasks":              start(object{}, "job", object{"tasks": uint64(1)<<63 - 1}),
		"-1 tasks":                  start(object{}, "job", object{"tasks": -1}), "another memo": start(object{}, "jobs", object{}),
		"goroutines": query("__stack_trace"),
	} {
		if err == nil {
			t.Errorf("%s is allowed", what)
		}
	}
}
