package child

import "syscall"

// attributes cannot tell the system to end a child when this process is killed.
func attributes(apart bool) *syscall.SysProcAttr {
	if !apart {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
