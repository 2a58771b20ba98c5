package child

import (
	"io"
	"os"
)

// parentVariable tells a child that its standard input is a pipe which its parent holds open and writes nothing to: the
// pipe ends with the parent, however that ends.
const parentVariable = "VKSPLAT_PARENT_PIPE"

// exitOrphan is the exit code of a child without a parent. Nobody waits for it.
const exitOrphan = 143

// EndWithParent has this process end at once when its parent has ended, where that is another process of this program:
// nobody would wait for it, and it would keep its folder and the device. It is called once, when the process begins.
func EndWithParent() {
	if os.Getenv(parentVariable) == "" {
		return
	}
	_ = os.Unsetenv(parentVariable) // whatever this process starts has another standard input
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
		os.Exit(exitOrphan)
	}()
}
