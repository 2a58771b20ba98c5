package task

import (
	"context"
	"errors"

	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// IsFinal says of the exit code of run-task, or of a child, that no other attempt will succeed. Of codes above 127,
// which are signals, and of others one may: a defect may have been the machine's. Attempts are counted.
func IsFinal(code int) bool {
	return code == fault.ExitUsage || code == fault.ExitData || code == fault.ExitSetup
}

// ExitOf is the exit code of run-task after an error of Run. It differs from fault.ExitCode: a task is one of many,
// so whatever may pass on another machine, or by itself, is worth another attempt.
func ExitOf(err error) int {
	switch {
	case err == nil:
		return fault.ExitOK
	case errors.Is(err, ErrCanceled):
		return fault.ExitInterrupted
	case errors.Is(err, fault.ErrUsage):
		return fault.ExitUsage
	case errors.Is(err, fault.ErrTryAgain), errors.Is(err, context.Canceled):
		return fault.ExitTryAgain
	case errors.Is(err, fault.ErrSetup), errors.Is(err, fault.ErrMissing): // another machine may have the program
		return fault.ExitSetup
	case errors.Is(err, fault.ErrData):
		return fault.ExitData
	}
	return fault.ExitTryAgain // also a child that crashed, or was interrupted and not by this process
}

// IsAway says that an attempt failed because the store is away, or a disk full, here or there. That passes and is no
// fault of the task, so the attempt should not count.
func IsAway(err error) bool { return ExitOf(err) == fault.ExitTryAgain && store.IsAway(err) }
