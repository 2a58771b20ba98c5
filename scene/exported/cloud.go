package exported

import (
	"bytes"
	"fmt"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Cloud reads the points of a capture whose format has none: those of the PLY file in its folder. Of several the first
// by name is taken, with a warning; models of splats are passed over.
func Cloud(c *scene.Capture) error {
	files := Files(c.Root, ".ply", func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("ply")) && !bytes.Contains(head, []byte(" f_dc_0"))
	})
	if len(files) == 0 {
		return nil
	}
	if len(files) > 1 {
		var names []string
		for _, f := range files[1:] {
			names = append(names, filepath.Base(f))
		}
		c.Warn("other-clouds", fmt.Sprintf("using the points of %s; %s ply:FILE starts from those of another file",
			filepath.Base(files[0]), fault.Setting("init")), names)
	}
	return ply.ReadCloud(c, files[0])
}
