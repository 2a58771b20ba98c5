//go:build !windows

package main

import "syscall"

// systemCauses are the errors of the operating system that are the machine's and
// not the command's.
var systemCauses = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.ENOMEM}
