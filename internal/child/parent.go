package child

import (
	"io"
	"os"
)

// parentVariable tells a child that its standard input is a pipe which its parent holds open and writes nothing to: the
// pipe ends with the parent, however that ends.
const parentVariable = "VKSPLAT_PARENT_PIPE"

// exitOrphan is the exit code of a child without a parent. No process waits for it.
const exitOrphan = 143

// Begin finds out whether another process of this program started this one. If so, this one ends at once when that has
// ended: it would keep its folder and the device. It also opens the pipe for events. Main calls it first, and whatever
// this process starts gets pipes of its own.
func Begin() {
	if at := os.Getenv(eventsVariable); at != "" {
		_ = os.Unsetenv(eventsVariable)
		parent.pipe = inherited(at)
	}
	if os.Getenv(parentVariable) == "" {
		return
	}
	_ = os.Unsetenv(parentVariable)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
		os.Exit(exitOrphan)
	}()
}
