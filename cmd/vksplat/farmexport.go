package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/farm/export"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// farmExportOptions is everything that export is asked for.
type farmExportOptions struct {
	file                   string
	out                    string
	slurm, openjd, k8s     bool
	check                  bool
	claims                 []string
	program, roots, work   string
	image, queue, resource string
	gpus, cpus, parallel   int
	maxArray               int
}

// table lists the options.
func (o *farmExportOptions) table() []optionGroup {
	return []optionGroup{{options: []option{
		truth(&o.slurm, "slurm", "write scripts for Slurm"),
		truth(&o.openjd, "openjd", "write a template of Open Job Description, as AWS Deadline Cloud reads"),
		truth(&o.k8s, "k8s", "write Indexed Jobs for Kubernetes"),
		text(&o.out, "output", "write to the new folder `DIR` (required)").letter("o").isFolder(),
		truth(&o.check, "check", "let the scheduler's own tool look at what was written: sbatch --test-only, openjd check or kubectl-validate"),
		text(&o.program, "program", "vksplat on the machines that run tasks, `PATH`"),
		text(&o.roots, "roots", "TOML file `FILE` that says there where the store's roots are (default: one that is written, with inputs beside JOB and outputs in DIR/results)"),
		text(&o.work, "work", "folder `DIR` there for unfinished work, on a local disk (default: run-task's)"),
		integer(&o.gpus, "gpus", "`N` GPUs for a task that needs the device; 0: none, for software Vulkan"),
		integer(&o.cpus, "cpus", "`N` processors for a task (default: the scheduler's)"),
		integer(&o.parallel, "parallel", "at most `N` tasks of a stage at a time (default: any number)"),
		integer(&o.maxArray, "max-array", "with --slurm: the cluster's MaxArraySize is `N`"),
		text(&o.image, "image", "with --k8s: container image `NAME` (required)"),
		other((*listFlag)(&o.claims), "claim", "with --k8s: `ROOT=CLAIM`, a root is on this PersistentVolumeClaim (default: one of the root's name); can be given again"),
		text(&o.resource, "gpu-resource", "with --k8s: a GPU is called `NAME`"),
		text(&o.queue, "queue", "with --k8s: Kueue's local queue `NAME`"),
	}}}
}

// listFlag is a flag that can be given several times.
type listFlag []string

func (f *listFlag) Type() string       { return "TEXT" }
func (f *listFlag) String() string     { return strings.Join(*f, " ") }
func (f *listFlag) Set(s string) error { *f = append(*f, s); return nil }

func (a *app) farmExportCommand() *cobra.Command {
	o := &farmExportOptions{program: "vksplat", gpus: 1, maxArray: export.DefaultMaxArray, resource: "nvidia.com/gpu"}
	cmd := &cobra.Command{
		Use:   "export JOB -o DIR --slurm|--openjd|--k8s",
		Short: "Write a job as files of another scheduler",
		Long: "Write the job JOB as files for Slurm, Open Job Description or Kubernetes, which run its\n" +
			"tasks by vksplat farm run-task. Results, manifests and resuming are the same as in the\n" +
			"farm's own queue, so that a job can move. docs/farm-export.md says how to submit them.",
		Example: "  vksplat farm export job.toml --slurm -o /shared/garden --program /shared/bin/vksplat --check\n" +
			"  vksplat farm export job.toml --k8s -o garden --image registry.example.org/vksplat:1.0\n" +
			"  vksplat farm export job.toml --openjd -o garden",
		Args: one("JOB file"),
	}
	table := o.table()
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func(args []string) error {
		o.file = args[0]
		return a.farmExport(o)
	})
	return cmd
}

// engine is a scheduler that jobs are written for.
type engine struct {
	chosen bool
	write  func(*spec.Job, *spec.Plan, export.Options) ([]export.File, error)
	next   string   // what to do with the folder
	check  []string // program that knows whether the files are right, and its arguments; * is every file
	unset  []string // what it says where it cannot look at them, for want of its settings or its server
}

// engine picks the one that is asked for.
func (o *farmExportOptions) engine() (found *engine, err error) {
	for _, e := range []engine{
		{o.slurm, export.Slurm, "submit it with: bash %s/" + export.SubmitName, []string{"sbatch", "bash", export.SubmitName, "--test-only"},
			[]string{"configuration source", "configuration file", "slurm.conf", "slurm controller", "controller not responding"}},
		{o.openjd, export.OpenJD, "the template is %s/" + export.OpenJDName, []string{"openjd", "openjd", "check", export.OpenJDName}, nil},
		{o.k8s, export.Kubernetes, "submit it with: bash %s/" + export.SubmitName, []string{"kubectl-validate", "kubectl-validate", "*"}, nil},
	} {
		if e.chosen && found != nil {
			return nil, usagef("choose one", "several schedulers are given")
		}
		if e.chosen {
			found = &e
		}
	}
	if found == nil {
		return nil, usagef("give --slurm, --openjd or --k8s", "no scheduler is given")
	}
	return found, nil
}

