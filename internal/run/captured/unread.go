package captured

import (
	"path/filepath"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
)

// ReadCamerasOf reads the cameras of a capture, or of a file that train wrote.
func ReadCamerasOf(console *cli.Console, file string) ([]scene.Camera, error) {
	if strings.EqualFold(filepath.Base(file), CamerasBeside[0]) || OfModel(file) {
		cams, _, err := inria.ReadCameras(file)
		return cams, err
	}
	c, err := load.Capture(file, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		return nil, Unread(file, err)
	}
	return c.Cameras, nil
}

// Unread is the error of a capture for a command without the flags that the remedy may name.
func Unread(path string, err error) error {
	return fault.WithHint(err, fault.Command("inspect "+cli.Quoted(path)+" says more about it, and what can be done"))
}
