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

// ManifestName is the file in a task's folder of results that says what is in it.
const ManifestName = "MANIFEST.json"

// manifestVersion is that of the form of manifests and checkpoints.
const manifestVersion = 1

// Made says who made something, and with what.
type Made struct {
	Job     string `json:"job"`
	JobHash string `json:"job_sha256"`
	Task    string `json:"task"`
	Hash    string `json:"task_sha256"` // of what the task does, with what
	Index   int    `json:"index"`
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	// of the results of other tasks that it was made from; "" without such
	Inputs     string `json:"inputs_sha256,omitempty"`
	Generation int    `json:"generation,omitempty"` // of the results, when the attempt began
	// the first generation of which it may go on from what was saved
	Since   int    `json:"since,omitempty"`
	Step    int    `json:"step"` // that the work came to: steps, pictures
	Program string `json:"program"`
	Device  string `json:"device,omitempty"`
	UUID    string `json:"device_uuid,omitempty"` // of that device, of several alike
	Driver  string `json:"driver,omitempty"`
	// several devices or drivers had a part in it: the bytes may differ from those of an undisturbed run
	Mixed bool     `json:"mixed"`
	Notes []string `json:"notes,omitempty"` // of what else may have changed bytes
	// tasks whose results it would have read and did without, as they failed: it is made again once one is there
	Missing []string `json:"missing,omitempty"`
}

// goesOnFrom says whether an attempt may go on from what another has saved: it does the same, was given the same, and
// what that one made has not been wanted anew since.
func (m *Made) goesOnFrom(saved *Made) bool {
	return saved.Hash == m.Hash && saved.Inputs == m.Inputs && saved.Generation >= m.Since
}

// Manifest lists the files of a result or of a checkpoint.
type Manifest struct {
	Version int `json:"version"`
	Made
	// folder beside the manifest that the files are in, where the store renames nothing
	At    string `json:"at,omitempty"`
	Files []File `json:"files"`
}

// File is one of them.
type File struct {
	Name   string `json:"name"` // with slashes, below the folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Key is where a file of the manifest is, whose own place is below a key.
func (m *Manifest) Key(below string, f File) string { return path.Join(below, m.At, f.Name) }

// Bytes is how much the files have together.
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

// maxManifest bounds what is read of a manifest, in bytes: some hundred thousand files.
const maxManifest = 64 << 20

// ReadManifest reads the manifest below a key. There being none is fs.ErrNotExist.
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
		return nil, fmt.Errorf("%s: %w: it is of version %d, this program reads %d", key, ErrDamaged, m.Version,
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

// verify reads all files of a manifest below a key. What is not as the manifest says is ErrDamaged.
func verify(ctx context.Context, r Root, key string, m *Manifest) error {
	for _, f := range m.Files {
		if err := CopyFile(ctx, r, m.Key(key, f), f, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// CopyFile reads a file to w and checks it on the way. Without a hash its size alone is known.
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

// meter counts and hashes what goes through it, until its context ends.
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

// ReadLocal copies a local file to w, at most so many bytes of it, and says what these are.
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

// LocalFiles lists the files in a local folder by name, with slashes. Those that skip names are left out, and so are
// hidden ones and what is no plain file.
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

// errOutdated is of results that were wanted anew while an attempt made them.
var errOutdated = error(&fault.Error{Op: "commit results",
	Err:  errors.New("--redo invalidated them meanwhile; the results of this attempt are discarded"),
	Hint: "run it again",
	Kind: fault.ErrTryAgain})

// Commit gives the files of a local folder to a task as its results, all at once. The first to come wins: where valid
// results of the same hash are there already, those stay and are returned, and own is false. Those of another hash stay
// too, which is an error, and an attempt that began before Outdate has no results.
func Commit(ctx context.Context, r Root, task string, dir *os.Root, names []string, made Made) (m *Manifest, own bool,
	err error) {
	stage := r.Stage(task, stageName(made.Attempt, rand.Text()))
	mayCount := false // a publishing whose answer was lost may have happened: the stage has the results then
	defer func() {
		if !mayCount {
			_ = r.Delete(stage) // gc finds what is left
			r.Abort(stage)
		}
	}()
	m = &Manifest{Version: manifestVersion, Made: made, Files: []File{}}
	if at, stays := strings.CutPrefix(stage, OutOf(task)+"/"); stays {
		m.At = at
	}
	// who was faster may have removed what others had on their way
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
		// Whoever is halted right here for long publishes out of date all the same: Result sees that.
		err = r.Publish(stage, OutOf(task))
		if !errors.Is(err, ErrExists) {
			return m, err == nil, err
		}
		first, err := Result(ctx, r, task)
		if err != nil {
			return nil, false, err
		}
		if first != nil {
			own = m.At != "" && first.At == m.At // whoever judged older results had moved these away for a moment
			mayCount = own
			return first, own, first.Of(task, made.Hash)
		}
	}
	return nil, false, fmt.Errorf("%s: %w: damaged results keep reappearing", OutOf(task), ErrDamaged)
}

// fill puts the files of a local folder, and the manifest with them, into a stage.
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

// stageName names what an attempt commits, on its way.
func stageName(attempt int, random string) string { return fmt.Sprintf("a%d-%s", attempt, random) }

// stageOf is the attempt that a stage of this name is of.
func stageOf(name string) (attempt int, is bool) {
	number, _, _ := strings.Cut(name, "-")
	n, err := attemptOf(number)
	return n, err == nil && strings.HasPrefix(name, stageName(n, ""))
}

// Of says with an error whether results under a task's name are of another hash.
func (m *Manifest) Of(task, hash string) error {
	if m.Hash == hash {
		return nil
	}
	return &fault.Error{Op: "run task", Path: task, Err: errors.New("another task of this name already has results " +
		"there"),
		Hint: "give the job or the task another name, or remove that folder", Kind: fault.ErrUsage}
}

// Result returns the manifest of a task's results, nil where there are none. Damaged ones, and those of an older
// generation, are moved out of the way.
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

// ErrForeign is of files in the place of results that no manifest names: this program did not put them there.
var ErrForeign = errors.New("it holds files that are in no manifest")

// unnamed is Result where a task's folder of results has no manifest. That is usual where attempts upload to it;
// elsewhere the folder is somebody else's, and nothing in it is touched.
func unnamed(ctx context.Context, r Root, task string) (*Manifest, error) {
	out := OutOf(task)
	if _, moves := stages(r, task); !moves {
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
