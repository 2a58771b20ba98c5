package desk

import (
	"io/fs"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/transforms"
)

// ownScene refuses a scene that reads files outside of the root, by links or by the names in its files, with photos
// shrunk by size. What else is wrong with the scene, the commands say.
func (p places) ownScene(dir string, size int) error {
	if err := p.ownLinks(dir, map[string]bool{}); err != nil {
		return err
	}
	c, err := load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: size})
	if err != nil {
		return nil
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
		if real, err := filepath.EvalSymlinks(file); file != "" && err == nil && !output.Within(real, p.root) {
			return p.leadsOut(file)
		}
	}
	return nil
}

// ownLinks refuses links below a folder that lead out of the root, and follows those that stay in it.
func (p places) ownLinks(dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink == 0 {
			return nil // of what cannot be read nothing is used
		}
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil: // it leads nowhere
			return nil
		case !output.Within(real, p.root):
			return p.leadsOut(path)
		}
		return p.ownLinks(real, seen)
	})
}

// leadsOut is the error about a file of a scene, named as far as pages may.
func (p places) leadsOut(path string) error {
	name := p.relative(path)
	if name == "" {
		name = filepath.Base(path)
	}
	return fault.Usagef("copy that file or folder into the scene, or give vksplat open a folder that holds it",
		"open scene: %s leads out of the folder that was opened", name)
}
