// Package child runs this program as a child of itself: one training, render or evaluation in a process of its own,
// which may crash, hang or be stopped without taking its parent along. It also runs the programs of others.
//
// Run starts a child and waits for its end. When the context ends, the child is asked to save and stop; how long it may
// take is an Option. Lines hands its output over line by line. EndWithParent, which main calls first, ties a child's
// life to its parent's on every system: none outlives a parent that was killed.
package child

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// Options say how a child runs.
type Options struct {
	Stdout, Stderr io.Writer
	Apart          bool                        // in a process group of its own: the terminal's signals do not reach it
	Grace          time.Duration               // after which a child that was asked to stop is ended; 0: never
	Running        *atomic.Pointer[os.Process] // has the process meanwhile
	Env            []string                    // beside what this process has
	Dir            string                      // in which it runs, "" for this process's
}

// Run runs a program with arguments until it ends. When ctx is cancelled, it is asked to save and stop, and waited for.
// When this process is killed, it ends, too; on systems other than Linux and Windows only if its main function calls
// EndWithParent.
func Run(ctx context.Context, program string, args []string, o Options) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = o.Stdout, o.Stderr, o.Dir
	cmd.SysProcAttr = attributes(o.Apart)
	cmd.Cancel = func() error { return stop(cmd.Process) }
	cmd.WaitDelay = o.Grace
	// On Linux a child ends with the thread that started it, which therefore must not end before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, release, err := tie(cmd)
	if err != nil {
		return err
	}
	defer release()
	cmd.Env = append(cmd.Environ(), o.Env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := begun(); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	o.Running.Store(cmd.Process)
	defer o.Running.Store(nil)
	return cmd.Wait()
}
