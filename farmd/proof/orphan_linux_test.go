package proof

import "syscall"

// endsWithTest has a process end by a signal where the test is killed, which then cleans nothing up.
func endsWithTest(attr *syscall.SysProcAttr, signal syscall.Signal) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = signal
	return attr
}
