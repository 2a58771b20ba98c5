package main

import (
	"os"
	"time"

	"go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/store"
)

// What the workflows of package flow are called by.
const (
	namespace = flow.Namespace
	flowQueue = flow.FlowQueue
	flowType  = flow.JobType
)

// startFlows runs workflows: here, and nowhere else. Who completes workflow tasks can schedule anything for anybody,
// so the gate lets no pass do it.
func startFlows(s settings, e *engine) (worker.Worker, error) {
	roots := store.Roots{} // without a file jobs end with an error that says so
	if s.roots != "" {
		var err error
		if roots, err = store.ReadRootsFile(s.roots); err != nil {
			return nil, err
		}
	}
	w := worker.New(e.client, flowQueue, worker.Options{
		// Workflows and expanding are short; documents of thousands of tasks cost a second of a core each.
		MaxConcurrentActivityExecutionSize: 4,
		DisableEagerActivities:             true,
		WorkerStopTimeout:                  10 * time.Second, // else what is planned then begins again later
	})
	beat, _ := time.ParseDuration(os.Getenv("VKSPLAT_FARM_HEARTBEAT")) // of tests; without it the usual one
	flow.Register(w, &flow.Expander{Roots: roots, Heartbeat: beat})
	return w, w.Start()
}
