package captured

import (
	"path/filepath"
	"strings"

	"vksplat/internal/cli"
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
		return nil, &UnreadCapture{file, err}
	}
	return c.Cameras, nil
}

// UnreadCapture is the error of a capture that cannot be read.
type UnreadCapture struct {
	Path string
	Err  error
}

func (e *UnreadCapture) Error() string { return e.Err.Error() }

func (e *UnreadCapture) Unwrap() error { return e.Err }
