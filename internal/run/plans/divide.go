package plans

import (
	"fmt"

	"vksplat/internal/fault"
	"vksplat/scene"
)

// DivideError is the error of a capture that cannot be divided so.
func DivideError(c *scene.Capture, hint, format string, args ...any) error {
	return &fault.Error{Op: "divide capture", Path: c.Model, Err: fmt.Errorf(format, args...), Hint: hint}
}

// leastCameras is how many photos of a block say something about depth.
const leastCameras = 3
