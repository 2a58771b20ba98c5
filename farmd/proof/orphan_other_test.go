//go:build !linux

package proof

import "syscall"

// endsWithTest does nothing: only Linux can.
func endsWithTest(attr *syscall.SysProcAttr, _ syscall.Signal) *syscall.SysProcAttr { return attr }
