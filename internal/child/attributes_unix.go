//go:build unix && !linux

package child

import "syscall"

func attributes(apart bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: apart} }
