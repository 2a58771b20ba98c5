package train

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/output"
	"vksplat/scene/splatfile"
)

// claim proves before the training that its files can be written after it, keeps others out of its folder, and brings
// an earlier run there back that a killed one was to replace.
func (r *Run) claim() (release func(), err error) {
	if err := r.checkResume(); err != nil {
		return nil, err
	}
	var all []func()
	release = func() {
		for _, f := range slices.Backward(all) {
			f()
		}
	}
	if r.DryRun {
		return release, r.refuseOut()
	}
	if !r.Claimed {
		if err := output.RefusePlace(r.Out, "model-path", output.RunMarks...); err != nil {
			return nil, err
		}
		free, err := output.ClaimTelling(r.Out, func() {
			r.Console.Note("another run is writing in " + r.Out + ": waiting a few seconds for it to end")
		})
		if err != nil {
			return nil, err
		}
		all = append(all, free)
		r.Console.OnAbort = free
	}
	note, err := output.Recover(r.Out)
	if err != nil {
		release()
		return nil, err
	}
	if note != "" {
		r.Console.Note(note)
	}
	o := &r.Checkpoints
	if err := convert.RefuseExports(output.ReadWritten(r.Out), r.Exports, "export", o.Resume != "",
		o.Overwrite); err != nil {
		release()
		return nil, err
	}
	for _, path := range r.Exports {
		if err := r.foreignTo(path); err != nil {
			release()
			return nil, err
		}
		free, err := output.Claim(filepath.Dir(path), false)
		if err != nil {
			release()
			return nil, err
		}
		all = append(all, free)
	}
	return release, nil
}

// refuseOut refuses, for a plan, the folder that a run would refuse whatever it trains. Nothing is written.
func (r *Run) refuseOut() error {
	if r.Out == "" || r.Claimed {
		return nil
	}
	return errors.Join(output.RefusePlace(r.Out, "model-path", output.RunMarks...), output.RefuseFile(r.Out))
}

// writeExports converts the model of a step, which is on disk.
func (r *Run) writeExports(step int) error {
	var errs []error
	for _, path := range r.Exports {
		err := r.saver.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = convert.ExportTo(r.Console, r.modelFile(step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// foreignTo refuses to export onto what the run reads or writes itself.
func (r *Run) foreignTo(path string) error {
	inside, err := filepath.Rel(output.Absolute(r.Out), output.Absolute(path))
	first, _, _ := strings.Cut(filepath.ToSlash(inside), "/")
	own := err == nil && slices.Contains([]string{"input.ply", "point_cloud", output.CheckpointFolder}, first)
	if own || r.Init.File != "" && output.Absolute(r.Init.File) == output.Absolute(path) {
		return fault.Usagef("choose another name", "%s: %s is the run's own", fault.Named("export"), path)
	}
	return nil
}
