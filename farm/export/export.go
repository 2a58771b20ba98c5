package export

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
)

// Options describe the machines that will run a job, and what a task gets there.
type Options struct {
	Dir      string // folder of the export, absolute, which all machines see; Kubernetes does not use it
	Program  string // vksplat on the machines
	Roots    string // file that maps roots to folders there; "": run-task's own
	Work     string // folder for unfinished work there; "": run-task's own
	GPUs     int    // of a task that needs the device; 0: software Vulkan, or devices that the scheduler does not count
	CPUs     int    // of a task; 0: the scheduler's default
	MemoryGB int    // of a task; 0: the scheduler's default
	Parallel int    // tasks of a stage at a time; 0: any number
	MaxArray int    // tasks of a Slurm array: the cluster's MaxArraySize

	Image       string            // of Kubernetes' containers
	Queue       string            // local queue of Kueue; "": none
	GPUResource string            // what Kubernetes calls a GPU
	Claims      map[string]string // PersistentVolumeClaims by root; a root's own name otherwise
}

// File is a file of an export.
type File struct {
	Name    string
	Data    []byte
	Program bool // executable
}

// Names of files in an export.
const (
	DocumentName = "job.json"
	SubmitName   = "submit.sh"
	LogFolder    = "log"
)

// safeForm matches what scripts may contain unquoted. Texts of the job document never do: they may hold any
// characters, and stay in the document.
var safeForm = regexp.MustCompile(`^[A-Za-z0-9._/@+-]+$`)

// check refuses what cannot stand in scripts, and numbers that make no sense.
func (o *Options) check() error {
	for _, v := range []struct{ what, text string }{{"the program", o.Program}, {"the file of roots", o.Roots},
		{"the work folder", o.Work}} {
		if err := safe(v.what, v.text); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		what     string
		n, least int
	}{{"GPUs", o.GPUs, 0}, {"CPUs", o.CPUs, 0}, {"GB of memory", o.MemoryGB, 0}, {"tasks at a time", o.Parallel, 0},
		{"tasks of an array", o.MaxArray, 1}} {
		if v.n < v.least || v.n > spec.MaxTasks {
			return usage("", "", "%s must be %d to %d, got %d", v.what, v.least, spec.MaxTasks, v.n)
		}
	}
	return nil
}

// safe refuses a text that cannot stand in scripts.
func safe(what, text string) error {
	if text != "" && (!safeForm.MatchString(text) || strings.HasPrefix(text, "-")) {
		return usage(text, "name a path, or a link to it, with only letters A to Z, digits and . _ / @ + -",
			"%s cannot be used in scripts: it has other characters", what)
	}
	return nil
}

// shared is check where scripts name the folder of the export: machines must find it by that.
func (o *Options) shared() error {
	if !path.IsAbs(o.Dir) {
		return usage(o.Dir, "", "the folder of the export must be absolute")
	}
	if err := safe("the folder of the export", o.Dir); err != nil {
		return err
	}
	return o.check()
}

// usage is the error of an option that makes no sense.
func usage(path, hint, format string, args ...any) error {
	return &fault.Error{Op: "export job", Path: path, Err: fmt.Errorf(format, args...), Hint: hint,
		Kind: fault.ErrUsage}
}

// otherSigns are those that labels do not have.
var otherSigns = regexp.MustCompile(`[^a-z0-9]+`)

// label names a job to schedulers: the small letters and digits of its name, up to 32, and eight digits of its
// identity, so that jobs of similar names stay apart.
func label(j *spec.Job) string {
	name := strings.TrimLeft(otherSigns.ReplaceAllString(strings.ToLower(j.Name), "-"), "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), 32)], "-"), "job") + "-" + j.Hash()[:8]
}

// document is the job itself, which run-task reads.
func document(j *spec.Job) File { return File{Name: DocumentName, Data: j.Canonical()} }

// runTask returns the arguments of run-task that all schedulers give.
func (o *Options) runTask(document string) []string {
	args := []string{"farm", "run-task", "--spec", document}
	if o.Roots != "" {
		args = append(args, "--roots", o.Roots)
	}
	if o.Work != "" {
		args = append(args, "--work", o.Work)
	}
	return args
}

// RootsFile says where a job's roots are. The folders may have any names.
func RootsFile(name string, j *spec.Job, inputs, outputs string) File {
	line := func(root, dir string) string {
		return fmt.Sprintf("%q = %q\n", root, &url.URL{Scheme: "file", Path: dir})
	}
	lines := line(j.Store.Outputs, outputs)
	if j.Store.Inputs != j.Store.Outputs {
		lines = line(j.Store.Inputs, inputs) + lines
	}
	return File{Name: name, Data: []byte(lines)}
}
