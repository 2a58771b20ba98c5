// Package flow holds what a farm's server, its workers and its clients agree on: the names of jobs, queues and types
// (queue.go), the messages (message.go), and where documents of jobs are kept (document.go).
//
// A task waits in a queue that names a pool of machines and a class of devices: Temporal matches tasks and workers by
// the name of the queue alone. Messages carry names, counts and errors, never documents: these are in the store, and
// so is everything that must last. What becomes of a job is decided by the workflows of vksplat-farmd, package
// vksplat/farmd/flows.
package flow
