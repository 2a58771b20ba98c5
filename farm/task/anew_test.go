//go:build unix

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/spec"
	"vksplat/farm/spec/spectest"
	"vksplat/farm/store"
	"vksplat/internal/child"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// inputsAnew is a farm with a training of a drawn capture, and pictures of the model of another training of it. What
// makes the inputs of both is put into the store by hand.
type inputsAnew struct {
	*farm
	root store.Root
}

func newInputsAnew(t *testing.T) *inputsAnew {
	t.Helper()
	f := newFarm(t, "")
	f.job, _ = spectest.Job(t, `version = 1
name = "job"
limits.checkpoint_every = "1h"
[[task]]
kind = "demo"
id = "scene"
[[task]]
kind = "train"
id = "first"
source = "@scene"
[[task]]
kind = "train"
id = "train"
source = "@scene"
[[task]]
kind = "render"
id = "render"
model = "@first"
trajectory = "interp"
frames = "5-12"
`)
	root := must.Get(store.Open(store.Options{URL: filepath.Join(f.top, "results")}))(t)
	return &inputsAnew{f, root}
}

// made puts results of the tasks in front of the others in place of those that are there.
func (f *inputsAnew) made(text string, generation int) {
	f.t.Helper()
	for i, key := range []string{"job/scene", "job/first"} {
		dir := f.t.TempDir()
		err := errors.Join(os.WriteFile(filepath.Join(dir, "data"), []byte(text), 0o666),
			store.Outdate(f.root, key, generation))
		root, openErr := os.OpenRoot(dir)
		if err = errors.Join(err, openErr); err != nil {
			f.t.Fatal(err)
		}
		hash := f.options(i, 0, "").Plan.Hash(i)
		if _, own, err := store.Commit(f.t.Context(), f.root, key, root, []string{"data"},
			store.Made{Hash: hash, Generation: generation}); err != nil || !own {
			f.t.Fatal(own, err)
		}
		_ = root.Close()
	}
}

// begin leaves a part of a task's work on a machine, and a checkpoint in the store.
func (f *inputsAnew) begin(index, attempt int, work string) {
	f.t.Helper()
	o := f.options(index, attempt, work)
	if index == 2 {
		if _, err := f.runUntil(o, ErrStopped); !errors.Is(err, ErrStopped) {
			f.t.Fatal(err)
		}
		return
	}
	f.t.Setenv(fakeVariable, "dies")
	if _, err := Run(f.t.Context(), o); err == nil {
		f.t.Fatal("the child did not die")
	}
	f.t.Setenv(fakeVariable, quick)
}

// TestNothingOfOldInputs has what a training and a render read be made anew while they are half done: neither what the
// machine has of them nor what the store has is gone on from, and the part that was made of the same inputs is.
func TestNothingOfOldInputs(t *testing.T) {
	for index, task := range map[int]string{2: "train", 3: "render"} {
		key := "job/" + task
		for what, test := range map[string]struct {
			change func(f *inputsAnew) error
			kept   bool
		}{
			"the inputs, and the task": {func(f *inputsAnew) error {
				f.made("other",
					1)
				return store.Outdate(f.root, key, 1)
			}, false},
			"the inputs alone":              {func(f *inputsAnew) error { f.made("other", 1); return nil }, false},
			"inputs that come out the same": {func(f *inputsAnew) error { f.made("some", 1); return nil }, true},
			"the task, which was canceled":  {func(f *inputsAnew) error { return store.Outdate(f.root, key, 1) }, true},
			"the task, which another had ended": {func(f *inputsAnew) error {
				// A machine that was given up still has its half.
				if _, err := Run(f.t.Context(), f.options(index, 2, "faster")); err != nil {
					return err
				}
				return store.Outdate(f.root, key, 1)
			}, false},
			"it, and once more": {func(f *inputsAnew) error {
				if _, err := Run(f.t.Context(), f.options(index, 2, "faster")); err != nil {
					return err
				}
				return errors.Join(store.Outdate(f.root, key, 1), store.Outdate(f.root, key, 3))
			}, false},
		} {
			for _, work := range []string{"a", "b"} { // where it was begun, and where only the store knows of it
				t.Run(fmt.Sprintf("%s, %s, then on %s", task, what, work), func(t *testing.T) {
					t.Setenv(fakeVariable, quick)
					f := newInputsAnew(t)
					f.made("some", 0)
					f.begin(index, 1, "a")
					must.Do(t, test.change(f))
					m := must.Get(Run(t.Context(), f.options(index, 5, work)))(t)
					log := f.read(task, "log", "a00005.log")
					if kept := !strings.Contains(log, "from 0\n") &&
						strings.Count(log, "drew ") != 8; kept != test.kept {
						t.Errorf("kept %v, want %v: %s", kept, test.kept, log)
					}
					if m.Inputs == "" {
						t.Errorf("%+v", m.Made)
					}
				})
			}
		}
	}
}

// TestReplacedModel has somebody replace the model of a render that was interrupted, of which render refuses to go on:
// what was drawn of the other is removed, here and in the store, and the next attempt draws all of it.
func TestReplacedModel(t *testing.T) {
	f := newFarm(t, `checkpoint_every = "1h"`)
	for attempt, how := range []string{"dies", "replaced", "replaced"} {
		t.Setenv(fakeVariable, how)
		m, err := Run(context.Background(), f.options(1, attempt+1, "a"))
		left := len(globbed(f.top, "a/*/out/frame_*")) + len(globbed(f.top, "results/job/render/ckpt/*"))
		switch attempt {
		case 0:
			if err == nil || left == 0 {
				t.Fatalf("%v, %v, %d left", m, err, left)
			}
		case 1:
			if !errors.Is(err, fault.ErrTryAgain) || ExitOf(err) != fault.ExitTryAgain || !strings.Contains(err.Error(),
				"is of another render") || left > 0 {
				t.Errorf("%v, %v, %d left", m, err, left)
			}
		case 2:
			if err != nil || m.Step != 8 {
				t.Errorf("%v, %v", m, err)
			}
		}
	}
}

// TestReplacedCapture says of a training that refuses to go on what can be done in a farm: flags of train are no help
// there.
func TestReplacedCapture(t *testing.T) {
	r := &runner{attempt: &attempt{workdir: &workdir{task: &spec.Task{Kind: spec.KindTrain}}, from: 5}}
	var c *child.Failure
	err := r.refused(&child.Failure{Code: fault.ExitUsage, Text: "it was made otherwise",
		Causes: []error{fault.ErrUsage}})
	if !errors.As(err, &c) || ExitOf(err) != fault.ExitUsage ||
		!strings.Contains(fault.Hint(err), "another id") {
		t.Error(err, c)
	}
}
