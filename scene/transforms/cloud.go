package transforms

import (
	"path/filepath"

	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
)

// readCloud reads the points that a JSON file names. A cloud that is not there is worth a warning: training may begin
// in other ways.
func readCloud(c *scene.Capture, name string, strict bool) error {
	finder := NewFinder(c)
	found := finder.Find([]string{photo.NativePath(filepath.Dir(c.Model), name)})
	if found[0] == "" {
		c.Warn("missing-points", "the file of points is missing", []string{name})
		return nil
	}
	if err := finder.Outside(found, "point cloud", strict); err != nil {
		return err
	}
	return ply.ReadCloud(c, found[0])
}
