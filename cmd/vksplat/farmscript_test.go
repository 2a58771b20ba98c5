//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdStopped is "stopped CODE SIGNAL TEXT COMMAND...": starts the command, sends it SIGNAL (TERM or INT) once its
// output matches TEXT, and wants that exit code. The output goes to the files stdout.txt and stderr.txt.
func cmdStopped(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	stdout, err := os.Create(ts.MkAbs("stdout.txt"))
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs("stderr.txt"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ts.Check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	text, sent := regexp.MustCompile("(?m)"+args[2]), false
	for {
		select {
		case <-done:
			ts.Check(errors.Join(stdout.Close(), stderr.Close()))
			if got := cmd.ProcessState.ExitCode(); !sent || got != number(ts, args[0]) {
				ts.Fatalf("exit code %d, the signal was sent: %v, want %s\n%s%s", got, sent, args[0],
					ts.ReadFile("stdout.txt"), ts.ReadFile("stderr.txt"))
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
		if !sent && text.MatchString(ts.ReadFile("stdout.txt")) {
			ts.Check(cmd.Process.Signal(signals[args[1]]))
			sent = true
		}
	}
}
