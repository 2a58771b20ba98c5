package store

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// folder is a root on a disk of this machine, or one that it shares with others. os.Root sees to it that no key, nor a
// link in it, leads out of it.
type folder struct {
	root  *os.Root
	dir   string
	umask int // -1: the process's
	gid   int // -1: the process's
	patience
}

func openFolder(dir, mark string, umask, gid int) (Root, error) {
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, setupError(dir, "make the folder, or mount it", "there is no such folder")
	case err != nil:
		return nil, setupError(dir, "check its permissions", "%w", err)
	}
	if err := marked(root, mark); err != nil {
		_ = root.Close()
		return nil, setupError(dir,
			fmt.Sprintf("mount the share; where it is mounted, make the file once: touch %s", filepath.Join(dir, mark)),
			"%w", err)
	}
	return &folder{root: root, dir: dir, umask: umask, gid: gid, patience: newPatience()}, nil
}

// marked says that a folder lacks its mark, where it has one: then it may be the place of a share that is not mounted.
func marked(root *os.Root, mark string) error {
	if mark == "" {
		return nil
	}
	_, err := root.Stat(mark)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("its marker file %s is missing: the share is not mounted", mark)
	}
	return err
}

func (f *folder) String() string { return f.dir }

// Attend implements Root.
func (f *folder) Attend(leaving context.Context, waits func(cause error)) Root {
	a := *f
	a.patience = f.attended(leaving, waits)
	return &a
}

// patiently does something again while it fails as shares do that are away, or full, for a moment. That something which
// takes no room can be done does not end a full one.
func (f *folder) patiently(op, key string, do func() error) error {
	before := f.gaveUp.Load()
	err := f.try(op, key, isAwayShare, do)
	if before != nil && isFull(before.why) && op != opPut && op != opPublish {
		f.gaveUp.CompareAndSwap(nil, before)
	}
	return err
}

// What takes room.
const (
	opPut     = "put"
	opPublish = "publish"
)

// isAwayShare says whether an error is of a share that is away, or full.
func isAwayShare(err error) bool { return errors.Is(err, syscall.EIO) || isStale(err) || isFull(err) }

