package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
)

// Folder holds beside the results of a job's tasks what this package writes for people. No task has this name.
const Folder = "@run"

// Files in Folder.
const (
	statusName    = "status.json"
	inspectedName = "inspected"
)

// PreviewKey is where the small picture of a task is, beside the results of its job.
func PreviewKey(index int) string { return path.Join(Folder, "preview", strconv.Itoa(index)+".jpg") }

// failedName is the file beside a task's logs that says that it failed for good.
const failedName = "log/failed.json"

// failure is the content of failedName. It is of a task that does the same: one that was edited is tried again.
type failure struct {
	Hash     string    `json:"task_sha256"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"`
	Hint     string    `json:"hint,omitempty"`
	At       time.Time `json:"at"`
}

func (r *runner) key(i int) string { return task.KeyOf(r.Job, &r.Plan.Tasks[i]) }

// ErrUnreadable is the error of a status that is not JSON.
var ErrUnreadable = errors.New("it cannot be read")

func readJSON(root store.Root, key string, v any) error {
	f, err := root.Open(key)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	if err := json.NewDecoder(io.LimitReader(f, maxStatus)).Decode(v); err != nil {
		return &fault.Error{Op: "read status", Path: key, Err: fmt.Errorf("%w: %w", ErrUnreadable,
			strictjson.JSONError(err)), Hint: "run the job again: it rewrites the file"}
	}
	return nil
}

func putJSON(root store.Root, key string, v any) error {
	return root.Put(key, func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}

// lookers is how many tasks the store is asked about at a time: a bucket answers after some milliseconds.
const lookers = 16

// LastLog is the log of the last attempt at a task that has at least some bytes, the zero Entry if there is none.
func LastLog(root store.Root, key string, bytes int64) (last store.Entry, err error) {
	list, _, err := root.List(path.Join(key, "log"))
	for _, e := range list { // sorted by the number of the attempt
		if strings.HasSuffix(e.Key, ".log") && e.Size >= bytes {
			last = e
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return last, err
}

// look asks the store whether a task is done, or failed for good. With again, its failure is forgotten. The manifest
// alone is read: fsck reads all bytes.
func (r *runner) look(i int, again bool) error {
	t, hash := &r.status.Tasks[i], r.Plan.Hash(i)
	m, err := store.ReadManifest(r.outputs, store.OutOf(r.key(i)))
	switch {
	case err == nil && m.Hash == hash:
		t.State, t.before, t.Device, t.Message, r.partial[i] = Done, true, m.Device, without(m.Missing), m.Missing
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err,
		store.ErrDamaged): // the task itself says what of another one's results
		return err
	}
	file := path.Join(r.key(i), failedName)
	var said failure
	switch err := readJSON(r.outputs, file, &said); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrUnreadable), err == nil && said.Hash != hash:
		return nil
	case err != nil:
		return err
	case again:
		return r.outputs.Delete(file)
	}
	t.State, t.before, t.Error, t.Hint = Failed, true, said.Error, said.Hint
	return nil
}

func inspectedKey(j *spec.Job) string { return path.Join(j.Name, Folder, inspectedName) }

// NoteInspected records in the store that the first frames of a job were approved.
func NoteInspected(outputs store.Root, j *spec.Job) error {
	file := inspectedKey(j)
	return store.Explain("record the approval of frames", file, putJSON(outputs, file, time.Now()))
}

// Inspected says whether they were.
func Inspected(outputs store.Root, j *spec.Job) (bool, error) {
	file := inspectedKey(j)
	_, err := outputs.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, store.Explain("read results", file, err)
}

// shown is the status and pictures in the store, for people.
type shown struct {
	dirty    bool // the status is newer than that of the store
	previews map[int][]byte
	next     time.Time // not before
	sending  atomic.Bool
	sends    sync.WaitGroup
}

const (
	showEvery = 2 * time.Second
	showAlive = 10 * time.Second // the status is written also where nothing changes: this process is alive
	showShare = 20               // of the time, one part is spent on writing it
)

// maxStatus is more than the status of a job of most tasks takes, in bytes.
const maxStatus = 1 << 28

// ReadStatus reads how far the job is whose results are in a folder.
func ReadStatus(outputs store.Root, folder string) (*Status, error) {
	s := &Status{}
	return s, readJSON(outputs, path.Join(folder, Folder, statusName), s)
}

// publish writes the status into the store from time to time, in a goroutine of its own: a store that is away holds
// nothing up. At the end it waits for that. Nobody but people need what it writes, so it may fail.
func (r *runner) publish(end bool) {
	s := &r.shown
	if s.sending.Load() && !end {
		return
	}
	s.sends.Wait()
	now := time.Now()
	if !end && (now.Before(s.next) || !s.dirty && now.Sub(r.status.Updated) < showAlive) {
		return
	}
	r.status.Updated, r.status.Ended = now.UTC(), end
	data, err := json.Marshal(&r.status)
	if err != nil {
		return
	}
	previews, root, folder := s.previews, r.outputs, r.Job.Name
	s.previews, s.dirty = map[int][]byte{}, false
	s.next = now.Add(max(showEvery, showShare*time.Since(now)))
	s.sending.Store(true)
	s.sends.Go(func() {
		defer s.sending.Store(false)
		put := func(key string, data []byte) {
			_ = root.Put(path.Join(folder, key), func(w io.Writer) error { _, err := w.Write(data); return err })
		}
		for i, picture := range previews {
			put(PreviewKey(i), picture)
		}
		put(path.Join(Folder, statusName), data)
	})
	if end {
		s.sends.Wait()
	}
}
