//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals lists what stops a run, and makes a pipe that nobody reads any more
// an error of writing and no reason to stop the work.
func stopSignals() []os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) { // as nohup does
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}
