package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// A run that is replaced stays in a folder of OUT until the new one has a checkpoint. The name of the folder says how
// far that is: whenever the process is killed, the next one finds either run whole.
const (
	asideFolder = ".previous"          // it holds all of the old run, and the new one may write
	asideMoving = ".previous.moving"   // a move is in progress; OUT holds nothing of the new run
	asideGone   = ".previous.removing" // the new run has a checkpoint
)

// asideFile in such a folder is an asideRecord.
const asideFile = "previous.json"

type asideRecord struct {
	After  int      `json:"after"`            // the new run goes on with this step of the old one, and what came before is in OUT; -1: it does not
	Copies []string `json:"copies,omitempty"` // files that stay in OUT; all but events are copied, too
}

// asideStep is called between two changes of the disk. Tests end there, as a process does that is killed.
var asideStep = func() {}

// putAside moves what of an earlier run is not this one's past out of the way, before this one writes anything. after
// is the step of the earlier run that this one goes on with; -1: it does not.
func (s *saver) putAside(after int) (err error) {
	files, folders := s.toMove()
	if len(files) == 0 {
		return nil
	}
	record, copied := asideRecord{After: after}, []string(nil)
	if after >= 0 {
		record.Copies, copied = toStay(s.r.out)
		if end := filepath.Join(s.r.out, statsFile); isFile(end) { // where one is, the new run is done: see stands
			files = append(files, end)
		}
	}
	moving := filepath.Join(s.r.out, asideMoving)
	defer func() {
		if err != nil {
			err = errors.Join(folderError(s.r.out, fmt.Errorf("move the earlier run to %s: %w", asideFolder, err)), moveBack(s.r.out))
		}
	}()
	if err := os.Mkdir(moving, 0o777); err != nil {
		return err
	}
	asideStep()
	if err := writeJSON(filepath.Join(moving, asideFile), record); err != nil {
		return err
	}
	for _, path := range copied {
		if err := between(path, s.r.out, moving, copyWhole); err != nil {
			return err
		}
	}
	for _, path := range files {
		if err := between(path, s.r.out, moving, os.Rename); err != nil {
			return err
		}
	}
	asideStep()
	for _, dir := range folders {
		_ = os.Remove(dir) // refused where it holds somebody's files
	}
	if err := syncBelow(moving); err != nil {
		return err
	}
	if err := os.Rename(moving, filepath.Join(s.r.out, asideFolder)); err != nil {
		return err
	}
	asideStep()
	s.aside, s.left, s.foreign = true, nil, nil
	return atomicfile.SyncDir(s.r.out)
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

// toStay lists the files about a run as a whole that stay in out where another one goes on with it, and those of them
// that it may rewrite. Events are only added.
func toStay(out string) (names, copied []string) {
	for _, path := range wholeRunFiles(out) {
		rel, err := filepath.Rel(out, path)
		if err != nil || rel == statsFile || !isFile(path) {
			continue
		}
		if names = append(names, rel); filepath.Dir(rel) != tensorboardFolder {
			copied = append(copied, path)
		}
	}
	return names, copied
}

// between moves or copies a file below one folder to the same place below another.
func between(path, from, to string, put func(from, to string) error) error {
	rel, err := filepath.Rel(from, path)
	if err != nil {
		return err
	}
	target := filepath.Join(to, rel)
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	asideStep()
	return put(path, target)
}

// copyWhole copies a file, which appears whole.
func copyWhole(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// syncBelow brings what was moved into a folder to the disk.
func syncBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = atomicfile.SyncDir(path)
		}
		return err
	})
}

// dropAside removes the run that was put aside: the new one has taken its place. What stays is removed at the next
// start.
func dropAside(out string) error {
	gone := filepath.Join(out, asideGone)
	_ = os.RemoveAll(gone)
	asideStep()
	if err := os.Rename(filepath.Join(out, asideFolder), gone); err != nil {
		return folderError(out, err)
	}
	if atomicfile.SyncDir(out) == nil {
		_ = os.RemoveAll(gone)
	}
	return nil
}

// standing is called when the new run has a checkpoint, or its model and all that belongs to it.
func (s *saver) standing() {
	if !s.aside {
		return
	}
	s.aside = false
	if err := dropAside(s.r.out); err != nil {
		s.r.app.warn(fmt.Sprintf("the earlier run in %s is not removed: %v", filepath.Join(s.r.out, asideFolder), err))
	}
}

// givenUp is the error of a run that the user stopped before it could take the place of the earlier one.
func (s *saver) givenUp() error {
	return &hintedError{err: fmt.Errorf("%w after step %d of %d, before the first checkpoint", errInterrupted, s.r.trainer.Step(), s.r.config.Iterations),
		hint: "the same command trains anew; the earlier run in " + s.r.out + " is as it was"}
}

