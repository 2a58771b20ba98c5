package remedy

import (
	"errors"

	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// Of returns what the user can do about err, or "".
func Of(err error) string {
	var u *fault.UsageError
	if errors.As(err, &u) {
		return u.Hint
	}
	var h *fault.HintedError
	if errors.As(err, &h) {
		return h.Hint
	}
	if s := fault.Hint(err); s != "" {
		return s
	}
	var own interface{ Hint() string } // of package farm
	if errors.As(err, &own) {
		return own.Hint()
	}
	return pipeline.Hint(err)
}

// Memory adds to an error of full device memory what train and render can do about it.
func Memory(err error) error {
	var known *fault.HintedError
	if !errors.Is(err, pipeline.ErrOutOfMemory) || errors.As(err, &known) {
		return err
	}
	return &fault.HintedError{Err: err, Hint: "use smaller photos with --downscale, stay further below what is free with --max-vram, or close other programs that use the device"}
}
