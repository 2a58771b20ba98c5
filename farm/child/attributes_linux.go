package child

import "syscall"

// attributes make the kernel end a child when this process is killed: nobody would wait for it, and it would keep its folder and the device.
func attributes(apart bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: apart}
}
