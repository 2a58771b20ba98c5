// Package worker does the tasks of a farm on this machine. Package flow queues them, package task does one.
//
// Run (worker.go) joins the queues of its pools, and of the classes of its devices. Temporal's SDK takes a slot before
// it asks a queue for a task, and a device has one slot and many queues: slots.go gives it to the queue that has
// something to do. perform.go is a task from the worker's view: which attempts count, when another one follows, and
// what the server is told meanwhile.
package worker
