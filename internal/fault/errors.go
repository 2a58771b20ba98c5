package fault

import (
	"errors"
	"fmt"
	"strings"

	"vksplat/internal/wording"
)

// Kinds of error, for errors.Is. The command maps each to its exit code.
var (
	// ErrData says that the input is at fault (exit code 65). It is the kind
	// of every Error whose Kind is nil.
	ErrData = errors.New("bad data")
	// ErrTryAgain says that the same call may succeed later: no space, no
	// permission, a file that cannot be opened now (exit code 75).
	ErrTryAgain = errors.New("try again")
	// ErrUsage says that an option has a value that nothing accepts (exit
	// code 2).
	ErrUsage = errors.New("bad usage")
)

// Error is a failure of this package that a user can act on.
type Error struct {
	Op   string // what was being done, a verb and an object: "read cameras"
	Path string // the file or folder it was done to, "" if none
	Err  error  // the cause
	Hint string // the remedy, one sentence, "" if none is known
	Kind error  // ErrData, ErrTryAgain or ErrUsage; nil means ErrData
}

// Error gives "scene: op: path: cause", without the hint.
func (e *Error) Error() string {
	parts := make([]string, 0, 4)
	parts = append(parts, "scene")
	for _, part := range []string{e.Op, wording.Printable(e.Path)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Err != nil {
		parts = append(parts, wording.Escaped(e.Err.Error(), ""))
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the cause and the kind, so that errors.Is finds both.
func (e *Error) Unwrap() []error {
	kind := e.Kind
	if kind == nil {
		kind = ErrData
	}
	if e.Err == nil {
		return []error{kind}
	}
	return []error{e.Err, kind}
}

// packageName stands before errors of this package and of all that use its type; users know nothing of packages.
const packageName = "scene: "

// Text is the text of an error for users: its causes without the name of this package before them.
func Text(err error) string {
	text := "\n" + err.Error() // joined errors are a line each
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n"+packageName, "\n"), ": "+packageName, ": ")[1:]
}

// Hint gives the remedy that err, or an error it wraps, carries; "" if none.
// The outermost Error with a hint wins.
func Hint(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *Error:
		if e.Hint != "" {
			return e.Hint
		}
		return Hint(e.Err)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Hint(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if hint := Hint(inner); hint != "" {
				return hint
			}
		}
	}
	return ""
}

// Data gives an Error of kind ErrData whose cause reads as format says.
func Data(op, path, hint, format string, args ...any) error {
	return &Error{Op: op, Path: path, Err: fmt.Errorf(format, args...), Hint: hint}
}
