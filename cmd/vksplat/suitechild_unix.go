//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopChild asks a process of this program to save and stop.
func stopChild(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
