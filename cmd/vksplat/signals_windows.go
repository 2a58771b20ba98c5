package main

import (
	"os"
	"syscall"
)

// stopSignals lists what stops a run: Ctrl-C, Ctrl-Break and, as SIGTERM, a
// console that is closed or a user who logs off.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// stopChild ends a process of this program: there is no way to ask it. One that shares the console has had the Ctrl-C, too, and its checkpoints are whole.
func stopChild(p *os.Process) error { return p.Kill() }
