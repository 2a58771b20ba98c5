package capture

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/scene/photo"
)

// base is shared by all parts of the command. Its methods run programs and write files.
type base struct {
	ctx     context.Context
	console *cli.Console
	o       *Options
	show    *progress
	several []string // files of several pictures, of which the first was taken
}

// material is the photos and videos that cameras are found for.
type material struct {
	sources []*source
	broken  []Dropped
	photos  []string          // below images, with slashes; all that COLMAP is to use
	files   map[string]string // by photo: the user's file
	side    int               // pixels of the faces of panoramas
}

// mapper has COLMAP find features, matches and cameras.
type mapper struct {
	*base
	*material
	stages *stages
	colmap *colmapTool
}

type running struct {
	*base
	*material
	stages *stages
	mapper *mapper
	own    *own // nil: COLMAP finds the cameras
}

func newRunning(ctx context.Context, console *cli.Console, o *Options, sources []*source) *running {
	b := &base{ctx: ctx, console: console, o: o}
	m := &material{sources: sources, files: map[string]string{}}
	s := &stages{base: b}
	if o.More {
		s.key, s.mark = moreFolder, moreMark
	}
	r := &running{base: b, material: m, stages: s, mapper: &mapper{base: b, material: m, stages: s}}
	if o.choosesOwn() {
		r.own = &own{mapper: r.mapper}
	}
	return r
}

// stages does steps of the work once.
type stages struct {
	*base
	state   *state
	written *output.Written
	key     string // of the stage before
	mark    string // before the names of stages in the state
}

// stage is a step of the work that is done once.
type stage struct {
	name    string
	key     string   // what decides its results, beside the stages before it
	outputs []string // files and folders that it makes, and that are removed before it is done again
	changes []string // files that it changes
	adds    bool     // keeps what it made when it was stopped in the middle, and adds the rest
	// makes finds the last names of the photos that it makes, nil where a folder of photos is none of its outputs.
	makes *regexp.Regexp
	// forget removes what an earlier run of the stage, of another key, left in a file that it shares; nil: nothing.
	forget func() error
	do     func() (done string, err error)
}

type stamp struct {
	Name    string  `json:"name"`
	Key     string  `json:"key"`
	Done    bool    `json:"done"`
	Seconds float64 `json:"seconds,omitempty"`
}

type state struct {
	path   string
	By     string  `json:"by"`
	Stages []stamp `json:"stages"`
}

// byName marks this command's files.
const byName = "vksplat " + Name

// readState reads what earlier calls did. A damaged file counts as none: the work is done again.
func readState(path string) *state {
	s := &state{path: path}
	_ = strictjson.ReadFile(path, s) // see above
	s.By = byName
	return s
}

func (s *state) save() error { return output.WriteJSON(s.path, s) }

// ownPhotos forgets stages that were to fill the folder of photos and did not end: what is there now is the user's.
func (s *state) ownPhotos() {
	s.Stages = slices.DeleteFunc(s.Stages, func(t stamp) bool {
		return !t.Done && (strings.HasPrefix(t.Name, stageFrames) || t.Name == stageFaces)
	})
}

// at gives the place of a stage among the stamps, or -1.
func (s *state) at(name string) int {
	for i, t := range s.Stages {
		if t.Name == name {
			return i
		}
	}
	return -1
}

// forget forgets a stage and those after it.
func (s *state) forget(name string) {
	if i := s.at(name); i >= 0 {
		s.Stages = s.Stages[:i]
	}
}

