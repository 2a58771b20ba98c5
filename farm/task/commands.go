package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
)

// work runs the commands of the task.
func (r *runner) work(ctx context.Context, dir *os.Root) error {
	r.say("fetching inputs", true)
	run, err := r.command(ctx)
	if err != nil {
		return r.reason(ctx, err)
	}
	if !r.resumes() { // the others do not go on with what an attempt left
		if err := emptied(r.out); err != nil {
			return err
		}
	} else if now, err := r.reads(ctx); err != nil {
		return err
	} else if now != r.given { // than what this goes on with was made from
		return &fault.Error{Op: "fetch input", Path: r.key,
			Err: errors.New("its inputs were replaced while it ran"), Hint: "run it again",
			Kind: fault.ErrTryAgain}
	}
	return run(ctx, dir)
}

// command stages what the task reads, and returns what runs its commands.
func (r *runner) command(ctx context.Context) (func(context.Context, *os.Root) error, error) {
	if work := works[r.task.Kind]; work != nil {
		return work(r, ctx)
	}
	if r.task.Kind.Args == nil {
		return nil, fmt.Errorf("tasks of kind %s cannot be run", r.task.Kind)
	}
	call, err := r.call(ctx)
	if err != nil {
		return nil, err
	}
	return r.one(r.task.Kind.Command, r.task.Kind.Args(call)), nil
}

// works run the kinds that are more than one command.
var works = map[*spec.Kind]func(*runner, context.Context) (func(context.Context, *os.Root) error, error){
	spec.KindMerge: (*runner).merge,
	spec.KindEval:  (*runner).eval,
}

// call stages what the one command of a task reads.
func (r *runner) call(ctx context.Context) (c *spec.Call, err error) {
	t := r.task
	c = &spec.Call{Task: t, Device: r.onDevice(), Output: r.out, Preview: r.previewFile(), SaveEvery: r.savesEvery()}
	if len(t.Models) > 0 {
		if c.Model, err = r.stageModel(ctx, &t.Models[0]); err != nil {
			return nil, err
		}
	}
	for _, in := range []struct {
		spec.Input
		local *string
	}{{t.Cameras, &c.Cameras}, {t.Trajectory, &c.Trajectory}, {t.Masks, &c.Masks}, {t.VocabTree, &c.VocabTree}} {
		if in.None() {
			continue
		}
		if *in.local, err = r.stage(ctx, in.Input); err != nil {
			return nil, err
		}
	}
	switch {
	case !t.Plan.None():
		c.Plan, err = r.stagePlan(ctx)
	case !t.Source.None():
		c.Source, err = r.stageSource(ctx)
	}
	return c, err
}

// one runs a single command.
func (r *runner) one(command string, args []string) func(context.Context, *os.Root) error {
	return func(ctx context.Context, dir *os.Root) error {
		return r.child(ctx, dir, append([]string{command}, args...))
	}
}

// onDevice is the flag that names the device.
func (r *runner) onDevice() []string {
	if r.Device == "" {
		return nil
	}
	return []string{"--device=" + r.Device}
}

// An input that is not there is the job's fault where others are, else the machine's: nothing may be mounted.
var (
	ErrNoInput    = errors.New("not found")
	ErrNotMounted = errors.New("not found (nothing is):")
)

// InputHint is what helps where an input is not there.
const InputHint = "put it there, mount it, or correct the key in the job"

// NoInput is the error of an input that is not below its root.
func NoInput(root store.Root, key string) error {
	what := ErrNotMounted
	if store.HasAny(root) {
		what = ErrNoInput
	}
	return fmt.Errorf("input %q %w in %s", key, what, root)
}

