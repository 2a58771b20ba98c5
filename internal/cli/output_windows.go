package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func init() {
	pipeGone = append(pipeGone, syscall.Errno(109), syscall.Errno(232)) // ERROR_BROKEN_PIPE, ERROR_NO_DATA
	// A console prints escape sequences, with which lines are drawn again, until it is asked to obey them.
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		var mode uint32
		if console := windows.Handle(f.Fd()); windows.GetConsoleMode(console, &mode) == nil {
			_ = windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
		}
	}
}
