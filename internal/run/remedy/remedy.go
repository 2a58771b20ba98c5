package remedy

import (
	"errors"
	"strings"

	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// Ceiling makes an error of a ceiling that was given in bytes, and is too low, one of usage: the same command fails
// anywhere. A share of a device, or of RAM, may do elsewhere.
func Ceiling(err error, o pipeline.DeviceOptions) error {
	given := func(text string) bool { return text != "" && !strings.HasSuffix(text, "%") }
	device := errors.Is(err, pipeline.ErrTooSmall) && !errors.Is(err, pipeline.ErrOutOfMemory)
	if device && (given(o.MaxVRAM) || given(o.MaxRAM)) || errors.Is(err, pipeline.ErrLittleRAM) && given(o.MaxRAM) {
		return &fault.Error{Err: err, Kind: fault.ErrUsage}
	}
	return err
}

// Memory adds to an error of full device memory what train and render can do about it.
func Memory(err error) error {
	if !errors.Is(err, pipeline.ErrOutOfMemory) || fault.OwnHint(err) != "" {
		return err
	}
	return fault.WithHint(err, "use smaller photos with "+fault.Setting("downscale")+", stay further below what is "+
		"free with "+fault.Setting("max-vram")+", or close other programs that use the device")
}
