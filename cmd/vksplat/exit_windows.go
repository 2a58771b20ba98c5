package main

import (
	"io/fs"
	"syscall"
)

// systemCauses are the errors of the operating system that are the machine's and
// not the command's, by their numbers in winerror.h: no memory (8, 14, 1455),
// write protected (19), shared (32, 33), disk full (39, 112), a device's failure (1117).
var systemCauses = []error{fs.ErrPermission, syscall.Errno(8), syscall.Errno(14), syscall.Errno(1455), syscall.Errno(19), syscall.Errno(32), syscall.Errno(33),
	syscall.Errno(39), syscall.Errno(112), syscall.Errno(1117)}