// stage brings an input to the local disk.
func (r *runner) stage(ctx context.Context, in spec.Input) (local string, err error) {
	var release func()
	where, of := in.Key, place{"", r.inputs.String(), in.Key}
	switch {
	case in.Key != "" && r.inPlace():
		local, release = filepath.Join(r.inputs.String(), filepath.FromSlash(in.Key)), func() {}
		err = r.ownLinks(in.Key)
	case in.Key != "":
		local, release, err = r.cache.Input(ctx, r.inputs, in.Key)
	default:
		where = KeyOf(r.Job, &r.Plan.Tasks[in.Tasks[0]])
		of = place{"", r.outputs.String(), store.OutOf(where)}
		local, release, err = r.cache.Output(ctx, r.outputs, where)
	}
	switch {
	case err == nil:
		of.local = local
		r.release, r.staged = append(r.release, release), append(r.staged, of)
		if in.Key != "" {
			err = r.ownFiles(in, local)
		}
		return local, err
	case errors.Is(err, fs.ErrNotExist) && in.Key != "":
		return "", &fault.Error{Err: NoInput(r.inputs, where), Kind: store.ErrSetup,
			Hint: InputHint}
	case errors.Is(err, fs.ErrNotExist):
		return "", notDone(where)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case in.Key == "":
		return "", r.explainResults(where, err)
	}
	return "", store.Explain("fetch input", where, err)
}

// explainResults explains an error of another task's results, which this one reads.
func (r *runner) explainResults(key string, err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return store.Explain("fetch input", key, err)
	}
	return &fault.Error{Op: "fetch input", Path: key, Err: err, Kind: fault.ErrData, Hint: fault.Command("farm fsck "+
		r.outputs.String()+"/"+r.Job.Name+" --repair") + " moves it out of the way, then the job makes it again"}
}

// notDone is of an input that another task makes.
func notDone(key string) error {
	return &fault.Error{Op: "fetch input", Path: key, Err: errors.New("the task that makes it is not done"),
		Hint: "run that task first", Kind: fault.ErrTryAgain}
}

// reads is the SHA-256 of the results of other tasks that the task reads, by what is in them: that of results which
// were made anew is another one, unless they came out the same. It is "" without such.
func (r *runner) reads(ctx context.Context) (sum string, err error) {
	tasks := r.task.Reads()
	r.absent = nil
	if len(tasks) == 0 {
		return "", nil
	}
	h := sha256.New()
	for _, k := range tasks {
		key := KeyOf(r.Job, &r.Plan.Tasks[k])
		m, err := store.ReadManifest(r.outputs, store.OutOf(key))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.absent = append(r.absent, k)
			if !r.Gather || !r.task.Kind.Gathers {
				return "", notDone(key)
			}
			continue
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", r.explainResults(key, err)
		}
		fmt.Fprintln(h, m.Contents())
	}
	if !r.task.Without(r.isAbsent) {
		return "", &fault.Error{Op: "fetch input", Path: r.key, Err: errors.New("none of its models exists"),
			Hint: "fix why their tasks failed, then run this again", Kind: fault.ErrData}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (r *runner) isAbsent(task int) bool { return slices.Contains(r.absent, task) }

// stageModel is stage for a model: the folder of a training, or the file that its task wrote.
func (r *runner) stageModel(ctx context.Context, m *spec.Model) (string, error) {
	local, err := r.stage(ctx, m.Input)
	if err != nil || len(m.Tasks) == 0 {
		return local, err
	}
	if from := &r.Plan.Tasks[m.Tasks[0]]; from.Kind.File != nil {
		return filepath.Join(local, from.Kind.File(from)), nil
	}
	return local, nil
}

// stagePlan makes a copy of a plan that says where the capture is on this machine.
func (r *runner) stagePlan(ctx context.Context) (string, error) {
	source, err := r.stage(ctx, r.task.Source)
	if err != nil {
		return "", err
	}
	plan, err := r.stage(ctx, r.task.Plan)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.dir, "plan")
	if err := errors.Join(os.RemoveAll(dir), copyTree(plan, dir, true)); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "plan.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if data, err = withScene(data, source); err != nil {
		return "", &fault.Error{Op: "read plan", Path: file, Err: err, Hint: "run the partition again"}
	}
	return dir, os.WriteFile(file, data, 0o666)
}

// withScene replaces the capture's folder in a plan. All else stays, byte for byte: train knows a plan by its first
// key.
func withScene(data []byte, source string) ([]byte, error) {
	if err := strictjson.JSONError(json.Unmarshal(data, new(struct{}))); err != nil {
		return nil, err
	}
	start, end := valueAt(data, "capture", "scene")
	if end == 0 {
		return nil, errors.New("it names no capture")
	}
	where, err := json.Marshal(source)
	return slices.Concat(data[:start], where, data[end:]), err
}

