package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// putAside moves what of an earlier run is not this one's past out of the way, before this one writes anything. after
// is the step of the earlier run that this one goes on with; -1: it does not.
func (s *saver) putAside(after int) (err error) {
	files, folders := s.toMove()
	if len(files) == 0 {
		return nil
	}
	record, copied := output.AsideRecord{After: after}, []string(nil)
	if after >= 0 {
		record.Copies, copied = output.ToStay(s.r.Out)
		// where one is, the new run is done: see stands
		if end := filepath.Join(s.r.Out, output.StatsFile); output.IsFile(end) {
			files = append(files, end)
		}
	}
	moving := filepath.Join(s.r.Out, output.AsideMoving)
	defer func() {
		if err != nil {
			err = errors.Join(output.FolderError(s.r.Out,
				fmt.Errorf("move the earlier run to %s: %w", output.AsideFolder, err)), output.MoveBack(s.r.Out))
		}
	}()
	if err := os.Mkdir(moving, 0o777); err != nil {
		return err
	}
	output.AsideStep()
	if err := output.WriteJSON(filepath.Join(moving, output.AsideFile), record); err != nil {
		return err
	}
	for _, path := range copied {
		if err := output.Between(path, s.r.Out, moving, output.CopyWhole); err != nil {
			return err
		}
	}
	for _, path := range files {
		if err := output.Between(path, s.r.Out, moving, os.Rename); err != nil {
			return err
		}
	}
	output.AsideStep()
	for _, dir := range folders {
		_ = os.Remove(dir) // refused where it holds somebody's files
	}
	if err := output.SyncBelow(moving); err != nil {
		return err
	}
	if err := os.Rename(moving, filepath.Join(s.r.Out, output.AsideFolder)); err != nil {
		return err
	}
	output.AsideStep()
	s.aside, s.left, s.foreign = true, nil, nil
	return atomicfile.SyncDir(s.r.Out)
}

// toMove lists what putAside moves, and the folders that may be empty then.
func (s *saver) toMove() (files, folders []string) {
	for _, path := range append(slices.Clone(s.foreign), s.left...) {
		switch st, err := os.Lstat(path); {
		case err != nil:
		case slices.Contains(files, path):
		case st.IsDir():
			folders = append(folders, path)
		default:
			files = append(files, path)
		}
	}
	return files, folders
}

// standing is called when the new run has a checkpoint, or its model and all that belongs to it.
func (s *saver) standing() {
	if !s.aside {
		return
	}
	s.aside = false
	if err := output.DropAside(s.r.Out); err != nil {
		s.r.Console.Warn(fmt.Sprintf("the earlier run in %s is not removed: %v",
			filepath.Join(s.r.Out, output.AsideFolder), err))
	}
}

// givenUp is the error of a run that the user stopped before it could take the place of the earlier one.
func (s *saver) givenUp() error {
	return fault.WithHint(fmt.Errorf("%w after step %d of %d, before the first checkpoint", s.r.interruptedBy(),
		s.r.Trainer.Step(), s.r.Config.Iterations),
		"the same command starts from scratch; the earlier run in "+s.r.Out+" is as it was")
}

// undo brings the earlier run back where this one ends before its first checkpoint.
func (s *saver) undo() error {
	if s == nil || !s.aside {
		return nil
	}
	s.aside = false
	back, err := output.RecoverAside(s.r.Out)
	if back {
		s.r.Console.Note("restored the earlier run in " + s.r.Out + ": this run ended before its first checkpoint")
	}
	return err
}