// undo brings the earlier run back where this one ends before its first checkpoint.
func (s *saver) undo() error {
	if s == nil || !s.aside {
		return nil
	}
	s.aside = false
	back, err := recoverAside(s.r.out)
	if back {
		s.r.app.note("restored the earlier run in " + s.r.out + ": this run ended before its first checkpoint")
	}
	return err
}

// recoverAside puts in order what a run left that was to replace another one: where it has a checkpoint, it stands, and
// otherwise the other one comes back.
func recoverAside(out string) (back bool, err error) {
	_ = os.RemoveAll(filepath.Join(out, asideGone)) // it takes room and harms nobody
	if isFolder(filepath.Join(out, asideMoving)) {
		if err := moveBack(out); err != nil {
			return false, err
		}
		back = true
	}
	aside := filepath.Join(out, asideFolder)
	if !isFolder(aside) {
		return back, nil
	}
	record := readAside(aside)
	if stands(out, record.After) {
		return back, dropAside(out)
	}
	clearRun(out, record)
	asideStep()
	if err := os.Rename(aside, filepath.Join(out, asideMoving)); err != nil {
		return false, folderError(out, err)
	}
	return true, errors.Join(atomicfile.SyncDir(out), moveBack(out))
}

// asideIn is the folder of a run that was put aside in out, "" for none.
func asideIn(out string) string {
	for _, name := range []string{asideFolder, asideMoving} {
		if dir := filepath.Join(out, name); isFolder(dir) {
			return dir
		}
	}
	return ""
}

// asideText says what that folder is.
func asideText(out string) string {
	return fmt.Sprintf("%s holds the run that is replaced until the new one has a checkpoint; if that was killed before, the next vksplat train SCENE -m %s brings it back",
		quoted(asideIn(out)), quoted(out))
}

// readAside reads the record of a run that was put aside.
func readAside(dir string) asideRecord {
	record := asideRecord{After: -1}
	if data, err := os.ReadFile(filepath.Join(dir, asideFile)); err == nil {
		_ = json.Unmarshal(data, &record) // written whole before anything is moved
	}
	return record
}

// stands reports whether the run in out has come to a checkpoint above step after, or to its end.
func stands(out string, after int) bool {
	list, err := listCheckpoints(filepath.Join(out, checkpointFolder))
	if err != nil {
		return false
	}
	for _, f := range slices.Backward(list) {
		if f.step <= after {
			break
		}
		if c, err := openWhole(f.path); err == nil {
			return c.Close() == nil
		}
	}
	end := filepath.Join(out, statsFile) // putAside moved that of the old run
	return isFile(end) && readWritten(out).owns(end)
}

// clearRun removes what the run that was to replace the one of the record wrote, and no file of others.
func clearRun(out string, record asideRecord) {
	own, after := readWritten(out), record.After
	checkpoints, events := filepath.Join(out, checkpointFolder), filepath.Join(out, tensorboardFolder)
	paths := append(runLeftovers(out, after), wholeRunFiles(out)...)
	if list, err := listCheckpoints(checkpoints); err == nil {
		for _, f := range list {
			if f.step > after {
				paths = append(paths, f.path)
			}
		}
	}
	stays := func(name string) bool { return slices.Contains(record.Copies, name) }
	paths = append(paths, checkpoints, events)
	for _, folder := range []string{modelFolder, pictureFolder} {
		paths = append(paths, filepath.Dir(filepath.Join(out, folder)))
	}
	for _, path := range paths {
		asideStep()
		rel, err := filepath.Rel(out, path)
		if err != nil || stays(rel) {
			continue
		}
		// Checkpoints and events are not in the list.
		if !isFile(path) || inFolder(path, checkpoints) || inFolder(path, events) || own.owns(path) {
			_ = os.Remove(path) // a folder that holds somebody's files stays
		}
	}
	if !stays(writtenFile) {
		_ = os.Remove(filepath.Join(out, writtenFile)) // last: it says what else is to be removed
	}
}

// moveBack brings the files of a run that was put aside back to where they were.
func moveBack(out string) error {
	moving := filepath.Join(out, asideMoving)
	copies := readAside(moving).Copies
	err := filepath.WalkDir(moving, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(moving, path)
		if err != nil {
			return err
		}
		target := filepath.Join(out, rel)
		if base, _ := fault.TempOf(e.Name()); rel == asideFile || base != "" {
			return nil
		}
		if _, err := os.Lstat(target); err == nil && !slices.Contains(copies, rel) {
			return usagef("move that file away, and run the command again", "%s is in the way of a file of the earlier run, which is complete in %s and %s", target, out, moving)
		}
		return between(path, moving, out, os.Rename)
	})
	if errors.Is(err, fs.ErrNotExist) && !isFolder(moving) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := syncBelow(out); err != nil {
		return err
	}
	asideStep()
	return os.RemoveAll(moving)
}
