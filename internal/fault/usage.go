package fault

import (
	"errors"
	"fmt"
)

// ErrInterrupted is returned by commands that the user stopped.
var ErrInterrupted = errors.New("interrupted")

// UsageError is a command line that makes no sense.
type UsageError struct {
	Err  error
	Hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a usageError.
func Usagef(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint}
}

// HintedError adds a hint to an error of another package.
type HintedError struct {
	Err  error
	Hint string
}

func (e *HintedError) Error() string { return e.Err.Error() }

func (e *HintedError) Unwrap() error { return e.Err }
