// Package export writes a job as files for schedulers that a site already runs: Slurm and Kubernetes. Every task
// becomes a call of vksplat farm run-task with the job document that lies beside these files, so results, manifests and
// checkpoints are the same under all of them.
//
// The package produces text only; it runs nothing and reads no file. Each scheduler is one function from a Job, its
// Plan and Options to a list of Files: start at Slurm. No text of the document gets into scripts or manifests.
package export
