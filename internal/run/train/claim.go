package train

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/output"
)

// claim proves before the training that its files can be written after it, keeps others out of its folder, and brings
// an earlier run there back that a killed one was to replace.
func (p *place) claim() (release func(), err error) {
	if err := firstOf(resumeRules(p.Options)); err != nil {
		return nil, err
	}
	var all []func()
	free := func() {
		for _, f := range slices.Backward(all) {
			f()
		}
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	if p.DryRun {
		return free, p.refuseOut()
	}
	if !p.Claimed {
		if err := output.RefusePlace(p.Out, "model-path", output.RunMarks...); err != nil {
			return nil, err
		}
		own, err := output.Claim(p.Out, true, func() {
			p.console.Note("another run is writing in " + p.Out + ": waiting a few seconds for it to end")
		})
		if err != nil {
			return nil, err
		}
		all = append(all, own)
		p.console.OnAbort = own
	}
	note, err := output.Recover(p.Out)
	if err != nil {
		return nil, err
	}
	if note != "" {
		p.console.Note(note)
	}
	o := &p.Checkpoints
	if err := convert.RefuseExports(output.ReadWritten(p.Out), p.Exports, "export", o.Resume != "",
		o.Overwrite); err != nil {
		return nil, err
	}
	for _, path := range p.Exports {
		if err := p.foreignTo(path); err != nil {
			return nil, err
		}
		of, err := output.Claim(filepath.Dir(path), false)
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return free, nil
}

// refuseOut refuses, for a plan, the folder that a run would refuse whatever it trains. Nothing is written.
func (p *place) refuseOut() error {
	if p.Out == "" || p.Claimed {
		return nil
	}
	return errors.Join(output.RefusePlace(p.Out, "model-path", output.RunMarks...), output.RefuseFile(p.Out))
}

// foreignTo refuses to export onto what the run reads or writes itself.
func (p *place) foreignTo(path string) error {
	inside, err := filepath.Rel(output.Absolute(p.Out), output.Absolute(path))
	first, _, _ := strings.Cut(filepath.ToSlash(inside), "/")
	own := err == nil && slices.Contains([]string{"input.ply", "point_cloud", output.CheckpointFolder}, first)
	if own || p.Init.File != "" && output.Absolute(p.Init.File) == output.Absolute(path) {
		return fault.Usagef("choose another name", "%s: %s is the run's own", fault.Named("export"), path)
	}
	return nil
}