// do does a stage, unless it is done.
func (st *stages) do(s stage) error {
	sum := sha256.Sum256([]byte(st.key + "\n" + s.name + "\n" + s.key))
	key := fmt.Sprintf("%x", sum[:8])
	st.key = key
	if st.ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	i := st.state.at(st.mark + s.name)
	same := i >= 0 && st.state.Stages[i].Key == key
	if same && st.state.Stages[i].Done && st.whole(s.outputs) {
		st.show.say(st.console, s.name, "done before")
		return nil
	}
	begun := i >= 0 && !st.state.Stages[i].Done
	if err := st.clear(s, begun, begun && same && s.adds); err != nil {
		return err
	}
	if err := st.written.Begin(st.paths(s.changes)...); err != nil {
		return err
	}
	if i >= 0 && !same && s.forget != nil {
		// A kill meanwhile leaves the rest to the next call, whose options may be the old ones again.
		st.state.Stages = st.state.Stages[:i+1]
		st.state.Stages[i].Done = false
		if err := st.state.save(); err != nil {
			return err
		}
		if err := s.forget(); err != nil {
			return err
		}
	}
	if i >= 0 {
		st.state.Stages = st.state.Stages[:i]
	}
	st.state.Stages = append(st.state.Stages, stamp{Name: st.mark + s.name, Key: key})
	if err := st.state.save(); err != nil {
		return err
	}
	began := time.Now()
	st.show.begin(s.name)
	done, err := s.do()
	st.show.end()
	if err != nil {
		return err
	}
	if err := st.list(s); err != nil {
		return err
	}
	last := &st.state.Stages[len(st.state.Stages)-1]
	last.Done, last.Seconds = true, time.Since(began).Seconds()
	st.show.say(st.console, s.name, done+", "+cli.Duration(last.Seconds))
	return st.state.save()
}

// paths are places below the scene's folder.
func (st *stages) paths(names []string) (list []string) {
	for _, name := range names {
		list = append(list, st.o.in(name))
	}
	return list
}

// whole tells whether everything that a stage made is still there.
func (st *stages) whole(outputs []string) bool {
	for _, path := range st.paths(outputs) {
		if _, err := os.Lstat(path); err != nil {
			return false
		}
	}
	return true
}

// filesBelow lists the files of places that exist.
func filesBelow(paths []string) (files []string) {
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files = append(files, p)
			}
			return nil // what cannot be read cannot be replaced either, which the next step reports
		})
	}
	return files
}

// clear removes what an earlier run of a stage made. Files that this command did not make, or that were changed since,
// are refused. What a stage left that did not end is this command's, because the place was clear before; but for photos
// that it does not make, which a person may have put there since.
func (st *stages) clear(s stage, begun, keep bool) error {
	places := st.paths(s.outputs)
	if begun && s.makes != nil {
		foreign := slices.DeleteFunc(filesBelow(places), func(path string) bool {
			return !photo.IsPhoto(path) && photo.ForeignKindOf(path) == nil || s.makes.MatchString(filepath.Base(path))
		})
		if err := output.RefuseForeign(foreign, "or choose another folder"); err != nil {
			return err
		}
	}
	if !begun {
		foreign, hint := st.written.Foreign(filesBelow(places)), "or replace it with "+fault.Setting("overwrite")
		if st.o.Overwrite { // photos may be the only copies that there are
			foreign = slices.DeleteFunc(foreign, func(path string) bool { return !st.isImage(path) })
			hint = "or choose another folder"
		}
		if err := output.RefuseForeign(foreign, hint); err != nil {
			return err
		}
	}
	if keep {
		return nil
	}
	for _, path := range places {
		if err := os.RemoveAll(path); err != nil {
			return output.FolderError(st.o.Out, err)
		}
		prefix := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(st.o.Out)+"/")
		for name := range st.written.Files {
			if name == prefix || strings.HasPrefix(name, prefix+"/") {
				delete(st.written.Files, name)
			}
		}
	}
	return nil
}

// isImage tells whether a file is in the folder of the photos.
func (st *stages) isImage(path string) bool {
	rel, err := filepath.Rel(st.o.in(imagesFolder), path)
	return err == nil && filepath.IsLocal(rel)
}

// list notes what a stage made or changed.
func (st *stages) list(s stage) error {
	files := filesBelow(st.paths(append(append([]string(nil), s.outputs...), s.changes...)))
	if err := st.written.Begin(files...); err != nil {
		return err
	}
	if len(st.written.Files) == 0 {
		return nil
	}
	return st.written.End()
}
