package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/splatfile"
)

// exportsFlag lists the files that train writes at the end beside its model. Each flag adds one.
type exportsFlag []string

func (f *exportsFlag) Type() string   { return "FILE" }
func (f *exportsFlag) String() string { return strings.Join(*f, " ") }

// Set adds a file whose name says a format.
func (f *exportsFlag) Set(s string) error {
	if _, err := writableFormat(s, ""); err != nil {
		return err
	}
	if slices.ContainsFunc(*f, func(other string) bool { return filepath.Clean(other) == filepath.Clean(s) }) {
		return fault.Usagef("name each file once", "%s is named twice", s)
	}
	*f = append(*f, s)
	return nil
}

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
	if err := refuseExports(output.ReadWritten(r.out), r.exports, "flag --export: ", o.resume != "", o.overwrite); err != nil {
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

// writeExports converts the model of a step, which is on disk.
func (r *trainRun) writeExports(step int) error {
	var errs []error
	for _, path := range r.exports {
		err := r.saver.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = exportTo(r.app, r.modelFile(step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// exportTo converts a model to the format that the name of the file to write says.
func exportTo(a *cli.Console, from, to string) (err error) {
	f, err := writableFormat(to, "")
	if err != nil {
		return err
	}
	model, err := splatfile.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	lost, err := f.Write(to, model, splatfile.WriteOptions{Generator: "vksplat " + cli.Version()})
	if err != nil {
		return err
	}
	for _, text := range lost {
		a.Warn(to + " does not keep everything: " + text)
	}
	size := ""
	if bytes, err := splatfile.Size(to); err == nil {
		size = ", " + pipeline.BytesText(bytes)
	}
	a.Printf("export: %s: %s%s\n", to, f.Name, size)
	return nil
}

// refuseExports refuses to replace files that exports name, but for those that the run whose list is own wrote, where
// it goes on.
func refuseExports(own *output.Written, exports exportsFlag, flag string, resumes, overwrite bool) error {
	for _, path := range exports {
		for _, file := range splatfile.Outputs(path) {
			if resumes && own.Owns(file) {
				continue
			}
			if err := output.RefuseExisting(flag, overwrite, file); err != nil {
				return err
			}
		}
	}
	return nil
}
