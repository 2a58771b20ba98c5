//go:build unix

package output

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestAbort presses Ctrl-C twice in a process of its own: what the second one, half a second later, leaves behind is no
// lock. Where there is little to lose, SIGTERM does the same.
func TestAbort(t *testing.T) {
	const ownProcess, by = "VKSPLAT_TEST_PROCESS", "VKSPLAT_TEST_ABORT_BY"
	if dir := os.Getenv(ownProcess); dir != "" {
		console := cli.New(nil, os.Stdout, os.Stderr)
		release := must.Get(Claim(dir, true))(t)
		console.OnAbort = release
		wait, s := console.Interruptible, syscall.SIGINT
		if os.Getenv(by) == "SIGTERM" {
			wait, s = console.Stoppable, syscall.SIGTERM
		}
		ctx, _ := wait(cli.Always("stopping"))
		interrupt := func() {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Error(err)
			}
		}
		interrupt()
		<-ctx.Done()
		interrupt() // the same wish once more
		time.Sleep(cli.AbortAfter + 50*time.Millisecond)
		if !IsFile(filepath.Join(dir, LockName)) {
			t.Fatal("the lock is gone too early")
		}
		interrupt()
		time.Sleep(time.Minute)
		return
	}
	for _, s := range []string{"SIGINT", "SIGTERM"} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestAbort$")
		cmd.Env = append(os.Environ(), ownProcess+"="+dir, by+"="+s)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != fault.ExitInterrupted || !bytes.Contains(out, []byte("vksplat: aborted")) {
			t.Errorf("%s: %v\n%s", s, err, out)
		}
		if IsFile(filepath.Join(dir, LockName)) {
			t.Errorf("%s: the lock is left behind", s)
		}
	}
}
