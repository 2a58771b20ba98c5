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

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
)

// stager brings inputs to the local disk.
type stager struct {
	*attempt
	release []func()
}

// An input that is not there is the job's fault where others are, else the machine's: nothing may be mounted.
var (
	ErrNoInput    = errors.New("not found")
	ErrNotMounted = errors.New("not found, as nothing is,")
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
func (s *stager) stage(ctx context.Context, in spec.Input) (local string, err error) {
	var release func()
	where, of := in.Key, place{"", s.inputs.String(), in.Key}
	switch {
	case in.Key != "" && s.inPlace():
		local, release = filepath.Join(s.inputs.String(), filepath.FromSlash(in.Key)), func() {}
		err = s.ownLinks(in.Key)
	case in.Key != "":
		local, release, err = s.cache.Input(ctx, s.inputs, in.Key)
	default:
		where = KeyOf(s.Job, &s.Plan.Tasks[in.Tasks[0]])
		of = place{"", s.outputs.String(), store.OutOf(where)}
		local, release, err = s.cache.Output(ctx, s.outputs, where)
	}
	switch {
	case err == nil:
		of.local = local
		s.release, s.staged = append(s.release, release), append(s.staged, of)
		if in.Key != "" {
			err = s.ownFiles(in, local)
		}
		return local, err
	case errors.Is(err, fs.ErrNotExist) && in.Key != "":
		return "", &fault.Error{Err: NoInput(s.inputs, where), Kind: store.ErrSetup,
			Hint: InputHint}
	case errors.Is(err, fs.ErrNotExist):
		return "", notDone(where)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case in.Key == "":
		return "", s.explainResults(where, err)
	}
	return "", store.Explain("fetch input", where, err)
}

// explainResults explains an error of another task's results, which this one reads.
func (s *stager) explainResults(key string, err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return store.Explain("fetch input", key, err)
	}
	return &fault.Error{Op: "fetch input", Path: key, Err: err, Kind: fault.ErrData, Hint: fault.Command("farm fsck "+
		s.outputs.String()+"/"+s.Job.Name+" --repair") + " moves it out of the way, then the job makes it again"}
}

// notDone is of an input that another task makes.
func notDone(key string) error {
	return &fault.Error{Op: "fetch input", Path: key, Err: errors.New("the task that makes it is not done"),
		Hint: "run that task first", Kind: fault.ErrTryAgain}
}

// reads is the SHA-256 of the results of other tasks that the task reads, by what is in them: that of results which
// were made anew is another one, unless they came out the same. It is "" without such.
func (s *stager) reads(ctx context.Context) (sum string, err error) {
	tasks := s.task.Reads()
	s.absent = nil
	if len(tasks) == 0 {
		return "", nil
	}
	h := sha256.New()
	for _, k := range tasks {
		key := KeyOf(s.Job, &s.Plan.Tasks[k])
		m, err := store.ReadManifest(s.outputs, store.OutOf(key))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.absent = append(s.absent, k)
			if !s.Gather || !s.task.Kind.Gathers {
				return "", notDone(key)
			}
			continue
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", s.explainResults(key, err)
		}
		fmt.Fprintln(h, m.Contents())
	}
	if !s.task.Without(s.isAbsent) {
		return "", &fault.Error{Op: "fetch input", Path: s.key, Err: errors.New("none of its models is there"),
			Hint: "put right why their tasks failed, and run these again", Kind: fault.ErrData}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stageModel is stage for a model: the folder of a training, or the file that its task wrote.
func (s *stager) stageModel(ctx context.Context, m *spec.Model) (string, error) {
	local, err := s.stage(ctx, m.Input)
	if err != nil || len(m.Tasks) == 0 {
		return local, err
	}
	if from := &s.Plan.Tasks[m.Tasks[0]]; from.Kind.File != nil {
		return filepath.Join(local, from.Kind.File(from)), nil
	}
	return local, nil
}

// stagePlan makes a copy of a plan that says where the capture is on this machine.
func (s *stager) stagePlan(ctx context.Context) (string, error) {
	source, err := s.stage(ctx, s.task.Source)
	if err != nil {
		return "", err
	}
	plan, err := s.stage(ctx, s.task.Plan)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, "plan")
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

// stageSource is stage for the source. Pictures of several tasks come together in a folder.
func (s *stager) stageSource(ctx context.Context) (string, error) {
	from := s.task.Source.Tasks
	if len(from) == 0 || !s.Plan.Tasks[from[0]].Kind.Parts {
		return s.stage(ctx, s.task.Source)
	}
	dir := filepath.Join(s.dir, "pictures")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, k := range from {
		part, err := s.stage(ctx, spec.Input{Tasks: []int{k}})
		if err == nil {
			err = copyTree(part, dir, false)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}
