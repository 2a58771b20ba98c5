package spec

import (
	"slices"
	"time"
)

// Kind is a kind of task. A kind is one value, in a file of its own, and a line of kinds; no other code has a switch
// over kinds. In JSON and in messages a kind is its name.
type Kind struct {
	Name  string // as in kind = "convert"
	About string // in a few words, for the JSON Schema

	fields  []field // the keys of its own
	instead string  // what to write instead, of kinds that documents cannot name; "": they can

	Makes string // what others read of it, for messages and to see what fits where: "a model"
	Takes string // what it reads beside models: "a capture" or "pictures"
	Parts bool   // others read the results of all tasks that a [[task]] becomes; else those of the last

	NeedsDevice bool // it draws or trains
	Trains      bool // its child saves checkpoints, from which the next attempt goes on
	Draws       bool // its child writes pictures, behind which the next attempt goes on
	Silent      bool // its child may print nothing for long while it works
	Stages      bool // its child has stages, of which the next attempt on the machine does those that are left
	Gathers     bool // it does with those of its models that there are, once the tasks of the others have failed

	Scratch []string // what is none of the results: files and folders that the next attempt reads, or of this machine

	Command string                 // of this program
	Args    func(c *Call) []string // behind the command; nil: farm/task/commands.go runs more than one
	File    func(of *Task) string  // the model among its results; nil: the folder is the model

	// The functions below have the planner make tasks of the kind, each where that needs more than its keys say.

	// count is how many tasks a variant has; nil: one.
	count func(p *planner, e *expanded, v *variant) (int, error)
	// inputs completes what a task reads.
	inputs func(p *planner, e *expanded, v *variant, t *Task) error
	// fill completes the tasks of a variant: they begin as copies of one.
	fill func(p *planner, e *expanded, v *variant, tasks []Task) error
}

// kinds are in the order of the schema and of messages. Documents cannot name the last two: a partition becomes tasks
// of these.
var kinds = []*Kind{
	KindDemo,
	KindCapture,
	KindTrain,
	kindPartition,
	KindRender,
	KindEncode,
	KindEval,
	KindConvert,
	kindBlock,
	KindMerge,
}

// Kinds lists all kinds of tasks.
func Kinds() []*Kind { return slices.Clone(kinds) }

// String implements fmt.Stringer.
func (k *Kind) String() string { return k.Name }

// MarshalText implements encoding.TextMarshaler.
func (k *Kind) MarshalText() ([]byte, error) { return []byte(k.Name), nil }

// writtenKinds are the names of kinds that documents can name.
func writtenKinds() (words []string) {
	for _, k := range kinds {
		if k.instead == "" {
			words = append(words, k.Name)
		}
	}
	return words
}

// kindOf returns the kind of a name, nil if there is none.
func kindOf(name string) *Kind {
	if i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return nil
}

// Call is what a kind makes its child's arguments of: a task, and where things are on the machine that runs it.
type Call struct {
	Task   *Task
	Device []string // the flag that names the device, none for the child's own choice

	// Local copies of the inputs, "" without them. Pictures of several tasks are in one folder. Plan names Source.
	Source, Plan, Model, Cameras, Trajectory, Masks string

	Output    string        // folder that becomes the results
	Preview   string        // file for the newest small picture of what is made
	SaveEvery time.Duration // between two checkpoints of a training
}

// Flags are those that the job gives.
func (c *Call) Flags() (args []string) {
	for _, f := range c.Task.Flags {
		args = append(args, "--"+f.Name+"="+f.Value)
	}
	return args
}
