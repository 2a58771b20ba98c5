package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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

var errOutside = errors.New("it is outside the opened folder")

// openError says what keeps a path from being opened, and what to do.
func openError(rel string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, errOutside):
		hint = "choose one inside the opened folder, or give vksplat open another folder"
	case errors.Is(err, fs.ErrNotExist):
		hint = "it was moved or deleted: choose another"
	case errors.Is(err, fs.ErrPermission):
		hint = "choose another, or give read permission there"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fault.ErrNotRegular):
		hint = "it is neither a folder nor a video: choose another"
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		hint = "no file or folder can have that name: choose one from the list"
	}
	return &fault.Error{Op: "open", Path: rel, Err: fault.Pathless(err), Kind: fault.ErrUsage, Hint: hint}
}

// absolute is where a path is, which must exist. Links that lead out of the root are refused.
func (p places) absolute(rel string) (string, error) {
	local := filepath.FromSlash(rel)
	if rel != "" && !filepath.IsLocal(local) {
		return "", openError(rel, errOutside)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(p.root, local))
	if err != nil {
		return "", openError(rel, err)
	}
	if !output.Within(real, p.root) {
		return "", openError(rel, errOutside)
	}
	return real, nil
}

// file is where the file at a path is, for reading. It must be a regular one, because a pipe without a writer
// blocks whoever opens it, and below the root, whatever links lead there.
func (p places) file(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil && !output.Within(real, p.root) {
		err = errOutside
	}
	if err == nil {
		err = fault.Regular(real)
	}
	if err != nil {
		return "", openError(p.relative(path), err)
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

// kept is where a folder of what is made from the page is, if it is there.
func (p places) kept(kind string) (string, error) { return p.absolute(dataFolder + "/" + kind) }

// keep makes a folder of what is made from the page. Links that lead out of the root are refused: nothing is written
// elsewhere.
func (p places) keep(kind string, below ...string) (string, error) {
	dir := p.root
	for _, name := range append([]string{dataFolder, kind}, below...) {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", keepError(dir, err)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", output.FolderError(dir, err)
		}
		if !output.Within(real, p.root) {
			return "", fault.Usagef("remove that link, or open the folder that it leads to",
				"write to folder %s: it is a link that leads out of the opened folder", p.relative(dir))
		}
		if !output.IsFolder(real) {
			return "", output.FolderError(dir, syscall.ENOTDIR)
		}
		dir = real
	}
	return dir, nil
}

// keepError says what can be done about a folder that cannot be made.
func keepError(dir string, err error) error {
	told := output.FolderError(dir, err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fault.WithHint(told, "results are written there: give write permission, or give vksplat open another "+
			"folder")
	}
	return told
}

// fresh is a path in a folder that is not taken: NAME, NAME-2, ... with an ending.
func fresh(dir, name, ending string, taken func(path string) bool) string {
	for n := 1; ; n++ {
		path := filepath.Join(dir, name+ending)
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, n, ending))
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
	footage
}

// footage counts what cameras are to be found of, in a folder itself.
type footage struct {
	Photos int `json:"photos,omitempty"`
	Videos int `json:"videos,omitempty"`
}

// footageIn counts what is in a folder. What cannot be read holds nothing.
func footageIn(dir string) (n footage) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		n.count(filepath.Join(dir, f.Name()), f)
	}
	return n
}

// count counts a file.
func (n *footage) count(path string, f os.DirEntry) {
	switch {
	case strings.HasPrefix(f.Name(), ".") || !f.Type().IsRegular() && !output.IsFile(path):
	case isVideo(f.Name()):
		n.Videos++
	case isPhoto(f.Name()):
		n.Photos++
	}
}

// listing is a folder as the page shows it.
type listing struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Kind string `json:"kind"`
	footage
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
		return &listing{Path: p.relative(dir), Name: filepath.Base(dir), Kind: kindFootage, footage: footage{Videos: 1},
			Entries: []entry{}}, nil
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(rel, err)
	}
	l := &listing{Path: p.relative(dir), Name: filepath.Base(dir), Kind: kindOf(dir), Entries: []entry{}}
	for _, f := range found {
		if strings.HasPrefix(f.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, f.Name())
		l.count(path, f)
		folder, e := isFolder(path, f), entry{Name: f.Name(), Path: p.relative(path), Kind: fileKind(f)}
		switch {
		case !folder && e.Kind == "":
			continue
		case len(l.Entries) == mostEntries:
			l.More++
			continue
		case folder:
			e.Kind, e.footage = p.innerKind(path)
		}
		l.Entries = append(l.Entries, e)
	}
	slices.SortStableFunc(l.Entries, func(a, b entry) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return l, nil
}

// isFolder reports whether an entry is a folder or a link to one: absolute judges where that leads.
func isFolder(path string, f os.DirEntry) bool {
	return f.IsDir() || !f.Type().IsRegular() && output.IsFolder(path)
}

// innerKind is the kind that the page shows for a subfolder. It looks into the folder, and no deeper.
func (p places) innerKind(path string) (string, footage) {
	switch {
	case isRun(path):
		return kindRun, footage{}
	case load.IsCapture(path):
		return kindScene, footage{}
	}
	if _, err := p.absolute(p.relative(path)); err == nil { // else a link leads out
		if n := footageIn(path); n != (footage{}) {
			return kindFootage, n
		}
	}
	return kindFolder, footage{}
}

// fileKind is a file's kind on the page, "" for none.
func fileKind(f os.DirEntry) string {
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

// isPhoto reports whether a name is that of something with cameras to be found: a photo of any kind, or a video.
func isPhoto(name string) bool { return photo.IsPhoto(name) || photo.ForeignKindOf(name) != nil }

func isVideo(name string) bool {
	kind := photo.ForeignKindOf(name)
	return kind != nil && kind.Video
}
