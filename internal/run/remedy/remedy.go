package remedy

import (
	"errors"

	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// Memory adds to an error of full device memory what train and render can do about it.
func Memory(err error) error {
	if !errors.Is(err, pipeline.ErrOutOfMemory) || fault.OwnHint(err) != "" {
		return err
	}
	return fault.WithHint(err, "use smaller photos with "+fault.Setting("downscale")+", stay further below what is "+
		"free with "+fault.Setting("max-vram")+", or close other programs that use the device")
}
