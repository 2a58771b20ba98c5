// Package itself runs this program again, for what is a process of its own: what it needs of memory and of the device
// ends with it.
package itself

import (
	"context"
	"fmt"
	"io"
	"os"

	"vksplat/internal/child"
	"vksplat/internal/cli"
)

// Run runs this program with arguments, see child.Run. It prints where this process does.
func Run(console *cli.Console, ctx context.Context, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	err = child.Run(ctx, program, args, child.Options{Stdout: outside(console.Stdout), Stderr: outside(console.Stderr),
		OnEvent: child.Forward})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
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