func (f *folder) Open(key string) (io.ReadCloser, error) {
	r := &reader{folder: f, key: key}
	err := f.patiently("open", key, func() (err error) {
		if _, err = f.look(key); err == nil { // opening a pipe would wait for who writes to it
			r.file, err = f.root.Open(key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// errOdd is of what cannot be a file or folder of a root.
var errOdd = fmt.Errorf("%w: not a regular file or folder, or a symlink that leaves the root", ErrDamaged)

// Odd is the error of what ListAll found odd, nil where that is nothing.
func Odd(op string, odd []string) error {
	if len(odd) == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: odd[0], Err: errOdd}
}

// look describes a file or folder. What is neither, such as a pipe, a file in place of a folder, or a link that leads
// out of the root or in a circle, is errOdd.
func (f *folder) look(key string) (fs.FileInfo, error) {
	info, err := f.root.Stat(key)
	var errno syscall.Errno
	switch {
	case err == nil && (info.Mode().IsRegular() || info.IsDir()):
		return info, nil
	case err != nil && errors.Is(err, fs.ErrNotExist): // on Windows that may be ENOTDIR, too
		return nil, err
	case err == nil, errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), !errors.As(err, &errno):
		// the last: it leads out
		return nil, &fs.PathError{Op: "look at", Path: key, Err: errOdd}
	}
	return nil, err
}

// reader is a file that is read on where its share was away for a moment.
type reader struct {
	folder *folder
	key    string
	file   *os.File
	at     int64       // how far it is read
	info   fs.FileInfo // of the file when it was read first; nil: it was not
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (n int, err error) {
	failed := false
	err = r.folder.patiently("read", r.key, func() (err error) {
		if failed {
			if err := r.reopen(); err != nil {
				return err
			}
		}
		failed = true
		if r.info == nil {
			if r.info, err = r.file.Stat(); err != nil {
				return err
			}
		}
		n, err = r.file.Read(p)
		return err
	})
	r.at += int64(n)
	return n, err
}

// reopen opens the file again, for a handle that went stale stays so. What changed since is not read on.
func (r *reader) reopen() error {
	file, err := r.folder.root.Open(r.key)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && r.info != nil && (info.Size() != r.info.Size() || !info.ModTime().Equal(r.info.ModTime())) {
		err = fmt.Errorf("%s changed while it was read", r.key)
	}
	if err == nil {
		_, err = file.Seek(r.at, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	_ = r.file.Close() // the share has forgotten it
	r.file = file
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.file.Close() }

func (f *folder) Stat(key string) (e Entry, err error) {
	err = f.patiently("stat", key, func() error {
		info, err := f.look(key)
		if err == nil {
			e = Entry{Key: key, Size: info.Size(), Modified: info.ModTime(), Folder: info.IsDir()}
		}
		return err
	})
	return e, err
}

func (f *folder) Put(key string, write func(io.Writer) error) error {
	return f.patiently(opPut, key, func() error { return f.put(key, write) })
}

func (f *folder) put(key string, write func(io.Writer) error) (err error) {
	dir := path.Dir(key)
	temp := path.Join(dir, ".tmp-"+rand.Text())
	var file *os.File
	err = f.in(dir, func() error {
		file, err = f.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.root.Remove(temp) // the first error is the one to report
		}
	}()
	b := bufio.NewWriterSize(file, 1<<18)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := f.own(temp, 0o666); err != nil {
		return err
	}
	if err := f.root.Rename(temp, key); err != nil {
		return err
	}
	return f.sync(dir)
}

// Claim implements Root.
func (f *folder) Claim(key string) error {
	return f.patiently("claim", key, func() error {
		dir := path.Dir(key)
		err := f.in(dir, func() error {
			file, err := f.root.OpenFile(key, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if errors.Is(err, fs.ErrExist) {
			return ErrExists
		}
		if err != nil {
			return err
		}
		return errors.Join(f.own(key, 0o666), f.sync(dir))
	})
}

// in does something in a folder, which is made where it is missing: also where somebody removes it, empty as it is, in
// between.
func (f *folder) in(dir string, do func() error) error {
	for try := 1; ; try++ {
		err := f.makeFolders(dir)
		if err == nil {
			err = do()
		}
		if try == tries || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// tidy removes a folder that is empty. Who is about to put something there makes it again.
func (f *folder) tidy(dir string) {
	// a link would go with all that is behind it
	if info, err := f.root.Lstat(dir); err == nil && info.IsDir() && dir != "." {
		_ = f.root.Remove(dir) // it has files, or others have removed it
	}
}

// makeFolders makes a folder and those above it.
func (f *folder) makeFolders(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := f.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := f.makeFolders(path.Dir(dir)); err != nil {
		return err
	}
	err := f.root.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	if err := f.own(dir, 0o777); err != nil {
		return err
	}
	return f.sync(path.Dir(dir))
}

// own gives a new file or folder the permissions and the group of the root's options.
func (f *folder) own(name string, all fs.FileMode) error {
	if f.gid >= 0 {
		if err := f.root.Chown(name, -1, f.gid); err != nil {
			return fmt.Errorf("give it to group %d: %w", f.gid, err)
		}
	}
	if f.umask < 0 {
		return nil
	}
	return f.root.Chmod(name, all&^fs.FileMode(f.umask))
}

// sync brings the names in a folder to the disk.
func (f *folder) sync(dir string) error {
	if runtime.GOOS == "windows" { // whose folders cannot be synced
		return nil
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // nor can those of some shares
		err = nil
	}
	return errors.Join(err, d.Close())
}

func (f *folder) List(key string) ([]Entry, error) {
	list, _, err := f.ListAll(key)
	return list, err
}

func (f *folder) ListAll(key string) (list []Entry, odd []string, err error) {
	err = f.patiently("list", key, func() error {
		info, err := f.look(key)
		if err != nil {
			return err
		}
		w := walk{folder: f}
		err = w.take(key, info)
		list, odd = w.list, w.odd
		return err
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	slices.Sort(odd)
	return list, odd, err
}

// walk lists files.
type walk struct {
	folder *folder
	list   []Entry
	odd    []string
	in     []fs.FileInfo // folders that are being read, each in the one before
}

// take takes in the files at and below a key.
func (w *walk) take(key string, info fs.FileInfo) error {
	if !info.IsDir() {
		w.list = append(w.list, Entry{Key: key, Size: info.Size(), Modified: info.ModTime()})
		return nil
	}
	if slices.ContainsFunc(w.in, func(above fs.FileInfo) bool { return os.SameFile(above, info) }) {
		w.odd = append(w.odd, key) // a link that leads in a circle
		return nil
	}
	w.in = append(w.in, info)
	defer func() { w.in = w.in[:len(w.in)-1] }()
	names, err := w.folder.namesIn(key)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		below := path.Join(key, name)
		info, err := w.folder.look(below)
		if errors.Is(err, errOdd) || !isKey(name) {
			w.odd = append(w.odd, below)
			continue
		}
		if err == nil {
			err = w.take(below, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else it has just been removed
			return err
		}
	}
	return nil
}

func (f *folder) Names(key string) (names []string, err error) {
	err = f.patiently("list", key, func() error {
		info, err := f.look(key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			names = []string{path.Base(key)}
			return nil
		}
		names, err = f.namesIn(key)
		names = slices.DeleteFunc(names, func(name string) bool {
			_, err := f.look(path.Join(key, name))
			return strings.HasPrefix(name, ".") || !isKey(name) || errors.Is(err, errOdd)
		})
		return err
	})
	slices.Sort(names)
	return names, err
}

// namesIn lists a folder.
func (f *folder) namesIn(key string) ([]string, error) {
	d, err := f.root.Open(key)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

func (f *folder) Delete(key string) error {
	if key == "." {
		return &fs.PathError{Op: "delete", Path: key, Err: fs.ErrInvalid}
	}
	err := f.patiently("delete", key, func() error { return f.root.RemoveAll(key) })
	if err == nil {
		f.tidy(path.Dir(key))
	}
	return err
}

// Abort implements Root: there are no uploads.
func (f *folder) Abort(...string) {}

// Stage implements Root: a folder can be renamed.
func (f *folder) Stage(task, name string) string { return path.Join(task, tempFolder, name) }

// Sweep implements Root: no stage is among the results.
func (f *folder) Sweep(string, string) error { return nil }

func (f *folder) Publish(from, to string) error {
	return f.patiently(opPublish, to, func() error {
		if _, err := f.root.Lstat(to); err == nil {
			return ErrExists
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := f.root.Lstat(from); err != nil {
			return err
		}
		err := f.in(path.Dir(to), func() error { return f.root.Rename(from, to) })
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
			return ErrExists
		}
		if err != nil {
			return err
		}
		err = f.sync(path.Dir(from))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // somebody else has tidied up
		}
		f.tidy(path.Dir(from))
		return errors.Join(f.sync(path.Dir(to)), err)
	})
}

// Ready implements Root: what it needs, Open and Put say.
func (f *folder) Ready(string) error { return nil }
