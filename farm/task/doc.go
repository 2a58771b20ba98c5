// Package task runs one task of a job: it brings the inputs to the local disk, runs this program as a child, watches
// it, uploads checkpoints and commits the results. It needs no queue: whatever schedules tasks calls it the same way
// and reads the same exit codes.
//
// Start at Run. Its parts share an attempt: the stager (inputs.go) fetches inputs, the supervisor (watch.go) runs the
// child of commands.go and uploads checkpoints, the committer resumes from checkpoints (checkpoint.go) and keeps
// finished results until they are committed (commit.go). exit.go has the exit codes.
//
// Another engine goes in here: it calls Run for each task of a spec.Plan once those in Needs are done, with a unique
// attempt number, a context whose cause says why a task is given up, and Report for people. ExitOf and IsFinal say
// whether another attempt may help, IsAway that the attempt should not count.
// The store alone holds results and checkpoints, so an engine may lose all its own state.
package task
