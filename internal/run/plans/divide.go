package plans

import (
	"fmt"

	"vksplat/internal/fault"
	"vksplat/scene"
)

func DivideError(c *scene.Capture, hint, format string, args ...any) error {
	return &fault.Error{Op: "divide capture", Path: c.Model, Err: fmt.Errorf(format, args...), Hint: hint}
}

// leastCameras is how many photos of a block say something about depth.
const leastCameras = 3
