// Package itself runs this program again, for what is a process of its own: what it needs of memory and of the device
// ends with it.
package itself

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"vksplat/internal/child"
	"vksplat/internal/cli"
)

// failure is a process of this program that failed and said why.
type failure struct{ code int }

func (e *failure) Error() string { return fmt.Sprintf("it ended with exit code %d", e.code) }
func (e *failure) Exit() int     { return e.code }

// Run runs this program with arguments, see child.Run. It prints where this process does. An error that says an exit
// code (Exit() int) is one that the process has explained.
func Run(console *cli.Console, ctx context.Context, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var running atomic.Pointer[os.Process] // which ends with this process
	err = child.Run(ctx, program, args,
		child.Options{Stdout: outside(console.Stdout), Stderr: outside(console.Stderr), Running: &running})
	var ended *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return &failure{ended.ExitCode()}
	}
	return err
}

// outside is the file behind what is printed to, so that a terminal stays one for a child, or else the writer itself.
func outside(w io.Writer) io.Writer {
	if f, isFile := cli.FileOf(w); isFile {
		return f
	}
	return w
}
