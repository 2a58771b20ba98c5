package remedy

import (
	"errors"
	"slices"
	"syscall"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// retryCauses are the errors that are the machine's and not the caller's.
var retryCauses = []error{
	output.ErrBusy, fault.ErrTryAgain, pipeline.ErrNoDevice, pipeline.ErrOutOfMemory, pipeline.ErrTooSmall,
	pipeline.ErrLittleRAM, pipeline.ErrNoLoader, pipeline.ErrMissingFeature,
	syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.ENOMEM,
}

// usageCauses are the errors of options that only the library can judge.
var usageCauses = []error{
	fault.ErrUsage, pipeline.ErrTooMany, pipeline.ErrFewSplats, pipeline.ErrManyDevices, pipeline.ErrUnreachable,
	pipeline.ErrBadLimits,
}

// dataCauses are the input's. Without splats, the photos and the poses do not belong together.
var dataCauses = []error{fault.ErrData, pipeline.ErrNoSplats, pipeline.ErrDiverged}

// KindOf returns fault.ErrUsage, ErrData or ErrTryAgain, whichever decides what to do about err; nil: none does.
func KindOf(err error) error {
	is := func(cause error) bool { return errors.Is(err, cause) }
	var u *fault.UsageError
	switch {
	case errors.As(err, &u) || slices.ContainsFunc(usageCauses, is):
		return fault.ErrUsage
	case is(pipeline.ErrDeviceLost): // even while a file was read or written
		return fault.ErrTryAgain
	case slices.ContainsFunc(dataCauses, is):
		return fault.ErrData
	case slices.ContainsFunc(retryCauses, is):
		return fault.ErrTryAgain
	}
	return nil
}
