package main

import (
	"os"
	"syscall"
)

// stopSignals lists what stops a run: Ctrl-C, Ctrl-Break and, as SIGTERM, a
// console that is closed or a user who logs off.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
