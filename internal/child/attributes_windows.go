package child

import "syscall"

func attributes(apart bool) *syscall.SysProcAttr {
	if !apart {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
