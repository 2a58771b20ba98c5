package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// localRun is what farm submit without a server keeps of a job on this machine: a folder with the state of a server for this job alone.
type localRun struct {
	dir string
	job string
	out string // where results go
	sum string // of the job document
}

// runFile says in the folder of a localRun which it is.
const runFile = "run.json"

type runRecord struct {
	Job string `json:"job"`
	Out string `json:"out"`
	Sum string `json:"job_sha256"`
}

// newLocalRun is that of a job whose results go to out. The same job and folder give the same run.
func newLocalRun(job, out, document string) (*localRun, error) {
	sum := sha256.Sum256([]byte(job + "\x00" + out))
	dir, err := stateFolder(localFolder, spec.Escape(job)+"-"+hex.EncodeToString(sum[:4]))
	return &localRun{dir, job, out, document}, err
}

func (r *localRun) lock() string   { return filepath.Join(r.dir, lockName) }
func (r *localRun) server() string { return filepath.Join(r.dir, "server") }
func (r *localRun) token() string  { return filepath.Join(r.server(), adminToken) }
func (r *localRun) work() string   { return filepath.Join(r.dir, "work") }
func (r *localRun) roots() string  { return filepath.Join(r.dir, "roots.toml") }

// results is where those of the job are.
func (r *localRun) results() string {
	if store.IsBucket(r.out) {
		return strings.TrimSuffix(r.out, "/") + "/" + r.job
	}
	return filepath.Join(r.out, r.job)
}

// prepare makes the folder. What it holds of another document of this job is forgotten: what has results is not done again all the same.
func (r *localRun) prepare(roots store.Roots) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return folderError(r.dir, err)
	}
	var before runRecord
	data, err := os.ReadFile(filepath.Join(r.dir, runFile))
	if err == nil && json.Unmarshal(data, &before) == nil && before.Sum != r.sum {
		if err := os.RemoveAll(r.server()); err != nil {
			return folderError(r.server(), err)
		}
	}
	if err := writeJSON(filepath.Join(r.dir, runFile), runRecord{r.job, r.out, r.sum}); err != nil {
		return err
	}
	return writeRoots(r.roots(), roots)
}

// forget removes what is kept of a run that has succeeded.
func (r *localRun) forget() error {
	// The lock, which is held, stays until it is given back.
	return errors.Join(os.RemoveAll(r.server()), os.RemoveAll(r.work()), os.Remove(r.roots()), os.Remove(filepath.Join(r.dir, runFile)))
}

// isKept says whether there is something of a run: it has begun, and has not succeeded.
func (r *localRun) isKept() bool { return isFile(filepath.Join(r.dir, runFile)) }

// localRuns lists those that a process works on.
func localRuns() (list []*localRun, err error) {
	dir, err := stateFolder(localFolder)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		r := &localRun{dir: filepath.Join(dir, e.Name())}
		var record runRecord
		data, err := os.ReadFile(filepath.Join(r.dir, runFile))
		if err != nil || json.Unmarshal(data, &record) != nil || !isHeld(r.lock()) {
			continue
		}
		r.job, r.out = record.Job, record.Out
		list = append(list, r)
	}
	return list, err
}

// rootsFlags say where the store's roots are.
type rootsFlags struct {
	file string
	more rootsFlag
}

func (f *rootsFlags) table() []option {
	return []option{
		text(&f.file, "roots", "TOML file `FILE` that says where the store's roots are, in lines like: scans = \"file:///srv/scans\" (default: roots.toml in vksplat's configuration folder)"),
		other(&f.more, "root", "the root NAME is the folder DIR, or s3://bucket/prefix, `NAME=DIR`; may be given several times"),
	}
}

// rootsFlag is a list of NAME=DIR.
type rootsFlag struct{ roots store.Roots }

func (f *rootsFlag) Type() string   { return "NAME=DIR" }
func (f *rootsFlag) String() string { return "" }

// Set adds a root.
func (f *rootsFlag) Set(s string) error {
	name, dir, _ := strings.Cut(s, "=")
	if name == "" || dir == "" {
		return usagef("as in --root scans=/srv/scans", "%q names no root and folder", s)
	}
	if f.roots == nil {
		f.roots = store.Roots{}
	}
	if !store.IsBucket(dir) {
		dir = absolute(dir)
	}
	f.roots[name] = store.Options{URL: dir}
	return nil
}

// readRootsFile reads a file of roots, without which a machine is not set up.
func readRootsFile(file string) (store.Roots, error) {
	data, err := readAtMost(file, maxJobFile)
	if err != nil {
		return nil, &scene.Error{Op: "read roots", Path: file, Err: pathless(err), Hint: "name a file with lines like: inputs = \"file:///srv/scans\"", Kind: store.ErrSetup}
	}
	return store.ReadRoots(file, data)
}

// read gives the roots that are named.
func (f *rootsFlags) read() (roots store.Roots, err error) {
	roots = store.Roots{}
	file := f.file
	if dir, err := os.UserConfigDir(); file == "" && err == nil {
		if usual := filepath.Join(dir, "vksplat", "roots.toml"); isFile(usual) {
			file = usual
		}
	}
	if file != "" {
		if roots, err = readRootsFile(file); err != nil {
			return nil, err
		}
	}
	maps.Copy(roots, f.more.roots)
	return roots, nil
}

// writeRoots writes a file as --roots reads it, in place of one that tasks may be reading.
func writeRoots(path string, roots store.Roots) error {
	data, err := toml.Marshal(roots)
	if err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
