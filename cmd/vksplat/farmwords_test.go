package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/scene"
)

const wordsJob = "version = 1\nname = \"garden\"\n[[task]]\nkind = \"demo\"\nid = \"d\"\n"

// TestFarmSaysWhatToDo names what is not there to every command of a farm: each says so on standard error, with what was meant, and prints nothing else.
func TestFarmSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
	s, err := server.Start(t.Context(), server.Options{Dir: filepath.Join(dir, "serve"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Setenv(tokenVariable, s.AdminToken())
	file, roots := filepath.Join(dir, "job.toml"), "--root=outputs="+dir
	if err := os.WriteFile(file, []byte(wordsJob), 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := s.Queue().Join(t.Context(), queue.WorkerInfo{Node: "gpu1", Pools: []string{"other"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Leave()
	says := func(code int, want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		got := run(append([]string{"farm"}, args...), &stdout, &stderr)
		if got != code || !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "scene: ") {
			t.Errorf("%q: exit %d, want %d, and %q in %s", args, got, code, want, stderr.String())
		}
		if code != exitOK && stdout.Len() > 0 {
			t.Errorf("%q prints %s", args, stdout.String())
		}
	}
	says(exitOK, "", "submit", file)
	for _, args := range [][]string{{"cancel"}, {"retry"}, {"pause"}, {"resume"}, {"delete", roots}, {"show"}, {"show", "--json"}, {"wait"}, {"wait", "--json"}, {"logs"}, {"logs", "--json"},
		{"artifacts", "ls", roots}, {"artifacts", "ls", "--json", roots}, {"artifacts", "get", roots}} {
		says(exitUsage, "did you mean garden?", append(slices.Clone(args), "gardne")...)
		says(exitUsage, "farm ls lists the jobs", append(slices.Clone(args), "nothing like it")...)
	}
	says(exitUsage, "did you mean gpu1?", "drain", "gpu2")
	says(exitUsage, "did you mean gpu1?", "drain", "gpu2", "--undo")
	says(exitOK, "", "drain", "gpu1")
	says(exitOK, "", "drain", "gpu1", "--undo")
	says(exitFailure, "job garden has none that match", "artifacts", "ls", "garden", "*.ply", "--json", roots)
	says(exitOK, "", "artifacts", "ls", "garden", roots)
	spaced := filepath.Join(dir, "spaced.toml")
	if err := os.WriteFile(spaced, []byte(strings.Replace(wordsJob, "garden", "two gardens", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	says(exitOK, "", "submit", spaced)
	says(exitUsage, "did you mean "+quoted("two gardens")+"?", "show", "two-gardens") // in quotes, as a shell needs it
	says(exitUsage, "cancel it first", "delete", "garden", roots)
	says(exitOK, "", "cancel", "garden")
	says(exitOK, "", "delete", "garden", roots) // which waits until the job has ended
	s.Close()
	for _, args := range [][]string{{"ls", "--json"}, {"nodes", "--json"}, {"limits", "--json"}, {"fsck", "--json", roots}, {"submit", "--json", file}, {"gc", roots}, {"page", "--no-open"}} {
		says(exitRetry, "the farm's server cannot be reached", args...)
	}
}

// TestLogsReadAsErrors prints causes in logs as commands print errors: in one line, each once, without the names of packages.
func TestLogsReadAsErrors(t *testing.T) {
	var stderr bytes.Buffer
	away := &scene.Error{Op: "open store", Err: errors.New("away")}
	newApp(nil, &stderr, &stderr).logger(slog.LevelWarn).Warn("heartbeat failed", "node", "gpu1", "cause", errors.Join(fmt.Errorf("end lease: %w", away), away, away))
	if said := stderr.String(); !strings.Contains(said, `node=gpu1 cause="end lease: open store: away; open store: away"`) {
		t.Error(said)
	}
}
