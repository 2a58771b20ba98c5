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

	"vksplat/internal/fault"
)

// folder is a root on a local disk or a share. os.Root keeps keys and links inside.
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

// marked checks the mark of a folder: without it, the share may not be mounted.
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

// patiently retries an operation while the share is away or full. Success of one that needs no room does not show that
// a full share has room again.
func (f *folder) patiently(op, key string, do func() error) error {
	before := f.gaveUp.Load()
	err := f.check(op, key, isAwayShare)
	if err == nil {
		err = f.again(tries, isAwayShare, do)
	}
	if before != nil && fault.IsFull(before.why) && op != opPut && op != opPublish {
		f.gaveUp.CompareAndSwap(nil, before)
	}
	return err
}

// Operations that need room.
const (
	opPut     = "put"
	opPublish = "publish"
)

// isAwayShare reports whether an error is of a share that is away or full.
func isAwayShare(err error) bool {
	return errors.Is(err, syscall.EIO) || isStale(err) || fault.IsFull(err)
}

func (f *folder) Open(key string) (io.ReadCloser, error) {
	r := &reader{folder: f, key: key}
	err := f.patiently("open", key, func() (err error) {
		if _, err = f.look(key); err == nil { // opening a pipe would block
			r.file, err = f.root.Open(key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// errOdd is the error of what is neither a file nor a folder inside the root.
var errOdd = fmt.Errorf("%w: not a regular file or folder, or a symlink that leaves the root", ErrDamaged)

// Odd is the error for the odd entries of a List, nil without any.
func Odd(op string, odd []string) error {
	if len(odd) == 0 {
		return nil
	}
	return &fs.PathError{Op: op, Path: odd[0], Err: errOdd}
}

// look describes a file or folder. Pipes, links out of the root or in a cycle, and the like are errOdd.
func (f *folder) look(key string) (fs.FileInfo, error) {
	info, err := f.root.Stat(key)
	var errno syscall.Errno
	switch {
	case err == nil && (info.Mode().IsRegular() || info.IsDir()):
		return info, nil
	case err != nil && errors.Is(err, fs.ErrNotExist): // on Windows that may be ENOTDIR, too
		return nil, err
	case err == nil, errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), !errors.As(err, &errno):
		// the last: it leaves the root
		return nil, &fs.PathError{Op: "look at", Path: key, Err: errOdd}
	}
	return nil, err
}

// reader reads a file, and continues after its share was away.
type reader struct {
	folder *folder
	key    string
	file   *os.File
	at     int64       // offset
	info   fs.FileInfo // at the first read; nil before
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

// reopen replaces a stale handle. A file that has changed is an error.
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

// in does something in a folder, and creates the folder as often as another process removes it while it is empty.
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

// tidy removes an empty folder. Writers create it again, see in.
func (f *folder) tidy(dir string) {
	// not a link
	if info, err := f.root.Lstat(dir); err == nil && info.IsDir() && dir != "." {
		_ = f.root.Remove(dir) // fails if it has files
	}
}

// makeFolders creates a folder and its parents.
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
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	if err := f.own(dir, 0o777); err != nil {
		return err
	}
	return f.sync(path.Dir(dir))
}

// own sets the permissions and the group of a new file or folder.
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

// sync syncs a folder to the disk.
func (f *folder) sync(dir string) error {
	if runtime.GOOS == "windows" { // which cannot sync folders
		return nil
	}
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // nor can some shares
		err = nil
	}
	return errors.Join(err, d.Close())
}

func (f *folder) List(key string) (list []Entry, odd []string, err error) {
	err = f.patiently("list", key, func() error {
		info, err := f.look(key)
		if err != nil {
			return err
		}
		w := walk{folder: f}
		err = w.add(key, info)
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
	in     []fs.FileInfo // the folders above
}

// add lists the files at and below a key.
func (w *walk) add(key string, info fs.FileInfo) error {
	if !info.IsDir() {
		w.list = append(w.list, Entry{Key: key, Size: info.Size(), Modified: info.ModTime()})
		return nil
	}
	if slices.ContainsFunc(w.in, func(above fs.FileInfo) bool { return os.SameFile(above, info) }) {
		w.odd = append(w.odd, key) // a cycle
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
			err = w.add(below, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // just removed
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

// A folder can be renamed, and knows no uploads.

func (f *folder) InPlace() bool      { return false }
func (f *folder) Ready(string) error { return nil }
func (f *folder) Abort(...string)    {}

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
			err = nil // tidied by another process
		}
		f.tidy(path.Dir(from))
		return errors.Join(f.sync(path.Dir(to)), err)
	})
}
