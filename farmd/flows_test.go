package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/proto"

	"vksplat/farm/flow"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/farm/wire"
)

// stock starts Temporal's server as it comes, without our gate, and names its address.
func stock(t *testing.T) string {
	t.Helper()
	db, err := openSQLite(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := createNamespace(&db.main); err != nil {
		t.Fatal(err)
	}
	ports, err := freePorts(len(temporal.Services))
	if err != nil {
		t.Fatal(err)
	}
	cfg, hosts := configOf(settings{}, db, ports)
	s, err := temporal.NewServer(temporal.WithConfig(cfg), temporal.ForServices(temporal.Services),
		temporal.WithStaticHosts(hosts), temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{}))
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return hosts[primitives.FrontendService].Self
}

// TestOwnCluster runs a job on a Temporal cluster that knows nothing of us: flows runs its workflows, and what workers
// and clients say is understood.
func TestOwnCluster(t *testing.T) {
	roots, file := store.Roots{}, filepath.Join(t.TempDir(), "roots.toml")
	var text strings.Builder
	for _, name := range []string{"inputs", "outputs"} {
		roots[name] = store.Options{URL: t.TempDir()}
		fmt.Fprintf(&text, "%s = %q\n", name, roots[name].URL)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	c := &ownCluster{address: stock(t), namespace: namespace, roots: file}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()

	job, _ := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\nid = \"d\"\n")
	document, err := flow.Put(t.Context(), roots, job, "anna")
	if err != nil {
		t.Fatal(err)
	}
	conn := wire.Open(c.address, namespace, nil)
	defer conn.Close()
	must := func(req wire.Request, answer proto.Message) {
		t.Helper()
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := conn.Once(within, req, answer); err != nil {
			t.Fatal(err)
		}
	}
	of := &wire.Execution{Workflow: flow.JobID("anna", "j")}
	must(wire.StartAnew(&wire.Start{Workflow: of.Workflow, Type: &wire.Kind{Name: flow.JobType},
		Queue: wire.QueueOf(flow.FlowQueue), Request: "r",
		Input: wire.PayloadsOf(flow.JobInput{Document: document})}), nil)
	var given wire.Given
	var in flow.TaskInput
	must(&wire.Poll{Queue: wire.QueueOf(flow.Queue("any", "cpu/demo"))}, &given)
	if err := given.Input.Read(&in); err != nil || in.Task != "d" || given.Heartbeat.Span() != 30*time.Second {
		t.Fatalf("%+v, %v, %v", in, given.Heartbeat, err)
	}
	must(&wire.Heartbeat{Token: given.Token, Details: wire.PayloadsOf("half")}, &wire.Heard{})
	var chunk wire.Description
	must(&wire.Describe{Of: &wire.Execution{Workflow: flow.ChunkID(of.Workflow, 0)}}, &chunk)
	said := ""
	if len(chunk.Activities) != 1 || chunk.Activities[0].Beat.Read(&said) != nil || said != "half" {
		t.Errorf("%+v", chunk.Activities)
	}
	// another attempt follows at once, and knows what this one said
	must(&wire.Failed{Token: given.Token, Beat: wire.PayloadsOf("more"), Failure: &wire.Failure{Message: "stopped",
		Own: &wire.ApplicationFailure{Type: "task", Delay: wire.SpanOf(time.Millisecond)}}}, nil)
	must(&wire.Poll{Queue: wire.QueueOf(flow.Queue("any", "cpu/demo"))}, &given)
	if given.Beat.Read(&said) != nil || said != "more" {
		t.Errorf("the next attempt knows %q", said)
	}
	must(&wire.Failed{Token: given.Token, Failure: &wire.Failure{Message: "bad photos",
		Own: &wire.ApplicationFailure{Type: "task", Final: true, Details: wire.PayloadsOf("look there")}}}, nil)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var d wire.Description
		must(&wire.Describe{Of: of}, &d)
		if d.Info.Status == wire.StatusFailed {
			break
		} else if d.Info.Status != wire.StatusRunning || time.Now().After(deadline) {
			t.Fatalf("%+v", d.Info)
		}
	}
	var state flow.State
	var asked wire.Queried
	must(&wire.Query{Of: of, Query: &wire.Kind{Name: flow.StateQuery}}, &asked)
	if err := asked.Result.Read(&state); err != nil || len(state.Failures) != 1 ||
		state.Failures[0].Error != "bad photos" || state.Failures[0].Hint != "look there" {
		t.Errorf("%v, %+v", err, state)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
