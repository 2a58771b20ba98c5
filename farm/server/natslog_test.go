package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNatsLog lets the NATS server talk: people hear of its own errors once, the file has all, and is not without bound.
func TestNatsLog(t *testing.T) {
	dir := t.TempDir()
	var heard bytes.Buffer
	l, err := openNatsLog(dir, slog.New(slog.NewTextHandler(&heard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.Warnf("state is outdated")
	l.Errorf("127.0.0.1:1 - cid:28 - authentication error")
	if heard.Len() > 0 {
		t.Errorf("people hear %s", heard.String())
	}
	l.Errorf("no room on %s", "disk")
	l.Errorf("still no room")
	if text := heard.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "no room on disk") {
		t.Errorf("people hear %s", text)
	}
	file := filepath.Join(dir, natsLogFile)
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%s, %v", text, err)
	}
	long := strings.Repeat("x", maxNatsLog/4)
	for range 6 {
		l.Noticef("%s", long)
	}
	for _, name := range []string{file, file + ".1"} {
		if info, err := os.Stat(name); err != nil || info.Size() > maxNatsLog+maxNatsLog/2 || info.Mode().Perm() != 0o600 {
			t.Error(name, info, err)
		}
	}
}
