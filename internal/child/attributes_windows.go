package child

import "syscall"

// attributes make a group of its own of every child, because a Ctrl-Break goes to a group: see stop.
func attributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
