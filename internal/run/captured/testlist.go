package captured

import (
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// WriteTestList writes the names of the photos of c that are held out as --test-list reads them, each once.
func WriteTestList(path string, c *scene.Capture) error {
	var text strings.Builder
	written := map[string]bool{}
	for i := range c.Cameras { // several may be of one photo, as the faces of a panorama are
		if name := c.Cameras[i].PhotoName(); c.HeldOut[name] && !written[name] {
			written[name] = true
			text.WriteString(name + "\n")
		}
	}
	return atomicfile.WriteText(path, text.String())
}
