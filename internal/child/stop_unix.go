//go:build unix

package child

import (
	"os"
	"syscall"
)

// stop asks a process of this program to save and stop.
func stop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
