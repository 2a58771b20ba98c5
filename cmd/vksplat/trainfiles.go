package main

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
func (r *trainRun) claim() (release func(), err error) {
	var all []func()
	release = func() {
		for _, f := range slices.Backward(all) {
			f()
		}
	}
	if r.dryRun {
		return release, nil
	}
	if !r.claimed {
		if err := output.RefusePlace(r.out, "flag --model-path: ", output.RunMarks...); err != nil {
			return nil, err
		}
		free, err := output.Claim(r.out, true)
		if err != nil {
			return nil, err
		}
		all = append(all, free)
		r.app.OnAbort = free
	}
	back, err := output.RecoverAside(r.out)
	if err != nil {
		release()
		return nil, err
	}
	if back {
		r.app.Note("restored the earlier run in " + r.out + ": the one replacing it ended before its first checkpoint")
	}
	o := &r.checkpoints
	if err := convert.RefuseExports(output.ReadWritten(r.out), r.exports, "flag --export: ", o.resume != "", o.overwrite); err != nil {
		release()
		return nil, err
	}
	for _, path := range r.exports {
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

// writeExports converts the model of a step, which is on disk.
func (r *trainRun) writeExports(step int) error {
	var errs []error
	for _, path := range r.exports {
		err := r.saver.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = convert.ExportTo(r.app, r.modelFile(step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// foreignTo refuses to export onto what the run reads or writes itself.
func (r *trainRun) foreignTo(path string) error {
	inside, err := filepath.Rel(output.Absolute(r.out), output.Absolute(path))
	first, _, _ := strings.Cut(filepath.ToSlash(inside), "/")
	own := err == nil && slices.Contains([]string{"input.ply", "point_cloud", output.CheckpointFolder}, first)
	if own || r.init.File != "" && output.Absolute(r.init.File) == output.Absolute(path) {
		return fault.Usagef("choose another name", "flag --export: %s is the run's own", path)
	}
	return nil
}
