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

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/confined"
)

// stager brings inputs to the local disk.
type stager struct {
	*attempt
	release []func()
}

// A missing input is the job's fault, or the machine's if its root is empty: a share may not be mounted.
var (
	ErrNoInput    = errors.New("not found")
	ErrNotMounted = errors.New("not found (the root is empty)")
)

// InputHint is the hint for a missing input.
const InputHint = "put it there, mount it, or correct the key in the job"

// NoInput is the error of a missing input.
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

// explainResults explains an error of an input that another task makes.
func (s *stager) explainResults(key string, err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return store.Explain("fetch input", key, err)
	}
	return &fault.Error{Op: "fetch input", Path: key, Err: err, Kind: fault.ErrData, Hint: fault.Command("farm fsck "+
		s.outputs.String()+"/"+s.Job.Name+" --repair") + " moves it out of the way, then the job makes it again"}
}

// notDone is the error of an input that another task has yet to make.
func notDone(key string) error {
	return &fault.Error{Op: "fetch input", Path: key, Err: errors.New("the task that makes it is not done"),
		Hint: "run that task first", Kind: fault.ErrTryAgain}
}

// reads is the SHA-256 of the contents of all results that the task reads, "" without any, and sets absent.
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
		return "", &fault.Error{Op: "fetch input", Path: s.key, Err: errors.New("none of its models exists"),
			Hint: "fix why their tasks failed, then run this again", Kind: fault.ErrData}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stageModel stages a model: the folder of a training, or the file that its task wrote.
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

// stagePlan copies a plan, with the local path of its capture.
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

// withScene replaces the capture's folder in a plan, and no other byte: train recognizes a plan by its first key.
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

// valueAt finds a value in a JSON document by its path: data[start:end], or 0 and 0.
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

// stageSource stages the source. Pictures of several tasks are merged into a folder.
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

// ownLinks refuses an input with links out of the root.
func (s *stager) ownLinks(key string) error {
	_, odd, err := s.inputs.List(key)
	return errors.Join(err, store.Odd("fetch", odd))
}

// ownFiles refuses an input that names photos, masks or points outside of its root, or of its folder in the cache: the
// results would show files of this machine.
func (s *stager) ownFiles(in spec.Input, local string) error {
	root := s.inputs.String()
	if !s.inPlace() {
		root = s.cache.FolderOf(local)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	file := confined.Escape(local, root, s.loading())
	if file == "" {
		return nil
	}
	return &fault.Error{Op: "fetch input", Path: in.Key, Kind: fault.ErrData,
		Err:  fmt.Errorf("it reads %s, which is not below the root of inputs", file),
		Hint: "copy that file into the capture, and name it by a path that starts in the capture's folder"}
}

// inPlace reports whether inputs are read without copying them.
func (s *stager) inPlace() bool { return s.InPlace && !store.IsBucket(s.Roots[s.Job.Store.Inputs].URL) }

// loading is how the task's command loads its capture. A block inherits the options of its plan.
func (s *stager) loading() scene.LoadOptions {
	flags := s.task.Flags
	if !s.task.Plan.None() {
		flags = slices.Concat(s.Plan.Tasks[s.task.Plan.Tasks[0]].Flags, flags)
	}
	o := scene.LoadOptions{Model: scene.AnyModel}
	for _, f := range flags {
		number, err := strconv.Atoi(f.Value)
		switch f.Name {
		case "images":
			o.Images = f.Value
		case "masks":
			o.Masks = f.Value
		case "format":
			o.Format = f.Value
		case "full-photos":
			o.FullPhotos = f.Value == "true"
		case "downscale":
			o.Downscale = number // 0 for auto
		case "model":
			if err == nil {
				o.Model = number
			}
		}
	}
	return o
}
