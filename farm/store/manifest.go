package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"vksplat/internal/fault"
)

// ManifestName is the manifest in a task's folder of results.
const ManifestName = "MANIFEST.json"

// manifestVersion is the format version of manifests and checkpoints.
const manifestVersion = 1

// Made says how results or a checkpoint were made.
type Made struct {
	Job     string `json:"job"`
	JobHash string `json:"job_sha256"`
	Task    string `json:"task"`
	Hash    string `json:"task_sha256"` // of the task's settings
	Index   int    `json:"index"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	// of the results of other tasks that it was made from, "" without any
	Inputs     string `json:"inputs_sha256,omitempty"`
	Generation int    `json:"generation,omitempty"` // of the results, when the attempt began
	Since      int    `json:"since,omitempty"`      // the first generation whose checkpoints it may resume
	Step       int    `json:"step"`                 // steps or pictures done
	Program    string `json:"program"`
	Device     string `json:"device,omitempty"`
	UUID       string `json:"device_uuid,omitempty"` // of that device, of several alike
	Driver     string `json:"driver,omitempty"`
	// made on several devices or drivers: the bytes may differ from those of an uninterrupted run
	Mixed bool     `json:"mixed"`
	Notes []string `json:"notes,omitempty"` // on other events that may have changed bytes
	// failed tasks that it did without: it is made again once their results exist
	Missing []string `json:"missing,omitempty"`
}

// resumes reports whether an attempt may resume from a saved state: same task hash, same inputs, and not invalidated by
// --redo since.
func (m *Made) resumes(saved *Made) bool {
	return saved.Hash == m.Hash && saved.Inputs == m.Inputs && saved.Generation >= m.Since
}

// Manifest lists the files of a result or of a checkpoint.
type Manifest struct {
	Version int `json:"version"`
	Made
	At    string `json:"at,omitempty"` // folder of the files beside the manifest, of results published in place
	Files []File `json:"files"`
}

// File is a file of a manifest.
type File struct {
	Name   string `json:"name"` // with slashes, below the folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Key is the key of a file, where the manifest is below a key.
func (m *Manifest) Key(below string, f File) string { return path.Join(below, m.At, f.Name) }

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Contents is a hash of names and contents.
func (m *Manifest) Contents() string {
	h := sha256.New()
	for _, f := range m.Files {
		fmt.Fprintf(h, "%q %d %s\n", f.Name, f.Size, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// maxManifest bounds the size of a manifest, in bytes: some hundred thousand files.
const maxManifest = 64 << 20

// ReadManifest reads the manifest below a key. A missing one is fs.ErrNotExist.
func ReadManifest(r Root, key string) (*Manifest, error) {
	return readManifest(r, path.Join(key, ManifestName))
}

func readManifest(r Root, key string) (*Manifest, error) {
	data, err := readSmall(r, key)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil || len(data) > maxManifest {
		return nil, fmt.Errorf("%s: %w: not a manifest", key, ErrDamaged)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("%s: %w: its version is %d, this program reads %d", key, ErrDamaged, m.Version,
			manifestVersion)
	}
	if m.At != "" && (!fs.ValidPath(m.At) || strings.ContainsAny(m.At, "/\\") || m.At[0] == '.') {
		return nil, fmt.Errorf("%s: %w: its files are at %.80q", key, ErrDamaged, m.At)
	}
	for _, f := range m.Files {
		if !isKey(f.Name) || f.Size < 0 {
			return nil, fmt.Errorf("%s: %w: it lists %.80q", key, ErrDamaged, f.Name)
		}
	}
	return m, nil
}

// readSmall reads a file of at most maxManifest bytes, and of a larger one a byte more.
func readSmall(r Root, key string) ([]byte, error) {
	f, err := r.Open(key)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	return data, errors.Join(err, f.Close())
}

// verify reads all files of a manifest below a key. A mismatch is ErrDamaged.
func verify(ctx context.Context, r Root, key string, m *Manifest) error {
	for _, f := range m.Files {
		if err := CopyFile(ctx, r, m.Key(key, f), f, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// CopyFile copies a file to w and checks its size, and its hash if known.
func CopyFile(ctx context.Context, r Root, key string, want File, w io.Writer) error {
	f, err := r.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: it is missing", key, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer f.Close() // only read
	h := newMeter(ctx, w)
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if h.n != want.Size || want.SHA256 != "" && h.sum() != want.SHA256 {
		return fmt.Errorf("%s: %w: its content has changed since it was written", key, ErrDamaged)
	}
	return nil
}

// meter counts and hashes what is written through it, until its context ends.
type meter struct {
	ctx context.Context
	w   io.Writer
	h   hash.Hash
	n   int64
}

func newMeter(ctx context.Context, w io.Writer) *meter { return &meter{ctx, w, sha256.New(), 0} }

func (m *meter) Write(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.w.Write(p)
	_, _ = m.h.Write(p[:n]) // a hash takes everything
	m.n += int64(n)
	return n, err
}

func (m *meter) sum() string { return hex.EncodeToString(m.h.Sum(nil)) }

// ReadLocal copies at most some bytes of a local file to w, and describes them.
func ReadLocal(ctx context.Context, dir *os.Root, name string, most int64, w io.Writer) (File, error) {
	f, err := dir.Open(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close() // only read
	m := newMeter(ctx, w)
	_, err = io.Copy(m, io.LimitReader(f, most))
	return File{name, m.n, m.sum()}, err
}

// LocalFiles lists the regular files of a local folder by name, with slashes, without hidden and skipped ones.
func LocalFiles(dir *os.Root, skip func(name string) bool) (names []string, err error) {
	err = fs.WalkDir(dir.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.Type().IsRegular() && !skip(name):
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// Folders of a task below its key.
const (
	outFolder  = "out"  // results
	tempFolder = "tmp"  // results on their way there
	ckptFolder = "ckpt" // checkpoints
)

// OutOf is where the results of a task are.
func OutOf(task string) string { return path.Join(task, outFolder) }

// errOutdated is the error of results outdated while they were made.
var errOutdated = error(&fault.Error{Op: "commit results",
	Err: errors.New("they were outdated while this attempt made them"), Hint: "run it again",
	Kind: fault.ErrTryAgain})

// Commit commits files of a local folder as the results of a task, atomically. The first attempt wins: valid results of
// the same hash stay and are returned, and own is false. Results of another hash are an error, and so is an attempt
// that began before Outdate.
func Commit(ctx context.Context, r Root, task string, dir *os.Root, names []string, made Made) (m *Manifest, own bool,
	err error) {
	stage := stage(r, task, stageName(made.Attempt, rand.Text()))
	mayCount := false // Publish may have succeeded though its answer was lost: then the stage has the results
	defer func() {
		if !mayCount {
			_ = r.Delete(stage) // gc removes the rest
			r.Abort(stage)
		}
	}()
	m = &Manifest{Version: manifestVersion, Made: made, Files: []File{}}
	if at, stays := strings.CutPrefix(stage, OutOf(task)+"/"); stays {
		m.At = at
	}
	// a faster attempt may have removed the stage
	if err := m.fill(ctx, r, stage, dir, names); errors.Is(err, fs.ErrNotExist) {
		if first, none := Result(ctx, r, task); none == nil && first != nil {
			return first, false, first.Of(task, made.Hash)
		}
		return nil, false, err
	} else if err != nil {
		return nil, false, err
	}
	for range 3 {
		now, err := Generation(r, task)
		if err != nil {
			return nil, false, err
		}
		if now > made.Generation {
			mayCount = false
			return nil, false, errOutdated
		}
		mayCount = true
		// A process halted here publishes outdated results: Result detects them.
		err = r.Publish(stage, OutOf(task))
		if !errors.Is(err, ErrExists) {
			return m, err == nil, err
		}
		first, err := Result(ctx, r, task)
		if err != nil {
			return nil, false, err
		}
		if first != nil {
			own = m.At != "" && first.At == m.At // setAside had moved these away for a moment
			mayCount = own
			return first, own, first.Of(task, made.Hash)
		}
	}
	return nil, false, fmt.Errorf("%s: %w: damaged results keep reappearing", OutOf(task), ErrDamaged)
}

// fill uploads the files of a local folder and the manifest to a stage.
func (m *Manifest) fill(ctx context.Context, r Root, stage string, dir *os.Root, names []string) error {
	for _, name := range names {
		var f File
		err := r.Put(path.Join(stage, name), func(w io.Writer) (err error) {
			f, err = ReadLocal(ctx, dir, name, math.MaxInt64, w)
			return err
		})
		if err != nil {
			return err
		}
		m.Files = append(m.Files, f)
	}
	return putJSON(r, path.Join(stage, ManifestName), m)
}

// stageName names the stage of an attempt.
func stageName(attempt int, random string) string { return fmt.Sprintf("a%d-%s", attempt, random) }

// stageOf parses a stageName.
func stageOf(name string) (attempt int, is bool) {
	number, _, _ := strings.Cut(name, "-")
	n, err := attemptOf(number)
	return n, err == nil && strings.HasPrefix(name, stageName(n, ""))
}

// Of is the error of results of another task with this name, or of this one before it was edited.
func (m *Manifest) Of(task, hash string) error {
	if m.Hash == hash {
		return nil
	}
	return &fault.Error{Op: "run task", Path: task, Kind: fault.ErrUsage, Err: ErrOtherTask,
		Hint: "give the job or the task another name, or move that folder away"}
}

// ErrOtherTask is the cause of the errors of Of.
var ErrOtherTask = errors.New("a task of this name with other settings already has results there")

// Result returns the manifest of a task's results, nil without any. Damaged and outdated ones are moved out of the way.
func Result(ctx context.Context, r Root, task string) (*Manifest, error) {
	out := OutOf(task)
	now, err := Generation(r, task)
	if err != nil {
		return nil, err
	}
	m, err := ReadManifest(r, out)
	if err == nil && m.Generation < now {
		return nil, setAside(r, task, oldPrefix, func(m *Manifest) bool { return m == nil || m.Generation < now })
	}
	if err == nil {
		err = verify(ctx, r, out, m)
	}
	if err == nil {
		return m, nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	e, err := r.Stat(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if missing || !e.Folder {
		return unnamed(ctx, r, task)
	}
	return nil, setAside(r, task, "damaged-", func(moved *Manifest) bool { return moved.isSame(m) })
}

// ErrForeign is the error of files of other programs in a folder of results.
var ErrForeign = errors.New("it holds files that are in no manifest")

// unnamed is Result for a folder of results without a manifest: stages if published in place, else foreign.
func unnamed(ctx context.Context, r Root, task string) (*Manifest, error) {
	out := OutOf(task)
	if r.InPlace() {
		return nil, nil
	}
	if _, err := r.Stat(path.Join(out, ManifestName)); err == nil { // another attempt has just put results there
		return Result(ctx, r, task)
	}
	return nil, &fault.Error{Op: "run task", Path: out, Err: ErrForeign,
		Hint: "move the folder away, or give the task another id", Kind: fault.ErrUsage}
}

func putJSON(r Root, key string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return r.Put(key, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}
