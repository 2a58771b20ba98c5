//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
)

// tie makes the end of this process the end of a child that is about to start, see EndWithParent. Begun is called once
// it has, and release when it has ended or could not start.
func tie(cmd *exec.Cmd) (begun func() error, release func(), err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin = theirs
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	return theirs.Close, func() { _ = errors.Join(theirs.Close(), ours.Close()) }, nil // closed twice, where it began
}
