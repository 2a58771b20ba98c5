//go:build unix && !linux

package child

import "syscall"

// attributes cannot tell the kernel to end a child when this process is killed.
func attributes(apart bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: apart} }
