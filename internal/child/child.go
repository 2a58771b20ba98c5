// Package child runs this program as a child of itself: one training, render or evaluation in a process of its own,
// which may crash, hang or be stopped without taking its parent along. It also runs the programs of others.
//
// Start starts a child, Run waits for it too, and Ask reads the JSON that it prints. When the context ends, the child
// is asked to save and stop; Options say how long it may take. What it prints is for people. What a parent must know it
// reports as events, see Event. Begin, which main calls first, ties a child's life to its parent's on every system: it
// ends when its parent is killed.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"vksplat/internal/fault"
)

type Options struct {
	Stdout, Stderr io.Writer     // nil: discarded
	Apart          bool          // in a process group of its own: the terminal's signals do not reach it
	Grace          time.Duration // after which a child that was asked to stop is killed; 0: never
	Env            []string      // added to this process's
	Dir            string        // in which it runs, "" for this process's
	// receives the events of a child that is this program; nil: it is another one, which reports none. It is called
	// by one goroutine, and not after the child's end.
	OnEvent func(*Event)
}

type Child struct {
	process *os.Process
	done    chan struct{}
	err     error
}

// Run runs a program until it ends, see Start.
func Run(ctx context.Context, program string, args []string, o Options) error {
	c, err := Start(ctx, program, args, o)
	if err != nil {
		return err
	}
	return c.Wait()
}

// Ask runs this program and decodes the JSON that it prints into v, also that of one that fails.
func Ask(ctx context.Context, program string, args []string, o Options, v any) error {
	var out bytes.Buffer
	o.Stdout, o.OnEvent = &out, func(*Event) {}
	err := Run(ctx, program, args, o)
	if decoded := json.Unmarshal(out.Bytes(), v); err == nil && decoded != nil {
		err = fmt.Errorf("read what vksplat %s prints: %w", args[0], decoded)
	}
	return err
}

// Start starts a program with arguments. When ctx is cancelled, it is asked to save and stop. When this process is
// killed, it ends, too; on systems other than Linux and Windows only if its main function calls Begin.
func Start(ctx context.Context, program string, args []string, o Options) (*Child, error) {
	c := &Child{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(c.done)
		// On Linux a child ends with the thread that started it, which therefore must not end before.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.run(ctx, program, args, &o, started)
	}()
	return c, <-started
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for the end. A child of this program that failed is a *Failure in the error.
func (c *Child) Wait() error {
	<-c.done
	return c.err
}

// Kill ends the child at once. It may have ended.
func (c *Child) Kill() { _ = c.process.Kill() }

func (c *Child) PID() int { return c.process.Pid }

// run starts the process, says so, and waits for its end.
func (c *Child) run(ctx context.Context, program string, args []string, o *Options, started chan<- error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = o.Stdout, o.Stderr, o.Dir
	cmd.SysProcAttr = attributes(o.Apart)
	cmd.Cancel = func() error { return stop(cmd.Process) }
	cmd.WaitDelay = o.Grace
	begun, release, err := tie(cmd)
	if err != nil {
		started <- err
		return
	}
	defer release()
	listen := func() *Event { return nil }
	if o.OnEvent != nil {
		if listen, err = listenTo(cmd, o.OnEvent); err != nil {
			started <- err
			return
		}
	}
	cmd.Env = append(cmd.Environ(), o.Env...)
	if err = cmd.Start(); err == nil {
		if err = begun(); err != nil {
			err = errors.Join(err, cmd.Process.Kill(), cmd.Wait())
		}
	}
	if err != nil {
		listen()
		started <- err
		return
	}
	c.process = cmd.Process
	started <- nil
	failed := listen()
	c.err = cmd.Wait()
	var exit *exec.ExitError
	if o.OnEvent != nil && errors.As(c.err, &exit) {
		c.err = failureOf(exit, failed)
	}
}

// Failure is a child of this program that did not succeed.
type Failure struct {
	Code   int     // exit code; 128 and the signal's number, where one ended it
	Text   string  // of its error, "" where it had no time to report one
	Causes []error // of its error: its kind, and those that package fault names
}

// failureOf makes an error of how a child ended, and of the error that it reported, nil for none.
func failureOf(exit *exec.ExitError, e *Event) error {
	f := &Failure{Code: exit.ExitCode()}
	if status, known := exit.Sys().(syscall.WaitStatus); known && status.Signaled() {
		f.Code = 128 + int(status.Signal())
	}
	if e != nil {
		f.Text, f.Causes = e.Text, fault.Causes(e.Kind, e.Causes)
		return fault.WithHint(f, e.Hint)
	}
	if f.Code == fault.ExitUsage { // what a crash in a driver, or of this program, ends with too
		f.Code = fault.ExitFailure
	}
	return f
}

func (f *Failure) Error() string {
	switch {
	case f.Text != "":
		return f.Text
	case f.Code >= 128:
		return fmt.Sprintf("its process was ended by signal %d", f.Code-128)
	}
	return "its process ended without a message: it crashed"
}

func (f *Failure) Unwrap() []error { return f.Causes }
