package output

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/strictjson"
)

// WrittenFile lists, in a folder that this program writes to, the files that it wrote there. What is not in the list,
// or was changed since, is the user's.
const WrittenFile = ".written.json"

// Commands that own a folder.
const (
	ByTrain = "train"
	ByDemo  = "demo"
	ByMerge = "merge"
)

// Written is the content of WrittenFile.
type Written struct {
	dir   string
	file  string // WrittenFile, or the name of another list
	Known bool   `json:"-"` // there is a list
	Begun bool   `json:"-"` // by this process

	By string `json:"by"` // the command that writes there
	// marks by path: relative to the folder, or absolute outside of it; "": it may be in the middle of being written
	Files map[string]string `json:"files"`
}

// ReadWritten reads the list of a folder. A damaged list counts as empty.
func ReadWritten(dir string) *Written { return ReadList(dir, WrittenFile) }

// ReadList is ReadWritten of a list with another name, of a command whose folder is no run's.
func ReadList(dir, file string) *Written {
	w := &Written{dir: dir, file: file}
	err := strictjson.ReadFile(filepath.Join(dir, file), w) // what it does not name is taken for the user's
	w.Known = !errors.Is(err, fs.ErrNotExist)
	if w.Files == nil {
		w.Files = map[string]string{}
	}
	return w
}

// key is the name of a file in the list.
func (w *Written) key(path string) string {
	if rel, err := filepath.Rel(Absolute(w.dir), Absolute(path)); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return Absolute(path)
}

// Owns reports whether this program wrote the file and it has not changed since.
func (w *Written) Owns(path string) bool {
	mark, listed := w.Files[w.key(path)]
	return listed && (mark == "" || mark == markOf(path))
}

// Whole is Owns of a file that is not in the middle of being written. Of files above 16 MiB, samples are compared.
func (w *Written) Whole(path string) bool { return w.Files[w.key(path)] != "" && w.Owns(path) }

// Foreign returns those of the files that are there and that this program did not write, or that were changed since.
func (w *Written) Foreign(paths []string) (list []string) {
	for _, path := range paths {
		if st, err := os.Lstat(path); err == nil && !st.IsDir() && !w.Owns(path) && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// Begin lists files before they are written, so that they are known for this program's when it is killed.
func (w *Written) Begin(paths ...string) error {
	if w == nil { // of a run that never began to write
		return nil
	}
	changed := !w.Known
	w.Begun = true
	for _, path := range paths {
		mark, listed := w.Files[w.key(path)]
		changed = changed || !listed || mark != ""
		w.Files[w.key(path)] = ""
	}
	if !changed {
		return nil
	}
	return w.save()
}

// End marks what was written. Large models are read for that, and pictures by the hundred: all cores do.
func (w *Written) End() error {
	var names []string
	for name, mark := range w.Files {
		if mark == "" {
			names = append(names, name)
		}
	}
	found := make([]func(), len(names))
	parallel.For(len(names), func(i int) { found[i] = w.look(names[i]) })
	for _, note := range found {
		note()
	}
	if len(w.Files) == 0 {
		return os.Remove(filepath.Join(w.dir, w.file))
	}
	return w.save()
}

// look looks at a file and returns what marks it. One that was not written, after all, leaves the list. The scores grow
// by what eval and others add to them, and have no mark.
func (w *Written) look(name string) (note func()) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return func() { delete(w.Files, name) }
	}
	mark := ""
	if !slices.Contains(ScoreFiles, name) {
		mark = markOf(path)
	}
	return func() { w.Files[name] = mark }
}

func (w *Written) save() error {
	w.Known = true
	return WriteJSON(filepath.Join(w.dir, w.file), w)
}

// AddWritten lists files that were written in a folder, if that has a list.
func AddWritten(dir string, paths ...string) error {
	w := ReadWritten(dir)
	if !w.Known {
		return nil
	}
	for _, path := range paths {
		w.look(w.key(path))()
	}
	return w.save()
}

// What of a large file is looked at to tell whether it was changed.
const (
	markWhole  = 16 << 20 // bytes of a file that is read as a whole
	markPieces = 16       // of one that is not
	markPiece  = 1 << 20
)

// markOf tells a file's content from others. It is "" of what cannot be read.
func markOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	size, sum := info.Size(), sha256.New()
	if size <= markWhole {
		_, err = io.Copy(sum, f)
	}
	for i := int64(0); i < markPieces && size > markWhole && err == nil; i++ {
		at := (size - markPiece) * i / (markPieces - 1)
		_, err = io.Copy(sum, io.NewSectionReader(f, at, markPiece))
	}
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %x", size, sum.Sum(nil)[:16])
}

// RefuseForeign is the error of files in the way that this program did not write. Remedy is what can be done besides
// moving them away.
func RefuseForeign(list []string, remedy string) error {
	if len(list) == 0 {
		return nil
	}
	verb := "was"
	if len(list) > 1 {
		verb = "were"
	}
	return fault.Usagef("move your files away, "+remedy, "%s %s not written by this program, or changed since, "+
		"and would be replaced", ListText(list), verb)
}

// ListText names the first five paths of a list, and how many more there are.
func ListText(list []string) string {
	names := strings.Join(list[:min(len(list), 5)], ", ")
	if n := len(list); n > 5 {
		names += fmt.Sprintf(" and %d more", n-5)
	}
	return names
}

// RefuseSame refuses to write over what is read, under whatever names.
func RefuseSame(out string, in ...string) error {
	there, err := os.Stat(out)
	if err != nil {
		return nil // it does not exist yet
	}
	for _, path := range in {
		if st, err := os.Stat(path); err == nil && os.SameFile(st, there) {
			return fault.Usagef("choose another name for what is written", "%s would be overwritten while it is read",
				out)
		}
	}
	return nil
}

// RefuseExisting refuses to replace files, which a setting or, with "", an argument names, unless overwrite is given;
// links that lead nowhere; names that are too long; and the word of other programs for standard output.
func RefuseExisting(setting string, overwrite bool, paths ...string) error {
	for _, path := range paths {
		named := path
		if setting != "" {
			named = fault.Named(setting) + ": " + path
		}
		if path == "-" {
			return fault.Usagef("name a file; ./- is a file named -",
				"%s is not a file: this does not go to standard output", named)
		}
		if err := fault.Dangling(path); err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if errors.Is(err, syscall.ENAMETOOLONG) {
			return fault.Usagef("choose a shorter name", "%s: %w", named, syscall.ENAMETOOLONG)
		}
		if err == nil && st.Mode().IsRegular() && !overwrite {
			return fault.Usagef("choose another name, or replace it with "+fault.Setting("overwrite"),
				"%s already exists", named)
		}
	}
	return nil
}
