// Package failure names the kinds of failure that pipeline shares with the packages below it.
package failure

import (
	"errors"
	"slices"
	"strings"

	"vksplat/vk"
)

// Kinds of failure, for errors.Is. Package pipeline hands them on under the same names.
var (
	// ErrDiverged says that the loss, the model or a picture of it is no longer finite.
	ErrDiverged = errors.New("training diverged")
	// ErrTooSmall says that the memory budget cannot hold what was asked for.
	ErrTooSmall = errors.New("device memory budget too small")
	// ErrLittleRAM says that the budget of host memory cannot hold what was asked for.
	ErrLittleRAM = errors.New("host memory budget too small")
)

// shortage is an error of want of memory with the remedy of its case.
type shortage struct {
	error
	hint string
}

func (s *shortage) Unwrap() error { return s.error }

// Short adds to an error of want of memory what the user can do about it: mostly how much is enough.
func Short(err error, hint string) error { return &shortage{err, hint} }

// Hint returns what Short added, or "".
func Hint(err error) string {
	if s := (*shortage)(nil); errors.As(err, &s) {
		return s.hint
	}
	return ""
}

// IsShortage reports whether device memory ran short.
func IsShortage(err error) bool {
	return errors.Is(err, vk.ErrOutOfMemory) || errors.Is(err, ErrTooSmall)
}

// AnyOf makes a hint of what helps; "" is left out.
func AnyOf(ways ...string) string {
	ways = slices.DeleteFunc(ways, func(way string) bool { return way == "" })
	last := len(ways) - 1
	switch last {
	case 0:
		return ways[0] + "."
	case 1:
		return ways[0] + ", or " + ways[1] + "."
	}
	return strings.Join(ways[:last], ", ") + ", or " + ways[last] + "."
}
