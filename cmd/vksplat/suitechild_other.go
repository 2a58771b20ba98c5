//go:build !linux

package main

import "syscall"

// childAttributes are none: the kernel cannot be told to end a run's process when the suite's is killed.
func childAttributes() *syscall.SysProcAttr { return nil }
