package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// Exit codes of run-task, on every engine. Those of its children are among them.
const (
	ExitDone     = 0
	ExitFailure  = 1   // a check failed, or a defect of this program
	ExitUsage    = 2   // the task or the command line makes no sense
	ExitData     = 65  // the inputs are wrong
	ExitRetry    = 75  // this machine cannot do it now, or it was stopped with a checkpoint: try again, here or elsewhere
	ExitSetup    = 78  // the job document or the store is not set up: nobody can do it before that is put right
	ExitCanceled = 130 // given up on demand
)

// IsFinal says of the exit code of run-task, or of a child, that no other attempt will succeed. Of codes above 127,
// which are signals, and of others one may: a defect may have been the machine's. Attempts are counted.
func IsFinal(code int) bool { return code == ExitUsage || code == ExitData || code == ExitSetup }

// ChildError is a child that failed. What it said is in the log.
type ChildError struct {
	Command string
	Code    int    // 128 and the signal's number, where one ended it
	Said    string // its error, "" where it had no time to say one
	Remedy  string // its hint
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

// Hint is what the child said can be done.
func (e *ChildError) Hint() string { return e.Remedy }

// ExitOf is the exit code of run-task after an error of Run.
func ExitOf(err error) int {
	var c *ChildError
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrCanceled):
		return ExitCanceled
	case errors.Is(err, fault.ErrTryAgain), errors.Is(err, context.Canceled):
		return ExitRetry
	case errors.Is(err, spec.ErrSpec), errors.Is(err, store.ErrSetup):
		return ExitSetup
	case errors.As(err, &c):
		if IsFinal(c.Code) && c.Said != "" { // a crash, as in a driver, ends with code 2, but without a word
			return c.Code
		}
		return ExitRetry // also a child that ended by a signal, or said 130 without being asked
	case errors.Is(err, fault.ErrUsage):
		return ExitUsage
	case errors.Is(err, fault.ErrData):
		return ExitData
	}
	return ExitRetry
}

// IsAway says that an attempt failed because the store is away, or a disk full, here or there. That passes and is no
// fault of the task, so the attempt should not count. Of a child there is only what it said.
func IsAway(err error) bool {
	if ExitOf(err) != ExitRetry {
		return false
	}
	var c *ChildError
	if errors.As(err, &c) {
		said := strings.ToLower(c.Said)
		return slices.ContainsFunc([]string{syscall.ENOSPC.Error(), syscall.EDQUOT.Error(), store.FullText}, func(text string) bool { return strings.Contains(said, text) })
	}
	return store.IsAway(err)
}
