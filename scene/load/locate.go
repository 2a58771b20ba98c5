package load

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/transforms"
)

// locateFiles sets the Path of records whose files are named by the capture, and
// renames them: relative to the folder that holds all photos, which is returned.
func locateFiles(c *scene.Capture, records []scene.Record, strict bool) (images string, err error) {
	finder := transforms.NewFinder(c)
	files := make([]string, len(records))
	for i := range records {
		files[i] = records[i].File
	}
	files = finder.Find(files)
	taken := make(map[string]string, len(records))
	for i := range records {
		r := &records[i]
		if r.Cam.Path = files[i]; r.Cam.Path == "" {
			continue
		}
		if other, twice := taken[r.Cam.Path]; twice {
			return "", fault.Data("read "+filepath.Base(c.Model), c.Model, "give each frame a photo of its own",
				"the frames %q and %q name the same photo", other, r.Cam.Name)
		}
		taken[r.Cam.Path] = r.Cam.Name
	}
	if c.Format != scene.FormatBlender { // whose photos of other splits lie beside them
		warnUnused(c, taken)
	}
	return nameRecords(finder, records), finder.Outside(files, "photo", strict)
}

// nameRecords names records relative to the folder that holds all of their files,
// which is returned. Files that are missing have no say in it, unless all are.
func nameRecords(finder *transforms.Finder, records []scene.Record) string {
	var dirs, nominal []string
	for i := range records {
		r := &records[i]
		r.File, _ = finder.Spell(r.File)
		nominal = append(nominal, filepath.Dir(r.File))
		if p := r.Cam.Path; p != "" {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	if len(dirs) == 0 {
		dirs = nominal
	}
	images := commonFolder(dirs)
	for i := range records {
		r := &records[i]
		at := cmp.Or(r.Cam.Path, r.File)
		if full, err := filepath.Abs(at); err == nil && filepath.IsAbs(images) {
			at = full
		}
		if rel, err := filepath.Rel(images, at); err == nil && filepath.IsLocal(rel) {
			r.Cam.Name = filepath.ToSlash(rel)
		} else if !filepath.IsLocal(filepath.FromSlash(r.Cam.Name)) {
			r.Cam.Name = path.Base(r.Cam.Name)
		}
	}
	scene.SortRecords(records)
	return images
}

// warnUnused names the photos beside those that are used.
func warnUnused(c *scene.Capture, taken map[string]string) {
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
			if !photo.IsPhoto(e.Name()) || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
				continue
			}
			all++
			if _, used := taken[filepath.Join(dir, e.Name())]; !used {
				extra = append(extra, e.Name())
			}
		}
	}
	warnUnregistered(c, extra, all)
}

// warnUnregistered names those of all photos that the capture says nothing of.
func warnUnregistered(c *scene.Capture, extra []string, all int) {
	if len(extra) == 0 {
		return
	}
	if c.Calibrated != nil { // the others were left out on purpose
		return
	}
	if c.Format == scene.FormatColmap {
		c.Warn("unregistered-photos", fmt.Sprintf("%d of %d photos are not part of the model and are not used",
			len(extra), all), extra)
		return
	}
	c.Warn("unregistered-photos", fmt.Sprintf("%d of %d photos have no pose from %s and are not used", len(extra), all,
		filepath.Base(c.Model)), extra)
	c.Warnings[len(c.Warnings)-1].Remedy = "no action needed; to use these photos too, align them in the " +
		"program that wrote the file and export again"
}

// commonFolder gives the innermost folder that holds all of dirs: in full where some of them are.
func commonFolder(dirs []string) string {
	if full := slices.ContainsFunc(dirs, filepath.IsAbs); full {
		for i, dir := range dirs {
			if at, err := filepath.Abs(dir); err == nil {
				dirs[i] = at
			}
		}
	}
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
