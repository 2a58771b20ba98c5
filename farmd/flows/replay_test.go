package flows

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"vksplat/farm/flow"
)

// replay replays a recorded history with the workflows of a job and of a chunk.
func replay(file string, job, chunk any) error {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(job, workflow.RegisterOptions{Name: flow.JobType})
	r.RegisterWorkflowWithOptions(chunk, workflow.RegisterOptions{Name: chunkType})
	data, err := os.Open(file)
	if err != nil {
		return err
	}
	defer data.Close() // only read
	h, err := client.HistoryFromJSON(data, client.HistoryJSONOptions{})
	if err != nil {
		return err
	}
	id := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return r.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
}

// histories are of real runs, which tests of farmd record (VKSPLAT_RECORD). Those of earlier versions stay: jobs
// outlive upgrades.
func histories(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d histories, %v", len(files), err)
	}
	return files
}

// TestReplay wants this version of the workflows to do what they did when the histories were recorded: jobs that run
// when the server is replaced go on.
func TestReplay(t *testing.T) {
	for _, file := range histories(t) {
		if err := replay(file, job, chunk); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestReplayTells wants changed workflows to be told by TestReplay.
func TestReplayTells(t *testing.T) {
	otherJob := func(ctx workflow.Context, in flow.JobInput) (*flow.State, error) {
		_ = workflow.Sleep(ctx, time.Second) // it was not there
		return job(ctx, in)
	}
	otherChunk := func(ctx workflow.Context, in chunkInput) (*outcome, error) {
		_ = workflow.Sleep(ctx, time.Second)
		return chunk(ctx, in)
	}
	for _, file := range histories(t) {
		if replay(file, otherJob, otherChunk) == nil {
			t.Errorf("%s: nobody has noticed a change", file)
		}
	}
}
