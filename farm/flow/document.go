package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// DocumentOf is where a job's document is kept, beside the results of the job.
func DocumentOf(j *spec.Job) Document {
	sum := j.Hash()
	return Document{Root: j.Store.Outputs, Key: path.Join(j.Name, local.Folder, documentPrefix+sum[:16]+".json"),
		SHA256: sum}
}

const documentPrefix = "job-"

// IsSubmitted says whether the results in a folder are of a job that was submitted to a farm.
func IsSubmitted(root store.Root, folder string) bool {
	list, _, _ := root.List(path.Join(folder, local.Folder)) // there may be none
	return slices.ContainsFunc(list, func(e store.Entry) bool {
		return strings.HasPrefix(path.Base(e.Key), documentPrefix)
	})
}

// Put puts a job's document into the store, for a job of this owner.
func Put(ctx context.Context, roots store.Roots, j *spec.Job, owner string) (Document, error) {
	d := DocumentOf(j)
	if err := roots.Apart(j.Store.Inputs, d.Root); err != nil {
		return d, err
	}
	root, err := roots.Open(d.Root)
	if err != nil {
		return d, err
	}
	root = root.Attend(ctx, func(error) {})
	if err := Own(root, j.Name, owner, true); err != nil {
		return d, err
	}
	err = root.Put(d.Key, func(w io.Writer) error {
		_, err := w.Write(j.Canonical())
		return err
	})
	return d, store.Explain("put job", d.Key, err)
}

// Own reports whether the results in a job's folder are of this owner's job, or of none; then with `take` they
// become the owner's. Jobs of two owners may have one name, and would replace each other's results.
func Own(root store.Root, folder, owner string, take bool) error {
	key := path.Join(folder, local.Folder, "owner")
	f, err := root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		if !take {
			return nil
		}
		return store.Explain("put job", key, root.Put(key, func(w io.Writer) error {
			_, err := io.WriteString(w, owner)
			return err
		}))
	} else if err != nil {
		return store.Explain("read job", key, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return store.Explain("read job", key, err)
	}
	if string(data) == owner {
		return nil
	}
	return &fault.Error{Op: "submit job", Path: folder, Err: fmt.Errorf("its folder holds results of %q, not of %q",
		data, owner), Hint: "give the job another name", Kind: fault.ErrData}
}

// Planned is a document that was read.
type Planned struct {
	Job  *spec.Job
	Plan *spec.Plan
}

// ErrDocument is of a document that this program does not understand, though it is what was submitted.
var ErrDocument = errors.New("the document was written by another version of vksplat")

// Documents reads documents and keeps the last ones: many tasks are of one.
type Documents struct {
	Roots store.Roots

	mutex sync.Mutex
	kept  map[Document]*Planned
	tasks int // of those that are kept
}

// mostKept bounds the tasks of documents that are kept together. A plan has a kilobyte for each.
const mostKept = 20_000

// Read gives what a document says.
func (s *Documents) Read(ctx context.Context, d Document) (*Planned, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if p := s.kept[d]; p != nil {
		return p, nil
	}
	p, err := s.read(ctx, d)
	if err != nil {
		return nil, err
	}
	n := len(p.Plan.Tasks)
	if s.kept == nil || s.tasks+n > mostKept {
		s.kept, s.tasks = map[Document]*Planned{}, 0
	}
	s.kept[d] = p
	s.tasks += n
	return p, nil
}

func (s *Documents) read(ctx context.Context, d Document) (*Planned, error) {
	root, err := s.Roots.Open(d.Root)
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error {
		return &fault.Error{Op: "read job", Path: d.Key, Err: err, Hint: "submit the job again", Kind: fault.ErrData}
	}
	if job, name, inside := strings.Cut(d.Key, "/"+local.Folder+"/"); !inside || strings.Contains(job+name, "/") ||
		spec.CheckKey(job) != nil {
		return nil, wrong(errors.New("there is no job document"))
	}
	f, err := root.Attend(ctx, func(error) {}).Open(d.Key)
	if errors.Is(err, fs.ErrNotExist) && !store.HasAny(root) {
		return nil, &fault.Error{Op: "read job", Path: d.Key, Kind: fault.ErrSetup,
			Err:  fmt.Errorf("root %s (%s) is empty", d.Root, root),
			Hint: "mount the share with the results, or correct the root"}
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, wrong(err)
	} else if err != nil {
		return nil, store.Explain("read job", d.Key, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxDocument+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, store.Explain("read job", d.Key, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != d.SHA256 {
		return nil, wrong(errors.New("it is not the document that was submitted"))
	}
	p := &Planned{}
	if p.Job, err = spec.Parse(d.Key, data); err == nil {
		p.Plan, err = p.Job.Plan()
	}
	if err == nil && (p.Job.Store.Outputs != d.Root || !strings.HasPrefix(d.Key, p.Job.Name+"/")) {
		return nil, wrong(fmt.Errorf("it is the job %s, with results in the root %s", p.Job.Name, p.Job.Store.Outputs))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	return p, nil
}
