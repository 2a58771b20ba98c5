//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// tie makes the end of this process the end of a child that is about to start, see Begin. Begun is called once
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

// firstExtra is the descriptor that the first of exec.Cmd.ExtraFiles has in a child.
const firstExtra = 3

// inherit hands the pipe for events to a child that is about to start, as a descriptor.
func inherit(cmd *exec.Cmd, pipe *os.File) error {
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Env = append(cmd.Environ(), eventsVariable+"="+strconv.Itoa(firstExtra))
	return nil
}

// inherited opens the pipe that the parent named. No program that this one starts gets it.
func inherited(at string) *os.File {
	fd, err := strconv.Atoi(at)
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "events")
}
