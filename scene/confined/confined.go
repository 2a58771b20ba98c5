// Package confined judges whether a capture reads files outside of a folder. Captures come from strangers, and name
// photos by any path: who trains them for others must not show these a file of the machine.
package confined

import (
	"io/fs"
	"path/filepath"

	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/transforms"
)

// Escape returns a file that a capture reads with these options and that is not below root, "" if there is none: a
// link that leads out, or a photo, mask or point cloud outside of it. A capture that cannot be loaded reads none by
// its names. root has no links in it.
func Escape(capture, root string, o scene.LoadOptions) (file string) {
	if file = escapingLink(capture, root, map[string]bool{}); file != "" {
		return file
	}
	c, err := load.Capture(capture, o)
	if err != nil {
		return ""
	}
	var files []string
	for _, cam := range c.Cameras {
		files = append(files, cam.Path, cam.Mask)
	}
	for _, w := range c.Warnings {
		if w.Code == transforms.OutsideFiles {
			files = append(files, w.Names...)
		}
	}
	for _, file := range files {
		if real, err := filepath.EvalSymlinks(file); file != "" && err == nil && !within(real, root) {
			return file
		}
	}
	return ""
}

// escapingLink returns a link below a folder that leads out of root. It follows links that stay in it.
func escapingLink(dir, root string, seen map[string]bool) (file string) {
	if seen[dir] {
		return ""
	}
	seen[dir] = true
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return nil // what cannot be read is not used
		}
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil: // it leads nowhere
			return nil
		case !within(real, root):
			file = path
		default:
			file = escapingLink(real, root, seen)
		}
		if file != "" {
			return fs.SkipAll
		}
		return nil
	})
	return file
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
