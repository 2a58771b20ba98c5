package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// StopSignals lists what stops a run: Ctrl-C, Ctrl-Break and, as SIGTERM, a
// console that is closed or a user who logs off.
func StopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// Detach keeps the terminal's signals from a program that is started: it is ended through its input.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
