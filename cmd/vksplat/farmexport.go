package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vksplat/farm/client"
	"vksplat/farm/export"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
)

// engine is a scheduler that jobs are written for.
type engine struct {
	name  string
	write func(*spec.Job, *spec.Plan, export.Options) ([]export.File, error)
	flags []string // of export that are for some schedulers only, and for this one
	check []string // program that knows whether the files are right, and its arguments; * is every JSON file
	unset []string // what it says where it cannot look at them, for want of its settings or its server
}

var engines = []*engine{
	{name: "slurm", write: export.Slurm,
		flags: []string{"check", "roots", "work", "parallel", "max-array"},
		check: []string{"sbatch", "bash", export.SubmitName, "--test-only"},
		unset: []string{"configuration source", "configuration file", "slurm.conf", "slurm controller",
			"controller not responding"}},
	{name: "kubernetes", write: export.Kubernetes,
		flags: []string{"check", "parallel", "image", "claim", "queue", "gpu-resource"},
		check: []string{"kubectl-validate", "kubectl-validate", "*"}},
}

// templates are those for other schedulers, by the name of the scheduler.
var templates = map[string]string{"openjd": "openjd.yaml", "opencue": "opencue.py", "htcondor": "htcondor.dag"}

// engineNames lists the schedulers as --to takes them.
func engineNames() (names []string) {
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// farmExportOptions is everything that export is asked for.
type farmExportOptions struct {
	export.Options
	file    string
	out, to string
	check   bool
	claims  []string
	roots   string
}

// table lists the options.
func (o *farmExportOptions) table() []optionGroup {
	return []optionGroup{{options: []option{
		other((*schedulerFlag)(&o.to), "to", "write for `SCHEDULER`: slurm or kubernetes (required)"),
		text(&o.out, "output", "write to the new folder `DIR` (required)").letter("o").isFolder(),
		truth(&o.check, "check",
			"check the files with the scheduler's own tool; sbatch --test-only or kubectl-validate"),
		text(&o.Program, "program", "`PATH` of vksplat on the machines that run tasks"),
		text(&o.roots, "roots",
			"slurm: TOML `FILE` there with the store's roots (default: export writes one); that has inputs beside JOB, "+
				"outputs in DIR/results"),
		text(&o.Work, "work",
			"slurm: local folder `DIR` there for unfinished work (default: the scheduler's or run-task's)"),
		integer(&o.GPUs, "gpus", "GPUs of a task that needs the device; 0: none, for software Vulkan"),
		integer(&o.CPUs, "cpus", "processors of a task (default: the scheduler's)"),
		integer(&o.MemoryGB, "memory", "memory of a task in GB (default: the scheduler's)"),
		integer(&o.Parallel, "parallel", "most tasks of a stage at a time (default: any number)"),
		integer(&o.MaxArray, "max-array", "slurm: the cluster's MaxArraySize"),
		text(&o.Image, "image", "kubernetes: container image `NAME` (required)"),
		other((*listFlag)(&o.claims), "claim",
			"kubernetes: `ROOT=CLAIM`, a root's PersistentVolumeClaim; may be repeated (default: the root's name)"),
		text(&o.GPUResource, "gpu-resource", "kubernetes: resource `NAME` of a GPU"),
		text(&o.Queue, "queue", "kubernetes: local queue `NAME` of Kueue"),
	}}}
}

// schedulerFlag is the name of a scheduler that jobs are written for.
type schedulerFlag string

func (f *schedulerFlag) Type() string   { return "SCHEDULER" }
func (f *schedulerFlag) String() string { return string(*f) }

// Set refuses a scheduler that jobs are not written for, and names the template if there is one.
func (f *schedulerFlag) Set(s string) error {
	if file := templates[s]; file != "" {
		return fault.Usagef("start from examples/farm/"+file+"; docs/farm-export.md says how to adapt it",
			"%s has a template, not an exporter", s)
	}
	if !slices.Contains(engineNames(), s) {
		return fault.Usagef("docs/farm-export.md has templates for others", "%q is not one of %s", s,
			strings.Join(engineNames(), ", "))
	}
	*f = schedulerFlag(s)
	return nil
}

// listFlag is a flag that can be given several times.
type listFlag []string

func (f *listFlag) Type() string       { return "TEXT" }
func (f *listFlag) String() string     { return strings.Join(*f, " ") }
func (f *listFlag) Set(s string) error { *f = append(*f, s); return nil }

func farmExportCommand(console *cli.Console) *cobra.Command {
	o := &farmExportOptions{Options: export.Options{Program: "vksplat", GPUs: 1, MaxArray: export.DefaultMaxArray,
		GPUResource: "nvidia.com/gpu", Claims: map[string]string{}}}
	cmd := &cobra.Command{
		Use:   "export JOB -o DIR --to SCHEDULER",
		Short: "Write a job as files for a scheduler",
		Long: "Write the job JOB as files for Slurm or Kubernetes, which run its tasks with vksplat farm\n" +
			"run-task. Results, manifests and resuming are the same everywhere, so a job can move.\n" +
			"docs/farm-export.md says how to submit it, and has templates for other schedulers.",
		Example: "  vksplat farm export job.toml --to slurm -o /shared/garden \\\n" +
			"    --program /shared/bin/vksplat --check\n" +
			"  vksplat farm export job.toml --to kubernetes -o garden \\\n" +
			"    --image registry.example.org/vksplat:1.0",
		Args: one("JOB file"),
	}
	return newCommand(console, cmd, o.table(), helpLayout{}, func(flags *pflag.FlagSet, args []string) error {
		o.file = args[0]
		return farmExport(console, o, flags.Changed)
	})
}

// engine returns the scheduler that is asked for, and refuses flags that it has no use for.
func (o *farmExportOptions) engine(given func(string) bool) (*engine, error) {
	if o.to == "" {
		return nil, fault.Usagef("give --to "+wording.Or(engineNames()), "no scheduler is given")
	}
	e := engines[slices.IndexFunc(engines, func(e *engine) bool { return e.name == o.to })]
	for _, other := range engines {
		for _, flag := range other.flags {
			if !given(flag) || slices.Contains(e.flags, flag) {
				continue
			}
			hint := "leave it out"
			if flag == "roots" && e.name == "kubernetes" {
				hint = "roots are claims there: --claim inputs=scans"
			}
			return nil, fault.Usagef(hint, "flag --%s is not for %s", flag, e.name)
		}
	}
	return e, nil
}

// ownRoots says that the export has a file of roots of its own.
func (o *farmExportOptions) ownRoots(e *engine) bool {
	return o.roots == "" && slices.Contains(e.flags, "roots")
}

// fill adds to the options of package export what no flag gives as it is.
func (o *farmExportOptions) fill(e *engine) error {
	o.Dir = output.Absolute(o.out)
	for _, text := range o.claims {
		root, claim, found := strings.Cut(text, "=")
		if !found || root == "" || claim == "" {
			return fault.Usagef("as in --claim inputs=scans", "flag --claim: %q is not ROOT=CLAIM", text)
		}
		o.Claims[root] = claim
	}
	if o.roots != "" {
		o.Roots = output.Absolute(o.roots)
	} else if o.ownRoots(e) {
		o.Roots = filepath.Join(o.Dir, rootsFile)
	}
	return nil
}

// inputs is the folder of the job's inputs on this machine, if no file of roots says otherwise.
func (o *farmExportOptions) inputs() string { return filepath.Dir(output.Absolute(o.file)) }

// resultsFolder is where an export has results go, if nothing else is said.
const resultsFolder = "results"

// rootsFile is where an export says what the store's roots are.
const rootsFile = "roots.toml"

// farmExport writes a job for a scheduler. given says which flags were.
func farmExport(console *cli.Console, o *farmExportOptions, given func(string) bool) error {
	e, err := o.engine(given)
	if err != nil {
		return err
	}
	if o.out == "" {
		return fault.Usagef("as in: vksplat farm export job.toml --to slurm -o DIR", "no output folder: -o is required")
	}
	if err := o.fill(e); err != nil {
		return err
	}
	job, plan, err := readJob(o.file)
	if err != nil {
		return err
	}
	if err := o.checkInputs(e, job, plan); err != nil {
		return err
	}
	if o.check { // before anything is written: the same command again would find the folder in use
		if _, err := exec.LookPath(e.check[0]); err != nil {
			return fault.Usagef("install it, or leave --check out", "flag --check: %s is not installed here",
				e.check[0])
		}
	}
	files, err := e.write(job, plan, o.Options)
	if err != nil {
		return err
	}
	results := filepath.Join(o.Dir, resultsFolder)
	if o.ownRoots(e) {
		files = append(files, export.RootsFile(rootsFile, job, o.inputs(), results))
	}
	if err := writeExport(o.Dir, files); err != nil {
		return err
	}
	if o.ownRoots(e) {
		if err := os.Mkdir(results, 0o777); err != nil {
			return output.FolderError(results, err)
		}
	}
	if o.check {
		if err := e.look(o.Dir, o.out, files); err != nil {
			return err
		}
	}
	console.Printf("%s of job %s in %s\nsubmit it with: bash %s\n", cli.Count(len(plan.Tasks), "task"),
		wording.Printable(job.Name), o.out, cli.Quoted(filepath.Join(o.out, export.SubmitName)))
	return nil
}

// checkInputs refuses a job whose inputs are not here, if they are to be: beside the job, or where a file of roots that
// is here, too, says.
func (o *farmExportOptions) checkInputs(e *engine, job *spec.Job, plan *spec.Plan) error {
	roots := store.Roots{job.Store.Inputs: {URL: o.inputs()}}
	if o.roots != "" {
		roots, _ = store.ReadRootsFile(o.roots) // it is one of the machines that run tasks
	} else if e.name == "kubernetes" { // whose claims cannot be seen from here
		return nil
	}
	return client.CheckInputs(roots, job, plan, task.InputHint)
}

// writeExport makes the folder and its files.
func writeExport(dir string, files []export.File) error {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return fault.Usagef("choose a new folder: running jobs may still read this one", "%s is not empty", dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return output.FolderError(dir, err)
	}
	for _, f := range files {
		mode := os.FileMode(0o666)
		if f.Program {
			mode = 0o777
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, mode); err != nil {
			return output.FolderError(dir, err)
		}
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
	lines := strings.FieldsFunc(string(said[:min(len(said), mostSaid)]),
		func(r rune) bool { return r == '\n' || r == '\r' })
	err = fmt.Errorf("%s: %w: %s", e.check[0], err, strings.Join(lines, "; "))
	lower := strings.ToLower(string(said))
	if slices.ContainsFunc(e.unset, func(text string) bool { return strings.Contains(lower, text) }) {
		return &fault.Error{Op: "check export", Err: err, Kind: store.ErrSetup,
			Hint: fmt.Sprintf("the files are written but not checked: %s finds no cluster from here; on a machine "+
				"where it is set up, run: cd %s && %s", e.check[0], cli.Quoted(out), strings.Join(args, " "))}
	}
	return &fault.Error{Op: "check export", Path: dir, Err: err,
		Hint: "the scheduler rejects these files; its messages are above"}
}

// mostSaid is how much of what a scheduler's tool says is printed, in bytes.
const mostSaid = 2000
