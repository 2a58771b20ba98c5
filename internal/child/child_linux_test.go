package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// partVariable makes this test program a parent or a child.
const partVariable = "CHILD_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(partVariable) {
	case "parent": // as on systems whose kernels do not end children with their parents
		deathSignal = 0
		os.Setenv(partVariable, "child")
		err := Run(context.Background(), os.Args[0], nil,
			Options{Stdout: os.Stdout, Stderr: os.Stderr, Apart: true})
		fmt.Println("the child ended:", err)
	case "child":
		Begin()
		fmt.Println(os.Getpid(), os.Getenv(parentVariable) == "")
		select {}
	default:
		os.Exit(m.Run())
	}
}

// lives says whether a process is there, and no corpse that waits for its parent.
func lives(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// TestOrphan kills a parent: its child ends, by the pipe alone.
func TestOrphan(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), partVariable+"=parent")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, cmd.Start())
	line := make([]byte, 100)
	n := must.Get(out.Read(line))(t)
	word, inherits, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " ")
	pid, err := strconv.Atoi(word)
	if err != nil || inherits != "true" {
		t.Fatalf("the child says %q", line[:n])
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // where it failed
	time.Sleep(100 * time.Millisecond)
	if !lives(pid) {
		t.Fatal("the child ended before its parent")
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for began := time.Now(); lives(pid); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the child outlives its parent")
		}
	}
}

// TestRun has children end by themselves, by a request and not at all for want of a program, and leaves no pipe open.
func TestRun(t *testing.T) {
	open := func() int {
		entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	run := func(ctx context.Context, program string, args ...string) error {
		return Run(ctx, program, args, Options{Grace: 5 * time.Second, OnEvent: func(*Event) {}})
	}
	_ = run(t.Context(), "/bin/true") // what the first one opens for good
	before := open()
	if err := run(t.Context(), "/bin/true"); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), "/bin/none"); err == nil {
		t.Error("a program that is not there runs")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx, "/bin/sleep", "100"); err == nil {
		t.Errorf("a child that was asked to stop: %v", err)
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}
