package main

import "syscall"

// childAttributes make the kernel end a run's process when the suite's is killed: nobody would wait for it, and it would keep the folder and the device.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
