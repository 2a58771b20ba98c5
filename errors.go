package vksplat

import (
	"context"
	"errors"

	"vksplat/internal/fault"
	"vksplat/internal/run/train"
)

// Kinds of errors, for errors.Is. An error of none of them is that of a context, or a defect of this package.
var (
	// ErrData says that a capture, a model or a checkpoint is missing, damaged or makes no sense.
	ErrData = fault.ErrData
	// ErrTryAgain says that the machine cannot do it now: no device, too little memory, a full disk, a device that was
	// lost. The same call works once that is put right. A lost device has to be opened again.
	ErrTryAgain = fault.ErrTryAgain
	// ErrUsage says that an option has a value that nothing accepts, or names a device that is not there, that a file
	// is in the way, or that the call makes no sense, as one on a device that is closed.
	ErrUsage = fault.ErrUsage
)

// Hint returns what can be done about an error of this package, in a sentence; "" if nothing is known.
func Hint(err error) string { return fault.Hint(err) }

// failure is an error and its kind.
type failure struct{ err, kind error }

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.err, f.kind} }

// classified makes an error that passes with the machine's state one of kind ErrTryAgain; others are of their kinds.
func classified(err error) error {
	if fault.ExitCode(err) == fault.ExitTryAgain {
		return &failure{err, ErrTryAgain}
	}
	return err
}

// ended is classified of what ctx, or a time limit, may have stopped: the error is the context's then, or that of one
// whose deadline has passed.
func ended(ctx context.Context, err error) error {
	stopped := errors.Is(err, fault.ErrInterrupted) || errors.Is(err, context.Canceled)
	switch {
	case stopped && ctx.Err() != nil:
		return &failure{err, ctx.Err()}
	case errors.Is(err, train.ErrTimeLimit):
		return &failure{err, context.DeadlineExceeded}
	}
	return classified(err)
}
