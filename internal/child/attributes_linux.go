package child

import "syscall"

// deathSignal is sent by the kernel to a child when this process is killed. It also ends one that is stopped or
// hangs in a driver, which does not see the end of its pipe.
var deathSignal = syscall.SIGKILL

func attributes(apart bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: deathSignal, Setpgid: apart}
}
