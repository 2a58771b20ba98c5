package export

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"vksplat/farm/spec"
	"vksplat/scene"
)

// Options say where a job's files lie on the machines that will run it, and what a task gets there.
type Options struct {
	Dir      string // the folder of the export, absolute, which all machines of the cluster see; of no meaning to Kubernetes
	Program  string // vksplat on the machines
	Roots    string // file that maps roots to folders there; "": run-task's own
	Work     string // folder for unfinished work there; "": run-task's own
	GPUs     int    // of a task that needs the device; 0: software Vulkan, or devices that the scheduler does not count
	CPUs     int    // of a task; 0: the scheduler's default
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
	Program bool // it can be executed
}

// Names of files in an export.
const (
	DocumentName = "job.json"
	SubmitName   = "submit.sh"
	OpenJDName   = "template.json"
	LogFolder    = "log"
)

// safeForm is what stands in scripts without quotes. No text of a job document does: those may hold any letters, and stay in the document.
var safeForm = regexp.MustCompile(`^[A-Za-z0-9._/@+-]+$`)

// check refuses what cannot stand in scripts.
func (o *Options) check() error {
	for _, v := range []struct{ what, text string }{{"the folder of the export", o.Dir}, {"the program", o.Program}, {"the file of roots", o.Roots}, {"the work folder", o.Work}} {
		if v.text != "" && (!safeForm.MatchString(v.text) || strings.HasPrefix(v.text, "-")) {
			return usage(v.text, "name a path, or a link to it, of letters A to Z, digits and . _ / @ + - alone", "%s cannot stand in scripts: it has other characters", v.what)
		}
	}
	for _, v := range []struct {
		what     string
		n, least int
	}{{"GPUs", o.GPUs, 0}, {"CPUs", o.CPUs, 0}, {"tasks at a time", o.Parallel, 0}, {"tasks of an array", o.MaxArray, 1}} {
		if v.n < v.least || v.n > spec.MaxTasks {
			return usage("", "", "%d is no number of %s, %d to %d are possible", v.n, v.what, v.least, spec.MaxTasks)
		}
	}
	return nil
}

// usage is the error of an option that makes no sense.
func usage(path, hint, format string, args ...any) error {
	return &scene.Error{Op: "export job", Path: path, Err: fmt.Errorf(format, args...), Hint: hint, Kind: scene.ErrUsage}
}

// labelLength is how much of a job's name goes into a label, in characters.
const labelLength = 32

// label names a job to schedulers: what its name has of small letters and digits, and eight digits of its identity, so that jobs of similar names do not meet.
func label(j *spec.Job) string {
	var b strings.Builder
	for _, c := range strings.ToLower(j.Name) {
		known := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		switch {
		case known && b.Len() < labelLength:
			b.WriteRune(c)
		case !known && b.Len() > 0 && b.Len() < labelLength && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		name = "job"
	}
	return name + "-" + j.Hash()[:8]
}

// document is the job itself, which run-task reads.
func document(j *spec.Job) File { return File{Name: DocumentName, Data: j.Canonical()} }

// runTask are the arguments of a task's command that all schedulers give.
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
	quoted := func(dir string) string {
		text, _ := json.Marshal("file://" + dir) // a text always has a form, and TOML reads JSON's
		return string(text)
	}
	lines := fmt.Sprintf("%q = %s\n", j.Store.Outputs, quoted(outputs))
	if j.Store.Inputs != j.Store.Outputs {
		lines = fmt.Sprintf("%q = %s\n", j.Store.Inputs, quoted(inputs)) + lines
	}
	return File{Name: name, Data: []byte(lines)}
}
