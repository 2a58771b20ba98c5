package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
)

// newStore makes roots for inputs and outputs, and the file that says where they are.
func newStore(t *testing.T) (roots store.Roots, file string) {
	t.Helper()
	dir := t.TempDir()
	roots = store.Roots{}
	text := ""
	for _, name := range []string{"outputs", "inputs"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		roots[name] = store.Options{URL: path}
		text += fmt.Sprintf("%s = %q\n", name, path)
	}
	file = filepath.Join(dir, "roots.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return roots, file
}

// demoQueue is where tasks of kind demo wait, which need no device.
var demoQueue = flow.Queue(pass.DefaultPool, "cpu/demo")

// demos is a job of n tasks that need no device.
func demos(name string, n int) string {
	list := "0"
	for i := 1; i < n; i++ {
		list += fmt.Sprintf(",%d", i)
	}
	return fmt.Sprintf("version = 1\nname = %q\n[[task]]\nkind = \"demo\"\nid = \"d\"\nmatrix.seed = [%s]\n", name,
		list)
}

// submit starts a job of an owner, as the client does.
func submit(ctx context.Context, t *testing.T, c client.Client, roots store.Roots, owner,
	document string) (client.WorkflowRun,
	error) {
	t.Helper()
	job, _ := spectest.Job(t, document)
	d, err := flow.Put(ctx, roots, job, owner)
	if err != nil {
		t.Fatal(err)
	}
	return c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: flow.JobID(owner, job.Name),
		TaskQueue: flow.FlowQueue},
		flow.JobType, flow.JobInput{Document: d})
}

func mustSubmit(t *testing.T, c client.Client, roots store.Roots, owner, document string) client.WorkflowRun {
	t.Helper()
	run, err := submit(t.Context(), t, c, roots, owner, document)
	if err != nil {
		t.Fatal(reason(err))
	}
	return run
}

// work takes tasks that need no device, and does nothing but do.
func work(t *testing.T, c client.Client, queue string, slots int, do func(context.Context,
	flow.TaskInput) error) worker.Worker {
	t.Helper()
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true,
		MaxConcurrentActivityExecutionSize: slots, MaxConcurrentActivityTaskPollers: min(slots, 20)})
	w.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: flow.TaskType})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}
