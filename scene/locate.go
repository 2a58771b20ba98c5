package scene

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// nativePath gives the file that a JSON file in dir names: relative to dir or
// absolute, with the slashes of any system.
func nativePath(dir, file string) string {
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

// locator finds files that other programs have named.
type locator struct {
	root string
	dirs map[string][]string // the names in a folder
}

func newLocator(root string) *locator { return &locator{root: root, dirs: map[string][]string{}} }

// find gives the file that is meant: the one of that path, or with the name in other
// case, or with the extension of a photo when the name has none. Paths that lead out
// of the capture and to nothing are often of another machine: then their ends are
// tried below the capture's folder, the longest first. "" if there is none.
func (l *locator) find(file string) string { return l.search(file, l.near) }

// foreign gives the photo in a form that is not decoded which stands where find looks in place of the file, as IMG_1.heic in place of IMG_1.jpg. "" if
// there is none.
func (l *locator) foreign(file string) string {
	return l.search(file, func(file string) string {
		dir, name := filepath.Split(file)
		stem := strings.TrimSuffix(name, path.Ext(name))
		return l.first(dir, func(n string) bool {
			own := strings.TrimSuffix(n, path.Ext(n))
			return isForeignPhoto(n) && (strings.EqualFold(own, stem) || strings.EqualFold(own, name))
		})
	})
}

// search applies near to the file, and to the ends of a path that leads out of the capture.
func (l *locator) search(file string, near func(file string) string) string {
	if at := near(file); at != "" {
		return at
	}
	if rel, err := filepath.Rel(l.root, file); err == nil && filepath.IsLocal(rel) {
		return ""
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	for i := 1; i < len(parts); i++ {
		if end := filepath.Join(parts[i:]...); filepath.IsLocal(end) {
			if at := near(filepath.Join(l.root, end)); at != "" {
				return at
			}
		}
	}
	return ""
}

// near looks in the folder of the file only.
func (l *locator) near(file string) string {
	if info, err := os.Stat(file); err == nil && !info.IsDir() {
		return file
	}
	dir, name := filepath.Split(file)
	for _, fits := range []func(n string) bool{
		func(n string) bool { return strings.EqualFold(n, name) },
		func(n string) bool { return isPhoto(n) && strings.EqualFold(strings.TrimSuffix(n, path.Ext(n)), name) },
	} {
		if at := l.first(dir, fits); at != "" {
			return at
		}
	}
	return ""
}

// first gives the first file in a folder whose name fits, "" if there is none.
func (l *locator) first(dir string, fits func(name string) bool) string {
	names, known := l.dirs[dir]
	if !known {
		entries, err := os.ReadDir(filepath.Clean(dir))
		if err == nil {
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		l.dirs[dir] = names
	}
	if i := slices.IndexFunc(names, fits); i >= 0 {
		if at := filepath.Join(dir, names[i]); !isDir(at) {
			return at
		}
	}
	return ""
}

// locateFiles sets the Path of records whose files are named by the capture, and
// renames them: relative to the folder that holds all photos, which is returned.
func (c *Capture) locateFiles(records []record) (images string, err error) {
	finder := newLocator(c.Root)
	taken := make(map[string]string, len(records))
	for i := range records {
		r := &records[i]
		if r.cam.Path = finder.find(r.file); r.cam.Path == "" {
			continue
		}
		if other, twice := taken[r.cam.Path]; twice {
			return "", badData("read "+filepath.Base(c.Model), c.Model, "give each frame a photo of its own", "the frames %q and %q name the same photo", other, r.cam.Name)
		}
		taken[r.cam.Path] = r.cam.Name
	}
	if c.Format == FormatTransforms {
		c.warnUnused(taken)
	}
	return nameRecords(records), nil
}

// nameRecords names records relative to the folder that holds all of their files,
// which is returned. Files that are missing have no say in it, unless all are.
func nameRecords(records []record) string {
	var dirs, nominal []string
	for i := range records {
		nominal = append(nominal, filepath.Dir(records[i].file))
		if p := records[i].cam.Path; p != "" {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	if len(dirs) == 0 {
		dirs = nominal
	}
	images := commonFolder(dirs)
	for i := range records {
		r := &records[i]
		at := cmp.Or(r.cam.Path, r.file)
		if rel, err := filepath.Rel(images, at); err == nil && filepath.IsLocal(rel) {
			r.cam.Name = filepath.ToSlash(rel)
		} else if !filepath.IsLocal(filepath.FromSlash(r.cam.Name)) {
			r.cam.Name = path.Base(r.cam.Name)
		}
	}
	sortRecords(records)
	return images
}

// warnUnused names the photos beside those that are used.
func (c *Capture) warnUnused(taken map[string]string) {
	var extra, dirs []string
	all := 0
	for p := range taken {
		dirs = append(dirs, filepath.Dir(p))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !isPhoto(e.Name()) || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
				continue
			}
			all++
			if _, used := taken[filepath.Join(dir, e.Name())]; !used {
				extra = append(extra, e.Name())
			}
		}
	}
	if len(extra) > 0 {
		c.warn("unregistered-photos", fmt.Sprintf("%d of %d photos are not part of %s and are not used", len(extra), all, filepath.Base(c.Model)), extra)
	}
}

// commonFolder gives the innermost folder that holds all of dirs.
func commonFolder(dirs []string) string {
	common := filepath.Clean(dirs[0])
	for _, dir := range dirs[1:] {
		for !holds(common, dir) {
			up := filepath.Dir(common)
			if up == common {
				return common
			}
			common = up
		}
	}
	return common
}

func holds(dir, inner string) bool {
	rel, err := filepath.Rel(dir, inner)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}
