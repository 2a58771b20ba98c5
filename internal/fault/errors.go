package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"vksplat/internal/wording"
)

// Kinds of error, for errors.Is. ExitCode maps each to an exit code.
var (
	// ErrData says that the input is at fault. It is the kind of every Error whose Kind is nil.
	ErrData = errors.New("bad data")
	// ErrTryAgain says that the same call may succeed later: no space, no permission, a file that cannot be opened now.
	ErrTryAgain = errors.New("try again")
	// ErrMachine says that this machine lacks what the work needs: a driver, a device, memory.
	ErrMachine = errors.New("machine not able")
	// ErrUsage says that an option has a value that nothing accepts.
	ErrUsage = errors.New("bad usage")
	// ErrSetup says that a job document or a store is not set up: no machine can do it before that is fixed.
	ErrSetup = errors.New("bad setup")
	// ErrDeviceLost says that the driver gave the device up: a hang, a reset, a removal. The same call may succeed
	// later on a new device. It outranks ErrData: a file read on a lost device is not to blame.
	ErrDeviceLost = errors.New("device lost")
	// ErrInterrupted says that the user stopped the work.
	ErrInterrupted = errors.New("interrupted")
	// ErrFailure is the kind of an Error that has only its cause's: a failed check or a defect where that has none.
	ErrFailure = errors.New("failure")
	// ErrMissing is the cause of an error about another program that the work needs.
	ErrMissing = Sentinel(ErrMachine, "it is not installed", "")
)

// Exit codes. Those above 2 are the ones of sysexits.h and of shells.
const (
	ExitOK          = 0
	ExitFailure     = 1   // a check failed, or a defect of this program
	ExitUsage       = 2   // the command line is wrong
	ExitData        = 65  // the files given are wrong
	ExitTryAgain    = 75  // the machine cannot do it now; the same command works once that is put right
	ExitSetup       = 78  // the job document or the store is not set up
	ExitInterrupted = 130 // stopped by Ctrl-C, SIGTERM or SIGHUP
)

// exits maps kinds to exit codes. An error may be of several kinds: the first one here counts.
var exits = []struct {
	kind error
	code int
}{
	{ErrInterrupted, ExitInterrupted},
	{context.Canceled, ExitInterrupted},
	{ErrUsage, ExitUsage},
	{ErrSetup, ExitSetup},
	{ErrDeviceLost, ExitTryAgain},
	{ErrData, ExitData},
	{ErrTryAgain, ExitTryAgain},
	{ErrMachine, ExitTryAgain},
}

// system has the errors of the operating system that are the machine's and not the input's.
var system = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EIO,
	syscall.ENOMEM}

// ExitCode returns what a process should end with after err. An error with a method Exit brings a code of its own.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var own interface{ Exit() int }
	if errors.As(err, &own) {
		return own.Exit()
	}
	for _, e := range exits {
		if errors.Is(err, e.kind) {
			return e.code
		}
	}
	if slices.ContainsFunc(system, func(cause error) bool { return errors.Is(err, cause) }) {
		return ExitTryAgain
	}
	return ExitFailure
}

// Error is a failure that a user can act on.
type Error struct {
	Op   string // what was being done, a verb and an object: "read cameras"
	Path string // the file or folder it was done to, "" if none
	Err  error  // the cause
	Hint string // the remedy, one sentence, "" if none is known
	Kind error  // one of the kinds above; nil means ErrData
}

// Error gives "op: path: cause", without the hint.
func (e *Error) Error() string {
	if e.Op == "" && e.Path == "" && e.Err != nil {
		return e.Err.Error()
	}
	parts := make([]string, 0, 3)
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

// WithHint adds a remedy to an error, which stays of the kind that it is.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Error{Err: err, Hint: hint, Kind: ErrFailure}
}

// Data gives an Error of kind ErrData whose cause reads as format says.
func Data(op, path, hint, format string, args ...any) error {
	return &Error{Op: op, Path: path, Err: fmt.Errorf(format, args...), Hint: hint}
}

func Usagef(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint, Kind: ErrUsage}
}

// sentinel is an error that callers compare with, of a kind of its own.
type sentinel struct {
	text string
	kind error
	hint string
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.kind }

// Sentinel gives an error for errors.Is that is of a kind. Its remedy, "" if none is known, is for errors that wrap it
// and have none.
func Sentinel(kind error, text, hint string) error {
	return &sentinel{text, kind, hint}
}

// Hint gives the remedy that err, or an error it wraps, carries; "" if none. The outermost Error with a hint wins, then
// the first sentinel with one.
func Hint(err error) string {
	return cmp.Or(OwnHint(err), find(err, func(e error) string {
		if s, is := e.(*sentinel); is {
			return s.hint
		}
		return ""
	}))
}

// OwnHint is Hint without those of sentinels, which are the same for every error that wraps them.
func OwnHint(err error) string {
	return find(err, func(e error) string {
		if e, is := e.(*Error); is {
			return e.Hint
		}
		return ""
	})
}

// find gives the first text other than "" that get has for err or for an error it wraps, from the outside in.
func find(err error, get func(error) string) string {
	if err == nil {
		return ""
	}
	if text := get(err); text != "" {
		return text
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return find(e.Unwrap(), get)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if text := find(inner, get); text != "" {
				return text
			}
		}
	}
	return ""
}
