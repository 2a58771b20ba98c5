package fault

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// CausesVariable in a process's environment has it print the line of Causes before an error, for the process that
// started it: errors do not cross processes, and their texts are for people.
const CausesVariable = "VKSPLAT_CAUSES"

// causesPrefix begins the line of Causes.
const causesPrefix = "vksplat: causes: "

// causes are those that a parent may want to tell apart.
var causes = []struct {
	name string
	err  error
}{
	{"device-lost", ErrDeviceLost},
	{"disk-full", syscall.ENOSPC},
	{"quota-exceeded", syscall.EDQUOT},
	{"not-installed", ErrMissing},
}

// Causes is the line that tells a parent process why this one fails, "" where none listens or there is nothing to tell.
func Causes(err error) string {
	if os.Getenv(CausesVariable) == "" {
		return ""
	}
	var names []string
	for _, c := range causes {
		if errors.Is(err, c.err) {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return causesPrefix + strings.Join(names, " ")
}

// ParseCauses reads a line of Causes. Is is false for other lines.
func ParseCauses(line string) (list []error, is bool) {
	names, is := strings.CutPrefix(line, causesPrefix)
	if !is {
		return nil, false
	}
	for name := range strings.FieldsSeq(names) {
		for _, c := range causes {
			if name == c.name {
				list = append(list, c.err)
			}
		}
	}
	return list, true
}
