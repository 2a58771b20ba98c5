package scene

import (
	"errors"
	"path/filepath"
	"strings"
)

// masksBeside gives the folder of masks that belongs to a folder of photos, "" if there is none.
func masksBeside(images string) string {
	dir := filepath.Join(filepath.Dir(filepath.Clean(images)), "masks")
	if !isDir(dir) {
		return ""
	}
	return dir
}

// attachMasks gives cameras without a mask the one in dir, or in the folder masks beside that of the photos, that is named like the photo.
func (c *Capture) attachMasks(dir string, inverted bool) error {
	if dir == "" {
		if dir = masksBeside(c.Images); dir == "" {
			return nil
		}
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Root, dir)
	}
	if !isDir(dir) {
		return &Error{Op: "find masks", Path: dir, Err: errors.New("no such folder"), Hint: "--masks names a folder below the capture's, or an absolute one"}
	}
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		name := filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(cam.Name, filepath.Ext(cam.Name))+".png"))
		if cam.Mask == "" && regular(name) == nil {
			cam.Mask, cam.MaskInverted = name, inverted
		}
	}
	return nil
}
