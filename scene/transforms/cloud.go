package transforms

import (
	"path/filepath"

	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
)

// readCloud reads the points that a JSON file names. A cloud that is not there is worth a warning: training may begin
// in other ways.
func readCloud(c *scene.Capture, name string) error {
	file := photo.NativePath(filepath.Dir(c.Model), name)
	if file = photo.NewLocator(c.Root).Find(file); file == "" {
		c.Warn("missing-points", "the file of points is missing", []string{name})
		return nil
	}
	return ply.ReadCloud(c, file)
}
