package desk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
)

// Folders of what is made from the page, in the root.
const (
	dataFolder    = "vksplat"
	runsFolder    = "runs"
	scenesFolder  = "scenes"
	uploadsFolder = "uploads"
	exportsFolder = "exports"
	flightsFolder = "flights"
)

// mostEntries bounds a listing.
const mostEntries = 500

// places are the folders below a root. Outside of this package's functions paths are relative to it, with slashes.
type places struct{ root string }

var errOutside = errors.New("it is outside of the folder that was opened")

// absolute is where a path is, which must exist. Links that lead out of the root are refused.
func (p places) absolute(rel string) (string, error) {
	local := filepath.FromSlash(rel)
	if rel != "" && !filepath.IsLocal(local) {
		return "", &fault.Error{Op: "open folder", Path: rel, Err: errOutside, Kind: fault.ErrUsage}
	}
	real, err := filepath.EvalSymlinks(filepath.Join(p.root, local))
	if err != nil {
		return "", &fault.Error{Op: "open folder", Path: rel, Err: fault.Pathless(err), Kind: fault.ErrUsage}
	}
	if !output.Within(real, p.root) {
		return "", &fault.Error{Op: "open folder", Path: rel, Err: errOutside, Kind: fault.ErrUsage}
	}
	return real, nil
}

// relative is a path as pages name it, "" for the root and what is not below it.
func (p places) relative(path string) string {
	rel, err := filepath.Rel(p.root, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// data is a folder of what is made from the page.
func (p places) data(kind string) string { return filepath.Join(p.root, dataFolder, kind) }

// fresh is a path in a folder of data that is not taken: NAME, NAME-2, ... with an ending.
func (p places) fresh(kind, name, ending string, taken func(path string) bool) string {
	for n := 1; ; n++ {
		path := filepath.Join(p.data(kind), name+ending)
		if n > 1 {
			path = filepath.Join(p.data(kind), fmt.Sprintf("%s-%d%s", name, n, ending))
		}
		// Any error ends the search, as of a name that is too long: whoever writes there reports it.
		if _, err := os.Lstat(path); err != nil && !taken(path) {
			return path
		}
	}
}

// Kinds of entries.
const (
	kindFolder  = "folder"
	kindScene   = "scene"   // a capture with cameras
	kindFootage = "footage" // photos or videos without cameras
	kindRun     = "run"
	kindModel   = "model" // a file
)

// entry is a line of a listing.
type entry struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// listing is a folder as the page shows it.
type listing struct {
	Path    string  `json:"path"`
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Photos  int     `json:"photos"` // files of photos or videos in the folder itself
	Entries []entry `json:"entries"`
	More    int     `json:"more,omitempty"` // entries that are not listed
}

// kindOf says what a folder is.
func kindOf(dir string) string {
	switch {
	case isRun(dir):
		return kindRun
	case load.IsCapture(dir):
		return kindScene
	case load.IsFootage(dir):
		return kindFootage
	}
	return kindFolder
}

// isRun reports whether a folder is that of a training run.
func isRun(dir string) bool {
	return output.IsFile(filepath.Join(dir, output.StatsFile)) ||
		output.IsFile(filepath.Join(dir, output.CheckpointFolder, output.BegunFile))
}

// list reads a folder. Hidden names and files that are no input are left out.
func (p places) list(rel string) (*listing, error) {
	dir, err := p.absolute(rel)
	if err != nil {
		return nil, err
	}
	if output.IsFile(dir) && isVideo(dir) {
		return &listing{Path: p.relative(dir), Name: filepath.Base(dir), Kind: kindFootage, Entries: []entry{}}, nil
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, &fault.Error{Op: "open folder", Path: rel, Err: fault.Pathless(err), Kind: fault.ErrUsage,
			Hint: "choose another folder, or give read permission there"}
	}
	l := &listing{Path: p.relative(dir), Name: filepath.Base(dir), Kind: kindOf(dir), Entries: []entry{}}
	for _, f := range found {
		if strings.HasPrefix(f.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, f.Name())
		if isPhoto(f.Name()) {
			l.Photos++
		}
		kind := entryKind(path, f)
		if kind == "" {
			continue
		}
		if len(l.Entries) == mostEntries {
			l.More++
			continue
		}
		l.Entries = append(l.Entries, entry{Name: f.Name(), Path: p.relative(path), Kind: kind})
	}
	slices.SortStableFunc(l.Entries, func(a, b entry) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return l, nil
}

// entryKind is what the page shows of an entry, "" for nothing.
func entryKind(path string, f os.DirEntry) string {
	if output.IsFolder(path) { // also by a link; absolute judges where that leads
		switch {
		case isRun(path):
			return kindRun
		case load.IsCapture(path):
			return kindScene
		}
		return kindFolder
	}
	switch {
	case !f.Type().IsRegular():
		return ""
	case isVideo(f.Name()):
		return kindFootage
	case splatfile.ByName(f.Name()) != nil:
		return kindModel
	}
	return ""
}

// isPhoto reports whether a name is that of something with cameras to be found: a photo or a video of any kind.
func isPhoto(name string) bool { return photo.IsPhoto(name) || photo.ForeignKindOf(name) != nil }

func isVideo(name string) bool {
	kind := photo.ForeignKindOf(name)
	return kind != nil && kind.Video
}

// plainName makes a file name of what a browser sends, "" where nothing is left: a single element that is not hidden.
func plainName(name string) string {
	name = filepath.Base(filepath.ToSlash(strings.ReplaceAll(name, `\`, "/")))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`/:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(strings.TrimSpace(name), ".-")
	if len(name) > maxName {
		ext := filepath.Ext(name)
		name = strings.ToValidUTF8(name[:max(1, maxName-len(ext))], "") + ext
	}
	return name
}

// maxName bounds names of files, in bytes.
const maxName = 120
