package output

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
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// A run that is replaced stays in a folder of OUT until the new one has a checkpoint. The name of the folder says how
// far that is: whenever the process is killed, the next one finds either run whole.
const (
	AsideFolder = ".previous"          // it holds all of the old run, and the new one may write
	AsideMoving = ".previous.moving"   // a move is in progress; OUT holds nothing of the new run
	AsideGone   = ".previous.removing" // the new run has a checkpoint
)

// AsideFile in such a folder is an AsideRecord.
const AsideFile = "previous.json"

type AsideRecord struct {
	// the new run goes on with this step of the old one, and what came before is in OUT; -1: it does not
	After  int      `json:"after"`
	Copies []string `json:"copies,omitempty"` // files that stay in OUT; all but events are copied, too
}

// AsideStep is called between two changes of the disk. Tests end there, as a process does that is killed.
var AsideStep = func() {}

// ToStay lists the files about a run as a whole that stay in out where another one goes on with it, and those of them
// that it may rewrite. Events are only added.
func ToStay(out string) (names, copied []string) {
	for _, path := range wholeRunFiles(out) {
		rel, err := filepath.Rel(out, path)
		if err != nil || rel == StatsFile || !IsFile(path) {
			continue
		}
		if names = append(names, rel); filepath.Dir(rel) != TensorboardFolder {
			copied = append(copied, path)
		}
	}
	return names, copied
}

// Between moves or copies a file below one folder to the same place below another.
func Between(path, from, to string, put func(from, to string) error) error {
	rel, err := filepath.Rel(from, path)
	if err != nil {
		return err
	}
	target := filepath.Join(to, rel)
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	AsideStep()
	return put(path, target)
}

// CopyWhole copies a file, which appears whole.
func CopyWhole(from, to string) error {
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

// SyncBelow brings what was moved into a folder to the disk.
func SyncBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = atomicfile.SyncDir(path)
		}
		return err
	})
}

// DropAside removes the run that was put aside: the new one has taken its place. What stays is removed at the next
// start.
func DropAside(out string) error {
	gone := filepath.Join(out, AsideGone)
	_ = os.RemoveAll(gone)
	AsideStep()
	if err := os.Rename(filepath.Join(out, AsideFolder), gone); err != nil {
		return FolderError(out, err)
	}
	if atomicfile.SyncDir(out) == nil {
		_ = os.RemoveAll(gone)
	}
	return nil
}

// RecoverAside puts in order what a run left that was to replace another one: where it has a checkpoint, it stands, and
// otherwise the other one comes back.
func RecoverAside(out string) (back bool, err error) {
	_ = os.RemoveAll(filepath.Join(out, AsideGone)) // it takes room and harms nobody
	if IsFolder(filepath.Join(out, AsideMoving)) {
		if err := MoveBack(out); err != nil {
			return false, err
		}
		back = true
	}
	aside := filepath.Join(out, AsideFolder)
	if !IsFolder(aside) {
		return back, nil
	}
	record := readAside(aside)
	if Stands(out, record.After) {
		return back, DropAside(out)
	}
	clearRun(out, record)
	AsideStep()
	if err := os.Rename(aside, filepath.Join(out, AsideMoving)); err != nil {
		return false, FolderError(out, err)
	}
	return true, errors.Join(atomicfile.SyncDir(out), MoveBack(out))
}

// Current is the folder of the run that the next process finds in out: out, or that of one which was put aside and
// comes back.
func Current(out string) string {
	if aside := filepath.Join(out, AsideFolder); IsFolder(aside) && !Stands(out, readAside(aside).After) {
		return aside
	}
	return out
}

// AsideIn is the folder of a run that was put aside in out, "" for none.
func AsideIn(out string) string {
	for _, name := range []string{AsideFolder, AsideMoving} {
		if dir := filepath.Join(out, name); IsFolder(dir) {
			return dir
		}
	}
	return ""
}

// AsideText says what that folder is.
func AsideText(out string) string {
	return fmt.Sprintf("%s holds the run that is replaced until the new one has a checkpoint; if that was killed "+
		"before, the next %s brings it back", cli.Quoted(AsideIn(out)),
		fault.Command("train SCENE -m "+cli.Quoted(out)))
}

// readAside reads the record of a run that was put aside.
func readAside(dir string) AsideRecord {
	record := AsideRecord{After: -1}
	if data, err := os.ReadFile(filepath.Join(dir, AsideFile)); err == nil {
		_ = json.Unmarshal(data, &record) // written whole before anything is moved
	}
	return record
}

// Stands reports whether the run in out has come to a checkpoint above step after, or to its end.
func Stands(out string, after int) bool {
	list, err := ListCheckpoints(filepath.Join(out, CheckpointFolder))
	if err != nil {
		return false
	}
	for _, f := range slices.Backward(list) {
		if f.Step <= after {
			break
		}
		if c, err := OpenWhole(f.Path); err == nil {
			return c.Close() == nil
		}
	}
	end := filepath.Join(out, StatsFile) // PutAside of package train moved that of the old run
	return IsFile(end) && ReadWritten(out).Owns(end)
}

// clearRun removes what the run that was to replace the one of the record wrote, and no file of others.
func clearRun(out string, record AsideRecord) {
	own, after := ReadWritten(out), record.After
	checkpoints, events := filepath.Join(out, CheckpointFolder), filepath.Join(out, TensorboardFolder)
	paths := append(RunLeftovers(out, after), wholeRunFiles(out)...)
	if list, err := ListCheckpoints(checkpoints); err == nil {
		for _, f := range list {
			if f.Step > after {
				paths = append(paths, f.Path)
			}
		}
	}
	stays := func(name string) bool { return slices.Contains(record.Copies, name) }
	paths = append(paths, checkpoints, events)
	for _, folder := range []string{ModelFolder, PictureFolder} {
		paths = append(paths, filepath.Dir(filepath.Join(out, folder)))
	}
	for _, path := range paths {
		AsideStep()
		rel, err := filepath.Rel(out, path)
		if err != nil || stays(rel) {
			continue
		}
		// Checkpoints and events are not in the list.
		if !IsFile(path) || InFolder(path, checkpoints) || InFolder(path, events) || own.Owns(path) {
			_ = os.Remove(path) // a folder that holds somebody's files stays
		}
	}
	if !stays(WrittenFile) {
		_ = os.Remove(filepath.Join(out, WrittenFile)) // last: it says what else is to be removed
	}
}

// MoveBack brings the files of a run that was put aside back to where they were.
func MoveBack(out string) error {
	moving := filepath.Join(out, AsideMoving)
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
		if base, _ := fault.TempOf(e.Name()); rel == AsideFile || base != "" {
			return nil
		}
		if _, err := os.Lstat(target); err == nil && !slices.Contains(copies, rel) {
			return fault.Usagef("move that file away, and try again",
				"%s is in the way of a file of the earlier run, which is complete in %s and %s", target, out, moving)
		}
		return Between(path, moving, out, os.Rename)
	})
	if errors.Is(err, fs.ErrNotExist) && !IsFolder(moving) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := SyncBelow(out); err != nil {
		return err
	}
	AsideStep()
	return os.RemoveAll(moving)
}
