// Package flows runs jobs as workflows of Temporal.
//
// A job is a workflow (job.go). It has its document planned by an activity (expand.go), which cuts the tasks into
// chunks of at most 500, and runs each chunk as a child (chunk.go), because the history of a workflow is bounded.
// Chunks schedule each task as an activity, in the queue of its pool and class. Package vksplat/farm/worker runs these
// activities. A job that is submitted again, to another server too, schedules only what has no results.
//
// Workflow code is replayed from histories, so a change of what it does breaks jobs that run. Guard each such change by
// workflow.GetVersion, or by what an activity returned, which the history has (Outline.Window, Item.Models). TestReplay
// replays recorded histories and shows what would break.
package flows