// options are those of package export.
func (o *farmExportOptions) options() (export.Options, error) {
	e := export.Options{Dir: absolute(o.out), Program: o.program, Roots: o.roots, Work: o.work, GPUs: o.gpus, CPUs: o.cpus, Parallel: o.parallel, MaxArray: o.maxArray,
		Image: o.image, Queue: o.queue, GPUResource: o.resource, Claims: map[string]string{}}
	if !o.k8s && (o.image != "" || o.queue != "" || len(o.claims) > 0) {
		return e, usagef("", "flags --image, --claim and --queue are for --k8s")
	}
	for _, text := range o.claims {
		root, claim, found := strings.Cut(text, "=")
		if !found || root == "" || claim == "" {
			return e, usagef("as in --claim inputs=scans", "flag --claim: %q names no root and its claim", text)
		}
		e.Claims[root] = claim
	}
	if o.k8s && (o.roots != "" || o.work != "") {
		return e, usagef("roots are claims there: --claim inputs=scans", "flags --roots and --work are not for --k8s")
	}
	if o.roots != "" {
		e.Roots = absolute(o.roots)
	} else if !o.k8s {
		e.Roots = filepath.Join(e.Dir, rootsFile)
	}
	return e, nil
}

// rootsFile is where an export says what the store's roots are.
const rootsFile = "roots.toml"

// farmExport writes a job for another scheduler.
func (a *app) farmExport(o *farmExportOptions) error {
	e, err := o.engine()
	if err != nil {
		return err
	}
	if o.out == "" {
		return usagef("as in: vksplat farm export job.toml --slurm -o DIR", "no output folder: -o is required")
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	job, plan, err := readJob(o.file)
	if err != nil {
		return err
	}
	if o.check {
		if _, err := exec.LookPath(e.check[0]); err != nil { // before anything is written: the same command again would find the folder in use
			return usagef("install it, or leave --check out", "flag --check: %s is not installed here", e.check[0])
		}
	}
	files, err := e.write(job, plan, options)
	if err != nil {
		return err
	}
	if err := writeExport(options.Dir, files); err != nil {
		return err
	}
	if o.roots == "" && !o.k8s {
		results := filepath.Join(options.Dir, "results")
		if err := os.Mkdir(results, 0o777); err != nil {
			return folderError(results, err)
		}
		if err := writeFile(options.Dir, export.RootsFile(rootsFile, job, filepath.Dir(absolute(o.file)), results)); err != nil {
			return err
		}
	}
	if o.check {
		if err := e.look(options.Dir, o.out, files); err != nil {
			return err
		}
	}
	a.printf("%s of job %s in %s\n"+e.next+"\n", count(len(plan.Tasks), "task"), scene.Printable(job.Name), o.out, o.out)
	return nil
}

// writeExport makes the folder and its files.
func writeExport(dir string, files []export.File) error {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return usagef("name a new folder: jobs that run may read this one", "%s is not empty", dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return folderError(dir, err)
	}
	for _, f := range files {
		if err := writeFile(dir, f); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(dir string, f export.File) error {
	mode := os.FileMode(0o666)
	if f.Program {
		mode = 0o777
	}
	if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, mode); err != nil {
		return folderError(dir, err)
	}
	return nil
}

// look runs the scheduler's own check in the folder dir, which the user calls out.
func (e *engine) look(dir, out string, files []export.File) error {
	var args []string
	for _, arg := range e.check[1:] {
		if arg != "*" {
			args = append(args, arg)
			continue
		}
		for _, f := range files {
			if filepath.Ext(f.Name) == ".json" {
				args = append(args, f.Name)
			}
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.FieldsFunc(string(said[:min(len(said), mostSaid)]), func(r rune) bool { return r == '\n' || r == '\r' })
	err = fmt.Errorf("%s: %w: %s", e.check[0], err, strings.Join(lines, "; "))
	if slices.ContainsFunc(e.unset, func(text string) bool { return strings.Contains(strings.ToLower(string(said)), text) }) {
		return &scene.Error{Op: "check export", Err: err, Kind: store.ErrSetup,
			Hint: fmt.Sprintf("%s finds no cluster from here, so nobody looked at the files; they are written: where it is set up, cd %s && %s", e.check[0], quoted(out), strings.Join(args, " "))}
	}
	return &scene.Error{Op: "check export", Path: dir, Err: err, Hint: "the scheduler does not take these files; what it says is above"}
}

// mostSaid is how much of what a scheduler's tool says is printed, in bytes.
const mostSaid = 2000
