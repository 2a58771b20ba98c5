//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// stopSignals lists what stops a run, and makes a pipe that nobody reads any more
// an error of writing and no reason to stop the work.
func stopSignals() []os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) { // as nohup does
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// detach keeps the terminal's signals from a program that is started: it is ended through its input.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
