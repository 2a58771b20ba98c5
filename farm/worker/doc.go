// Package worker does the tasks of a farm on this machine. Package flow says what is in their queues, package task does
// one.
//
// Run (worker.go) makes a place of each device, and one for tasks without a device. A place has many queues, of its
// pools and classes: take.go has a free slot poll the one with the most urgent task. perform.go is a task from the
// worker's view: which attempts count, and when another one follows. report.go is what the server hears of it.
package worker
