package task

import (
	"context"
	"errors"
	"fmt"

	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// IsFinal says of the exit code of run-task, or of a child, that no other attempt will succeed. Of codes above 127,
// which are signals, and of others one may: a defect may have been the machine's. Attempts are counted.
func IsFinal(code int) bool {
	return code == fault.ExitUsage || code == fault.ExitData || code == fault.ExitSetup
}

// ChildError is a child that failed. What it said is in the log.
type ChildError struct {
	Command string
	Code    int     // 128 and the signal's number, where one ended it
	Said    string  // its error, "" where it had no time to say one
	Causes  []error // of its error, those that package fault tells a parent
}

func (e *ChildError) Error() string {
	switch {
	case e.Said != "":
		return fmt.Sprintf("vksplat %s: %s", e.Command, e.Said)
	case e.Code >= 128:
		return fmt.Sprintf("vksplat %s was ended by signal %d", e.Command, e.Code-128)
	}
	return fmt.Sprintf("vksplat %s ended without a message: it crashed, its log has more", e.Command)
}

// Unwrap returns the causes.
func (e *ChildError) Unwrap() []error { return e.Causes }

// ExitOf is the exit code of run-task after an error of Run. It differs from fault.ExitCode: a task is one of many,
// so whatever may pass on another machine, or by itself, is worth another attempt.
func ExitOf(err error) int {
	var c *ChildError
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
	case errors.As(err, &c):
		if IsFinal(c.Code) && c.Said != "" { // a crash, as in a driver, ends with code 2, but without a word
			return c.Code
		}
		return fault.ExitTryAgain // also a child that ended by a signal, or said 130 without being asked
	case errors.Is(err, fault.ErrData):
		return fault.ExitData
	}
	return fault.ExitTryAgain
}

// IsAway says that an attempt failed because the store is away, or a disk full, here or there. That passes and is no
// fault of the task, so the attempt should not count.
func IsAway(err error) bool { return ExitOf(err) == fault.ExitTryAgain && store.IsAway(err) }
