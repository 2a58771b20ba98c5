package fault

import (
	"errors"
	"slices"
	"syscall"
)

type named struct {
	name string
	err  error
}

// Names of errors in what processes report to their parents. The first kind that an error is of decides its exit code.
var (
	kindNames = []named{{"interrupted", ErrInterrupted}, {"usage", ErrUsage}, {"setup", ErrSetup},
		{"device-lost", ErrDeviceLost}, {"data", ErrData}, {"try-again", ErrTryAgain}, {"machine", ErrMachine}}
	causeNames = []named{{"device-lost", ErrDeviceLost}, {diskFull, syscall.ENOSPC},
		{quotaExceeded, syscall.EDQUOT}, {"not-installed", ErrMissing}}
)

const (
	diskFull      = "disk-full"
	quotaExceeded = "quota-exceeded"
)

// IsFull reports whether an error is of a full disk or quota.
func IsFull(err error) bool {
	return slices.ContainsFunc(causeNames, func(n named) bool {
		return (n.name == diskFull || n.name == quotaExceeded) && errors.Is(err, n.err)
	})
}

// Names gives the names of an error's kind, "" for ErrFailure, and of those causes that a parent may want to tell
// apart: errors do not cross processes, and their texts are for people.
func Names(err error) (kind string, causes []string) {
	is := func(n named) bool { return errors.Is(err, n.err) }
	i := slices.IndexFunc(kindNames, is)
	switch code := ExitCode(err); {
	case code == ExitInterrupted: // a context that was cancelled, too
		kind = kindNames[0].name
	case i >= 0:
		kind = kindNames[i].name
	case code == ExitTryAgain: // an error of the operating system
		kind = "try-again"
	}
	for _, n := range causeNames {
		if is(n) {
			causes = append(causes, n.name)
		}
	}
	return kind, causes
}

func Causes(kind string, causes []string) (list []error) {
	for _, n := range kindNames {
		if n.name == kind {
			list = append(list, n.err)
		}
	}
	for _, n := range causeNames {
		if slices.Contains(causes, n.name) {
			list = append(list, n.err)
		}
	}
	return list
}
