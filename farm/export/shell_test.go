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
)

// tries runs the script that repeats a task with a bash command, which finds its number in $n, and returns the last
// exit code and how often the command ran.
func tries(t *testing.T, command string, attempts string) (code, ran int) {
	t.Helper()
	cmd := tryCommand(t, `n=$(($(wc -l <ran) + 1)); echo >>ran; `+command, attempts)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "ran"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, said)
	}
	lines, err := os.ReadFile(filepath.Join(cmd.Dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.Count(string(lines), "\n")
}

func tryCommand(t *testing.T, command, attempts string) *exec.Cmd {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "try.sh"), []byte(tryText), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "try.sh", attempts, "0", "0", "bash", "-c", command)
	cmd.Dir = dir
	return cmd
}

// TestTry checks which exit codes are tried again, and how often.
func TestTry(t *testing.T) {
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
		if code, ran := tries(t, c.command, c.attempts); code != c.code || ran != c.ran {
			t.Errorf("%s with %s attempts: code %d after %d, want %d after %d", c.command, c.attempts, code, ran,
				c.code, c.ran)
		}
	}
}

// TestTryStopped sends SIGTERM to the script: the command gets it, has its time, and is not tried again.
func TestTryStopped(t *testing.T) {
	cmd := tryCommand(t, `trap 'echo saved; exit 75' TERM; echo ready; while :; do sleep 0.05; done`, "3")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		if said = append(said, lines.Text()); len(said) == 1 {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 75 || strings.Join(said, " ") != "ready saved" {
		t.Errorf("code %d after %q", code, said)
	}
}
