// Package local runs the tasks of a job on this machine, without a server: one that needs a device on each device at a
// time, others beside them. It keeps nothing of its own but what people look at. The store says what is done and what
// failed for good, so the same call continues after a kill or a power cut.
//
// Run (run.go) is an event loop over task.Run: it starts what is ready, waits for an end, and decides what that means
// for the others. record.go keeps Status, which Report and the page show.
//
// An engine for many machines takes the place of this package, not of package task, whose comment says what it calls.
// An engine that writes the same status file into the store has the same page.
package local