// valueAt finds a value in a JSON document by the keys of the objects around it: data[start:end], 0 and 0 if there is
// none.
func valueAt(data []byte, keys ...string) (start, end int) {
	d := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	for _, want := range keys {
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return 0, 0
		}
		for {
			key, err := d.Token()
			if err != nil || key == json.Delim('}') {
				return 0, 0
			}
			if key == want {
				break
			}
			if err := d.Decode(&value); err != nil {
				return 0, 0
			}
		}
	}
	if err := d.Decode(&value); err != nil {
		return 0, 0
	}
	end = int(d.InputOffset())
	return end - len(value), end
}

// merge joins blocks. The results are the merged scene, or with finetune the one that was trained on.
func (r *runner) merge(ctx context.Context) (func(context.Context, *os.Root) error, error) {
	plan, err := r.stagePlan(ctx)
	if err != nil {
		return nil, err
	}
	for k := range r.task.Models {
		block, err := r.stage(ctx, r.task.Models[k].Input)
		if err != nil {
			return nil, err
		}
		if err := copyTree(block, filepath.Join(plan, fmt.Sprintf("block_%d", k)), false); err != nil {
			return nil, err
		}
	}
	var args []string
	made := filepath.Join(plan, "out")
	if r.task.Finetune > 0 {
		args, made = []string{"--finetune=" + strconv.Itoa(r.task.Finetune)}, filepath.Join(plan, "finetuned")
	}
	args = slices.Concat(r.onDevice(), args, []string{"--", plan})
	return func(ctx context.Context, dir *os.Root) error {
		if err := r.child(ctx, dir, append([]string{"merge"}, args...)); err != nil {
			return err
		}
		if err := errors.Join(emptied(r.out), copyTree(made, r.out, true)); err != nil {
			return err
		}
		return copyFile(filepath.Join(plan, "merge.json"), filepath.Join(r.out, "merge.json"), true)
	}, nil
}

// stageSource is stage for the source. Pictures of several tasks come together in a folder.
func (r *runner) stageSource(ctx context.Context) (string, error) {
	from := r.task.Source.Tasks
	if len(from) == 0 || !r.Plan.Tasks[from[0]].Kind.Parts {
		return r.stage(ctx, r.task.Source)
	}
	dir := filepath.Join(r.dir, "pictures")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, k := range from {
		part, err := r.stage(ctx, spec.Input{Tasks: []int{k}})
		if err == nil {
			err = copyTree(part, dir, false)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// eval measures models one after the other and makes a table of all.
func (r *runner) eval(ctx context.Context) (func(context.Context, *os.Root) error, error) {
	type pair struct{ model, source, name string }
	var pairs []pair
	for i := range r.task.Models {
		m := &r.task.Models[i]
		if m.Lacks(r.isAbsent) {
			continue
		}
		model, err := r.stageModel(ctx, m)
		if err != nil {
			return nil, err
		}
		source, err := r.stage(ctx, m.Source)
		if err != nil {
			return nil, err
		}
		name := m.Key
		if name == "" {
			name = r.Plan.Tasks[m.Tasks[0]].Name
		}
		for _, p := range pairs {
			if p.name == name { // a key that reads like a task
				name = fmt.Sprintf("%s-%d", name, i+1)
			}
		}
		pairs = append(pairs, pair{model, source, name})
	}
	flags := append(r.onDevice(), (&spec.Call{Task: r.task}).Flags()...)
	return func(ctx context.Context, dir *os.Root) error {
		var views strings.Builder
		var rows []row
		for i, p := range pairs {
			r.step(i, len(pairs), false)
			out := filepath.Join(r.out, filepath.FromSlash(p.name))
			args := slices.Concat([]string{"eval"}, flags,
				[]string{"--capture=" + p.source, "--output=" + out, "--", p.model})
			if err := r.child(ctx, dir, args); err != nil {
				return err
			}
			scores, err := readScores(filepath.Join(out, "results.json"))
			if err != nil {
				return err
			}
			rows = append(rows, row{p.name, scores})
			fmt.Fprintf(&views, "\n## %s\n%s\n", p.name, strings.ReplaceAll(r.table, p.model, p.name))
		}
		r.step(len(pairs), len(pairs), false)
		return writeTable(dir, rows, r.missing(), views.String())
	}, nil
}
