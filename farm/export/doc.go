// Package export writes a job as native files of schedulers that people have already: Slurm, Kubernetes, and whatever reads Open Job Description. Each file
// calls vksplat farm run-task for a task of the job document beside it, so that results, manifests and resuming are those of the farm's own queue, and a job
// can move between them. The package makes text; it runs nothing and looks at no file.
package export
