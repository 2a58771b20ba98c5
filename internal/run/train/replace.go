package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/run/output"
)

// stage has this run write to a folder of its own if it replaces what an earlier one left in OUT. It comes before
// anything is written.
func (p *place) stage() error {
	if b := p.prev.begun; b != nil && b.Source.Cameras != "" && !p.Load.Calibrated() { // and now the capture's own
		p.old = append(p.old, output.CamerasIn(p.Out)...)
	}
	if !p.replaces() {
		return nil
	}
	if p.prev.ownPast() {
		p.old = append(p.old, filepath.Join(p.Out, output.StatsFile)) // it says how the earlier run ended
	}
	err := output.Stage(p.Out, p.old, p.prev.ownPast())
	p.staged = err == nil
	return err
}

// replaces reports whether the run replaces files of an earlier one.
func (p *place) replaces() bool {
	return slices.ContainsFunc(p.old, func(path string) bool {
		st, err := os.Lstat(path)
		return err == nil && !st.IsDir()
	})
}

// at is where a file of OUT is written: there, or in the folder of a run that has not replaced the earlier one yet.
func (p *place) at(path string) string {
	rel, err := filepath.Rel(p.Out, path)
	if !p.staged || err != nil {
		return path
	}
	return filepath.Join(p.Out, output.NextFolder, rel)
}

// replaceEarlier puts the run in the place of the earlier one. It is called once there is a checkpoint, or the model
// and all that belongs to it.
func (p *place) replaceEarlier() error {
	if !p.staged {
		return nil
	}
	err := p.emit(&Replacing{})
	if err == nil {
		err = output.Replace(p.Out)
	}
	p.staged = err != nil
	if err = errors.Join(err, p.emit(&Replacing{Done: true})); err != nil {
		return fmt.Errorf("replace the earlier run: %w; this one waits in %s", err,
			filepath.Join(p.Out, output.NextFolder))
	}
	if p.own != nil {
		p.own = output.ReadWritten(p.Out)
		p.own.Begun = true
	}
	return nil
}

// undo removes what the run wrote that ended before it could take the place of the earlier one.
func (p *place) undo() error {
	if !p.staged {
		return nil
	}
	p.staged = false
	note, err := output.Recover(p.Out)
	if err == nil && note != "" {
		p.console.Note(note)
	}
	return err
}
