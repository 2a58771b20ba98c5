package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
)

// work runs the commands of the task.
func (r *runner) work(ctx context.Context, dir *os.Root) error {
	r.say("fetching inputs", true)
	run, err := r.command(ctx)
	if err != nil {
		return r.reason(ctx, err)
	}
	if !r.resumes() {
		if err := emptied(r.out); err != nil {
			return err
		}
	} else if now, err := r.reads(ctx); err != nil {
		return err
	} else if now != r.given {
		return &fault.Error{Op: "fetch input", Path: r.key,
			Err: errors.New("another task has replaced results that it reads"), Hint: "run it again",
			Kind: fault.ErrTryAgain}
	}
	return run(ctx, dir)
}

// command stages the task's inputs, and returns the function that runs its commands.
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
	args := append([]string{r.task.Kind.Command}, r.task.Kind.Args(call)...)
	return func(ctx context.Context, dir *os.Root) error { return r.child(ctx, dir, args) }, nil
}

// works run the kinds with more than one command.
var works = map[*spec.Kind]func(*runner, context.Context) (func(context.Context, *os.Root) error, error){
	spec.KindMerge: (*runner).merge,
	spec.KindEval:  (*runner).eval,
}

// call stages the inputs of a task with one command.
func (s *stager) call(ctx context.Context) (c *spec.Call, err error) {
	t := s.task
	c = &spec.Call{Task: t, Device: s.onDevice(), Output: s.out, Preview: s.previewFile(), SaveEvery: s.savesEvery()}
	if len(t.Models) > 0 {
		if c.Model, err = s.stageModel(ctx, &t.Models[0]); err != nil {
			return nil, err
		}
	}
	for _, in := range []struct {
		spec.Input
		local *string
	}{{t.Cameras, &c.Cameras}, {t.Trajectory, &c.Trajectory}, {t.Masks, &c.Masks}} {
		if in.None() {
			continue
		}
		if *in.local, err = s.stage(ctx, in.Input); err != nil {
			return nil, err
		}
	}
	switch {
	case !t.Plan.None():
		c.Plan, err = s.stagePlan(ctx)
	case !t.Source.None():
		c.Source, err = s.stageSource(ctx)
	}
	return c, err
}

// onDevice is the flag that names the device.
func (s *stager) onDevice() []string {
	if s.Device == "" {
		return nil
	}
	return []string{"--device=" + s.Device}
}

// merge joins blocks. The result is the merged scene, or with finetune the trained one.
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

// eval measures models one by one and writes a table of all.
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
