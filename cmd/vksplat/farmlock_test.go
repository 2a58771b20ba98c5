//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vksplat/farm/task"
)

// TestQueueNeedsLocks refuses to keep a queue where files cannot be locked, and says where it could be.
func TestQueueNeedsLocks(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Chdir(dir)
	job := filepath.Join(dir, "job.toml")
	if err := os.WriteFile(job, []byte("version = 1\nname = \"j\"\n[[task]]\nkind = \"demo\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	defer func(before func(string) error) { locks = before }(locks)
	locks = func(path string) error { return &os.PathError{Op: "lock", Path: path, Err: syscall.ENOLCK} }
	for _, args := range [][]string{{"farm", "serve", "--dir", filepath.Join(dir, "queue"), "--listen", "127.0.0.1:0"}, {"farm", "submit", job, "--local"}} {
		var errs bytes.Buffer
		if code := run(args, &bytes.Buffer{}, &errs); code != task.ExitSetup || !strings.Contains(errs.String(), "has no locks") || !strings.Contains(errs.String(), "hint: keep the queue on a local disk") {
			t.Errorf("%q: exit code %d, %s", args, code, &errs)
		}
	}
}

// TestServeStopsWaiting tells a server that waits for its folder to stop: it does so at once.
func TestServeStopsWaiting(t *testing.T) {
	dir := t.TempDir()
	release, err := claimFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	cmd := exec.Command("vksplat", "farm", "serve", "--dir", dir, "--listen", "127.0.0.1:0")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(said); lines.Scan() && !strings.Contains(lines.Text(), "waiting"); {
	}
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(said)
	if err, took := cmd.Wait(), time.Since(began); err != nil || took > lockPatience/2 {
		t.Errorf("%v after %v: %s", err, took, rest)
	}
}
