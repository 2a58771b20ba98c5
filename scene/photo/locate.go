package photo

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// NativePath gives the file that a JSON file in dir names: relative to dir or
// absolute, with the slashes of any system.
func NativePath(dir, file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	if path.IsAbs(file) || hasDrive(file) {
		return filepath.FromSlash(path.Clean(file))
	}
	return filepath.Join(dir, filepath.FromSlash(file))
}

// hasDrive says whether a path begins as those of Windows do, "C:/".
func hasDrive(file string) bool {
	return len(file) > 2 && file[1] == ':' && file[2] == '/' && (file[0]|0x20) >= 'a' && (file[0]|0x20) <= 'z'
}

// Bounds of what a name in a damaged or hostile file may cost.
const (
	longestPath = 4096    // bytes; no system opens longer ones
	mostEnds    = 64      // of a name that are tried
	mostDirs    = 1 << 14 // folders that are remembered
)

// Locator finds files that other programs have named.
type Locator struct {
	root string
	dirs map[string]folder
	// folders of photos below the root; nil until they are asked for
	below []string
}

type folder struct {
	path          string
	names, folded []string // the latter by scene.FoldName
}

func NewLocator(root string) *Locator { return &Locator{root: root, dirs: map[string]folder{}} }

// LeadsOut says whether a name with slashes leads out of the folder that it should be in, on this system or another.
func LeadsOut(name string) bool { return !filepath.IsLocal(filepath.FromSlash(name)) || hasDrive(name) }

// Find gives the file that is meant: the one of that path, or with the name in other
// case, or with the extension of a photo when the name has none. Paths that lead out
// of the capture and to nothing are often of another machine: then their ends are
// tried below the capture's folder, the longest first. "" if there is none. Outside of the capture
// only what has the name of a photo or a cloud of points is looked at.
func (l *Locator) Find(file string) string {
	at := l.search(file, l.near)
	if rel, err := filepath.Rel(l.root, at); (err != nil || !filepath.IsLocal(rel)) && !IsPhoto(at) &&
		!strings.EqualFold(path.Ext(at), ".ply") {
		return ""
	}
	return at
}

// Below gives the photo that a name means which another program wrote, and none outside the capture's folder: of the
// ends of the name, which may begin on another machine, the longest that is there, in the first of some folders below
// the capture's, then in the usual ones, then in any other but those of masks and depths. The extension may be another:
// photos get converted. "" if there is none.
func (l *Locator) Below(name string, folders ...string) string {
	parts := strings.Split(path.Clean(strings.ReplaceAll(name, `\`, "/")), "/")
	parts = parts[max(0, len(parts)-mostEnds):]
	folders = append(append(folders, ""), l.folders()...)
	for _, strip := range []bool{false, true} {
		for i := range parts {
			end := filepath.Join(parts[i:]...)
			if strip && (IsPhoto(end) || ForeignKindOf(end) != nil) {
				end = strings.TrimSuffix(end, filepath.Ext(end))
			}
			if end == "" || !filepath.IsLocal(end) {
				continue
			}
			for _, folder := range folders {
				if at := l.near(filepath.Join(l.root, filepath.FromSlash(folder), end)); at != "" {
					return at
				}
			}
		}
	}
	return ""
}

// folders gives the folders of photos below the root, the usual ones first.
func (l *Locator) folders() []string {
	if l.below != nil {
		return l.below
	}
	l.below = slices.Clone(Folders[:])
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return l.below
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		usual := slices.Contains(Folders[:], e.Name())
		if e.IsDir() && !usual && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "mask") &&
			!strings.HasPrefix(name, "depth") {
			l.below = append(l.below, e.Name())
		}
	}
	return l.below
}

// Foreign gives the photo in a form that is not decoded which stands where find looks in place of the file, as
// IMG_1.heic in place of IMG_1.jpg. "" if there is none.
func (l *Locator) Foreign(file string) string {
	return l.search(file, func(file string) string {
		dir, name := filepath.Split(file)
		name = scene.FoldName(name)
		stem := strings.TrimSuffix(name, path.Ext(name))
		return l.first(dir, func(n string) bool {
			own := strings.TrimSuffix(n, path.Ext(n))
			k := KindInPlace(n)
			return k != nil && !k.Video && (own == stem || own == name)
		})
	})
}

// search applies near to the file, and to the ends of a path that leads out of the capture.
func (l *Locator) search(file string, near func(file string) string) string {
	if at := near(file); at != "" {
		return at
	}
	if rel, err := filepath.Rel(l.root, file); err == nil && filepath.IsLocal(rel) {
		return ""
	}
	return l.byEnd(file, near)
}

// ByEnd gives the file below the root that the longest end of a path names, "" if there is none.
func (l *Locator) ByEnd(file string) string { return l.byEnd(file, l.near) }

func (l *Locator) byEnd(file string, near func(file string) string) string {
	parts := strings.Split(filepath.ToSlash(file), "/")
	for i := max(1, len(parts)-mostEnds); i < len(parts); i++ {
		if end := filepath.Join(parts[i:]...); filepath.IsLocal(end) {
			if at := near(filepath.Join(l.root, end)); at != "" {
				return at
			}
		}
	}
	return ""
}

// near looks in the folder of the file only.
func (l *Locator) near(file string) string {
	if at := l.Named(file); at != "" {
		return at
	}
	dir, name := filepath.Split(file)
	name = scene.FoldName(name)
	return l.first(dir, func(n string) bool { return IsPhoto(n) && strings.TrimSuffix(n, path.Ext(n)) == name })
}

// Named gives the file of that name in any spelling, "" if there is none.
func (l *Locator) Named(file string) string {
	if info, err := os.Stat(file); err == nil && !info.IsDir() {
		return file
	}
	dir, name := filepath.Split(file)
	name = scene.FoldName(name)
	return l.first(dir, func(n string) bool { return n == name })
}

// first gives the first file in a folder whose name fits, as scene.FoldName gives it; "" if there is none.
func (l *Locator) first(dir string, fits func(folded string) bool) string {
	in := l.list(filepath.Clean(dir))
	if i := slices.IndexFunc(in.folded, fits); i >= 0 {
		if at := filepath.Join(in.path, in.names[i]); !atomicfile.IsDir(at) {
			return at
		}
	}
	return ""
}

// list reads a folder, or the one below the root whose name, or that of a folder around it, is spelled in another way.
func (l *Locator) list(dir string) folder {
	in, known := l.dirs[dir]
	if known || len(dir) > longestPath {
		return in
	}
	in.path = dir
	entries, err := os.ReadDir(dir)
	if err != nil && len(dir) > len(l.root) && !(norm.NFC.IsNormalString(dir) && norm.NFD.IsNormalString(dir)) {
		parent, base := l.list(filepath.Dir(dir)), scene.FoldName(filepath.Base(dir))
		if i := slices.Index(parent.folded, base); i >= 0 {
			in.path = filepath.Join(parent.path, parent.names[i])
			entries, _ = os.ReadDir(in.path) // what cannot be read has no files
		}
	}
	for _, e := range entries {
		in.names, in.folded = append(in.names, e.Name()), append(in.folded, scene.FoldName(e.Name()))
	}
	if len(l.dirs) < mostDirs {
		l.dirs[dir] = in
	}
	return in
}
