package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
	"vksplat/internal/parallel"
)

// Cache is a local folder of inputs, shared by all processes of a machine. An input is a folder <id>, a hash of its
// contents, with a lock <id>.lock: shared while a task reads it, exclusive while it is filled or removed.
type Cache struct {
	dir string
	max int64 // bytes; 0: no bound

	synced func(file string) // of tests: it is on the disk
}

// OpenCache opens a cache in a folder, and creates the folder if it is missing.
func OpenCache(dir string, max int64) (*Cache, error) {
	return &Cache{dir: dir, max: max}, os.MkdirAll(dir, 0o777)
}

// entryFile marks an input as complete, and lists its files. Its time is that of the last use.
const entryFile = ".entry.json"

// entryRecord is the content of entryFile.
type entryRecord struct {
	Input string `json:"input"` // for people
	Bytes int64  `json:"bytes"`
	Files []File `json:"files"`
}

// Input returns a local copy of the file or folder at a key. Release must be called when it is no longer read.
func (c *Cache) Input(ctx context.Context, r Root, key string) (local string, release func(), err error) {
	at, err := r.Stat(key)
	if err != nil {
		return "", nil, err
	}
	list, odd, err := r.List(key)
	if err = errors.Join(err, Odd("fetch", odd)); err != nil { // what was left out would be missing
		return "", nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %v\n", r, key, at.Folder)
	var files []File
	for _, e := range list {
		name := strings.TrimPrefix(strings.TrimPrefix(e.Key, key), "/")
		if !at.Folder {
			name = path.Base(key)
		}
		fmt.Fprintf(h, "%q %d %d%s\n", name, e.Size, e.Modified.UnixNano(), e.Tag)
		files = append(files, File{Name: name, Size: e.Size})
	}
	parent := key
	if !at.Folder {
		parent = path.Dir(key)
	}
	dir, release, err := c.use(ctx, hex.EncodeToString(h.Sum(nil)), r, parent, files)
	if err == nil && !at.Folder {
		dir = filepath.Join(dir, path.Base(key))
	}
	return dir, release, err
}

// FolderOf is the cache's folder of the input at a local path.
func (c *Cache) FolderOf(local string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(local, c.dir+string(filepath.Separator)), string(filepath.Separator))
	return filepath.Join(c.dir, name)
}

// Output returns a local copy of the results of a task.
func (c *Cache) Output(ctx context.Context, r Root, task string) (local string, release func(), err error) {
	m, err := ReadManifest(r, OutOf(task))
	if err != nil {
		return "", nil, fmt.Errorf("results of %s: %w", task, err)
	}
	return c.use(ctx, m.Contents(), r, path.Join(OutOf(task), m.At), m.Files)
}

// use returns the folder of an input, and fills it first if needed.
func (c *Cache) use(ctx context.Context, id string, r Root, from string, files []File) (string, func(), error) {
	dir := filepath.Join(c.dir, id[:32])
	for {
		unlock, err := lockfile.Wait(ctx, dir+".lock", lockfile.Shared)
		if err != nil {
			return "", nil, err
		}
		if c.whole(dir) {
			now := time.Now()
			_ = os.Chtimes(filepath.Join(dir, entryFile), now, now) // else trim removes it sooner
			return dir, func() { unlock(); c.trim(0) }, nil
		}
		unlock()
		if unlock, err = lockfile.Wait(ctx, dir+".lock", lockfile.Exclusive); err != nil {
			return "", nil, err
		}
		if !c.whole(dir) {
			if err = c.fill(ctx, dir, r, from, files); err == nil && !c.whole(dir) {
				err = notKept(r.String() + "/" + from)
			}
		}
		unlock()
		if err != nil {
			return "", nil, err
		}
	}
}

// notKept is the error of an input with files that overwrite each other: it would be fetched again and again.
func notKept(input string) error {
	return &fault.Error{Op: "fetch input", Path: input,
		Err: errors.New("a file of it has another size once all are on the local disk"),
		Hint: "give its files names that differ in more than case, or name another disk with " +
			fault.Setting("work"), Kind: ErrSetup}
}

// whole reports whether a folder is filled, and all files have the right size.
func (c *Cache) whole(dir string) bool {
	e, err := readEntry(dir)
	if err != nil {
		return false
	}
	for _, f := range e.Files {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Name))); err != nil || info.Size() != f.Size {
			return false
		}
	}
	return true
}

func readEntry(dir string) (*entryRecord, error) {
	data, err := os.ReadFile(filepath.Join(dir, entryFile))
	if err != nil {
		return nil, err
	}
	e := &entryRecord{}
	return e, json.Unmarshal(data, e)
}

// fill copies files into a folder. The caller has its exclusive lock.
func (c *Cache) fill(ctx context.Context, dir string, r Root, from string, files []File) (err error) {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	e := entryRecord{Input: r.String() + "/" + from, Files: files}
	for _, f := range files {
		e.Bytes += f.Size
	}
	c.trim(e.Bytes)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir) // the first error is the one to report
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() // its files are closed
	if err := fetchAll(ctx, r, from, files, root); err != nil {
		return err
	}
	// The contents before the entry: after a power cut files of the right size may be full of zeros.
	for _, f := range files {
		if err := SyncFile(root, f.Name); err != nil {
			return err
		}
		if c.synced != nil {
			c.synced(filepath.Join(dir, filepath.FromSlash(f.Name)))
		}
	}
	data, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	return root.WriteFile(entryFile, data, 0o666)
}

// fetches is how many files are fetched at once.
const fetches = 4

// fetchAll copies files to a local folder, and returns the first error, which ends the others.
func fetchAll(ctx context.Context, r Root, from string, files []File, to *os.Root) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := parallel.Limited(len(files), fetches, func(i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := toLocal(ctx, r, path.Join(from, files[i].Name), files[i], to)
		if err != nil {
			stop(err)
		}
		return err
	})
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// SyncFile syncs a local file to the disk.
func SyncFile(dir *os.Root, name string) error {
	f, err := dir.OpenFile(name, os.O_RDWR, 0) // Windows syncs what can be written
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// trim removes unused inputs, the least recently used first, until there is room for more bytes, and all that were
// never filled completely.
func (c *Cache) trim(room int64) {
	type old struct {
		dir   string
		bytes int64
		used  time.Time
	}
	var list []old
	total := room
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // it is filled all the same, or fails with a better error
	}
	for _, e := range entries {
		dir := filepath.Join(c.dir, e.Name())
		info, err := os.Stat(filepath.Join(dir, entryFile))
		if errors.Is(err, fs.ErrNotExist) && e.IsDir() && lockfile.Check(dir+".lock") == nil {
			list = append(list, old{dir: dir})
		}
		if err != nil || c.max <= 0 {
			continue
		}
		if r, err := readEntry(dir); err == nil {
			list = append(list, old{dir, r.Bytes, info.ModTime()})
			total += r.Bytes
		}
	}
	slices.SortFunc(list, func(a, b old) int { return a.used.Compare(b.used) })
	for _, e := range list {
		if !e.used.IsZero() && (c.max <= 0 || total <= c.max) {
			return
		}
		unlock, err := lockfile.Try(e.dir+".lock", lockfile.Exclusive)
		if err != nil {
			continue // in use
		}
		// The entry first: the rest may remain.
		if err := os.Remove(filepath.Join(e.dir, entryFile)); err == nil || errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(e.dir) // else it is removed later
			total -= e.bytes
		}
		unlock()
	}
}
