package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// stage has this run write to a folder of its own if it replaces what an earlier one left in OUT. It comes before
// anything is written.
func (s *saver) stage() error {
	if !s.replaces() {
		return nil
	}
	if s.ownPast() {
		s.old = append(s.old, filepath.Join(s.r.Out, output.StatsFile)) // it says how the earlier run ended
	}
	err := output.Stage(s.r.Out, s.old, s.ownPast())
	s.staged = err == nil
	return err
}

// replaces reports whether the run replaces files of an earlier one.
func (s *saver) replaces() bool {
	return slices.ContainsFunc(s.old, func(path string) bool {
		st, err := os.Lstat(path)
		return err == nil && !st.IsDir()
	})
}

// at is where a file of OUT is written: there, or in the folder of a run that has not replaced the earlier one yet.
func (r *Run) at(path string) string {
	rel, err := filepath.Rel(r.Out, path)
	if !r.saver.staged || err != nil {
		return path
	}
	return filepath.Join(r.Out, output.NextFolder, rel)
}

// replaceEarlier puts the run in the place of the earlier one. It is called once there is a checkpoint, or the model
// and all that belongs to it.
func (s *saver) replaceEarlier() error {
	if !s.staged {
		return nil
	}
	r := s.r
	if r.rec != nil { // Windows moves no file that is open
		r.rec.check(r.rec.pause())
	}
	err := output.Replace(r.Out)
	s.staged = err != nil
	if r.rec != nil {
		r.rec.check(r.rec.reopen())
	}
	if err != nil {
		return fmt.Errorf("replace the earlier run: %w; this one waits in %s", err,
			filepath.Join(r.Out, output.NextFolder))
	}
	if s.own != nil {
		s.own = output.ReadWritten(r.Out)
		s.own.Begun = true
	}
	return nil
}

// pause closes the files of the record until reopen.
func (rec *record) pause() error {
	err := rec.metrics.f.Close()
	if rec.board != nil {
		err = errors.Join(err, rec.board.f.Close())
	}
	return err
}

// reopen opens them where they are now, to write on at their ends.
func (rec *record) reopen() error {
	err := reopen(&rec.metrics.f, rec.run.at(filepath.Join(rec.run.Out, output.MetricsFile)))
	if err != nil || rec.board == nil {
		return err
	}
	name := filepath.Join(output.TensorboardFolder, filepath.Base(rec.board.f.Name()))
	return reopen(&rec.board.f, rec.run.at(filepath.Join(rec.run.Out, name)))
}

func reopen(f **os.File, path string) error {
	now, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err == nil {
		*f = now
	}
	return err
}

// givenUp is the error of a run that the user stopped before it could take the place of the earlier one.
func (s *saver) givenUp() error {
	return fault.WithHint(fmt.Errorf("%w after step %d of %d, before the first checkpoint", s.r.interruptedBy(),
		s.r.Trainer.Step(), s.r.Config.Iterations),
		"the same command starts from scratch; the earlier run in "+s.r.Out+" is as it was")
}

// undo removes what the run wrote that ended before it could take the place of the earlier one.
func (s *saver) undo() error {
	if s == nil || !s.staged {
		return nil
	}
	s.staged = false
	note, err := output.Recover(s.r.Out)
	if err == nil && note != "" {
		s.r.Console.Note(note)
	}
	return err
}
