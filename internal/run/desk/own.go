package desk

import (
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/confined"
)

// ownScene refuses a scene that reads files outside of the root, by links or by the names in its files, with photos
// shrunk by size. What else is wrong with the scene, the commands say.
func (p places) ownScene(dir string, size int) error {
	file := confined.Escape(dir, p.root, scene.LoadOptions{Model: scene.AnyModel, Downscale: size})
	if file == "" {
		return nil
	}
	name := p.relative(file) // as far as pages may name it
	if name == "" {
		name = filepath.Base(file)
	}
	return fault.Usagef("copy that file or folder into the scene, or give vksplat open a folder that holds it",
		"open scene: %s leads out of the opened folder", name)
}
