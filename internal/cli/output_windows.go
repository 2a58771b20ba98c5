package cli

import "syscall"

func init() {
	pipeGone = append(pipeGone, syscall.Errno(109), syscall.Errno(232)) // ERROR_BROKEN_PIPE, ERROR_NO_DATA
}
