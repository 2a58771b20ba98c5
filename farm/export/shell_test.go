//go:build unix

package export

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	must "vksplat/internal/musttest"
)

// retried runs retry.sh of the templates with a bash command, which finds its number in $n, and returns the last
// exit code and how often the command ran.
func retried(t *testing.T, command string, attempts string) (code, ran int) {
	t.Helper()
	cmd := retryCommand(t, `n=$(($(wc -l <ran) + 1)); echo >>ran; `+command, attempts)
	must.Do(t, os.WriteFile(filepath.Join(cmd.Dir, "ran"), nil, 0o666))
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, said)
	}
	lines := must.Get(os.ReadFile(filepath.Join(cmd.Dir, "ran")))(t)
	return cmd.ProcessState.ExitCode(), strings.Count(string(lines), "\n")
}

func retryCommand(t *testing.T, command, attempts string) *exec.Cmd {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	script := must.Get(filepath.Abs("../../examples/farm/retry.sh"))(t)
	cmd := exec.Command(bash, script, attempts, "0", "0", "bash", "-c", command)
	cmd.Dir = dir
	return cmd
}

// TestRetry checks which exit codes are tried again, and how often.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		command, attempts string
		code, ran         int
	}{
		{"exit 0", "3", 0, 1},
		{"exit 65", "3", 65, 1},
		{"exit 2", "3", 2, 1},
		{"exit 78", "3", 78, 1},
		{"exit 130", "1", 130, 1},
		{"exit 75", "3", 75, 3},
		{"exit 75", "1", 75, 1},
		{`[ "$n" -ge 3 ] || exit 75`, "4", 0, 3},
		{`[ "$n" = 2 ] && exit 65; kill -KILL $$`, "4", 65, 2},
		{"kill -KILL $$", "2", 137, 2},
	} {
		if code, ran := retried(t, c.command, c.attempts); code != c.code || ran != c.ran {
			t.Errorf("%s with %s attempts: code %d after %d, want %d after %d", c.command, c.attempts, code, ran,
				c.code, c.ran)
		}
	}
}

// TestRetryStopped sends SIGTERM to the script: the command gets it, has its time, and is not tried again.
func TestRetryStopped(t *testing.T) {
	cmd := retryCommand(t, `trap 'echo saved; exit 75' TERM; echo ready; while :; do sleep 0.05; done`, "3")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		if said = append(said, lines.Text()); len(said) == 1 {
			must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 75 || strings.Join(said, " ") != "ready saved" {
		t.Errorf("code %d after %q", code, said)
	}
}

// TestOneRun wants retry.sh to pass signals on as Slurm's scripts do.
func TestOneRun(t *testing.T) {
	text, err := os.ReadFile("../../examples/farm/retry.sh")
	if err != nil || !strings.Contains(string(text), runText) {
		t.Errorf("its function run is another one: %v", err)
	}
}
