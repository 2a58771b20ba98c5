package main

import (
	"errors"
	"os"
	"time"

	"go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/store"
	"vksplat/internal/fault"
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
	roots, err := readRoots(s.roots)
	if err != nil {
		return nil, err
	}
	w := worker.New(e.client, flowQueue, worker.Options{
		// Workflows and expanding are short; documents of thousands of tasks cost a second of a core each.
		MaxConcurrentActivityExecutionSize: 4,
		DisableEagerActivities:             true,
	})
	beat, _ := time.ParseDuration(os.Getenv("VKSPLAT_FARM_HEARTBEAT")) // of tests; without it the usual one
	flow.Register(w, &flow.Expander{Roots: roots, Heartbeat: beat})
	return w, w.Start()
}

// readRoots reads the file that says where roots are; no file, no roots: jobs then end with an error that says so.
func readRoots(file string) (store.Roots, error) {
	if file == "" {
		return store.Roots{}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &fault.Error{Op: "read roots", Path: file, Err: errors.Unwrap(err),
			Hint: "name a file with lines like: outputs = \"file:///srv/farm\"", Kind: fault.ErrSetup}
	}
	return store.ReadRoots(file, data)
}
