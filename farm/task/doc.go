// Package task runs one task of a job: it brings the inputs to the local disk, runs this program as a child, watches
// it, uploads checkpoints and commits the results. It needs no queue: whatever schedules tasks calls it the same way
// and reads the same exit codes.
//
// Start at Run. commands.go fetches the inputs, of which the task's kind makes the child's command line. watch.go runs
// the child, reads what it says and uploads checkpoints. state.go knows what an earlier attempt left, finished.go keeps
// results that are done until they are committed, and exit.go has the exit codes.
//
// Another engine goes in here: it calls Run for each task of a spec.Plan once those in Needs are done, with an attempt
// number that it never gives twice, a context whose cause says why a task is given up, and Report for what people look
// at. ExitOf and IsFinal say of the error whether another attempt may help, IsAway that the attempt should not count.
// The store alone holds results and checkpoints, so an engine may lose all its own state.
package task
