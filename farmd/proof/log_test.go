package proof

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a farm has accepted is not taken back without a word: a stopped server leaves no log, a killed one's is read
// where it is whole and refused where it is not, and one without its file is not the next file's.
func TestLog(t *testing.T) {
	roots, file := newStore(t)
	s := serve(t, "--roots", file)
	c := s.client(s.join("--role", "submit", "--name", "anna"))
	mustSubmit(t, c, roots, "anna", demos("one", 2))
	s.stop()
	queue := filepath.Join(s.data, "queue.db")
	for _, end := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(queue + end); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after a stop %s is there: %v", end, err)
		}
	}
	s.start()
	mustSubmit(t, c, roots, "anna", demos("two", 2))
	s.kill()
	log, err := os.ReadFile(queue + "-wal")
	if err != nil || len(log) < 10*4096 {
		t.Fatalf("after a kill the log has %d bytes, %v", len(log), err)
	}
	log[32+24+1000] ^= 4
	if err := os.WriteFile(queue+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.tryStart(); err == nil || s.cmd.ProcessState.ExitCode() != 75 ||
		!strings.Contains(err.Error(), "damaged at frame 1") || !strings.Contains(err.Error(), "queue.db-shm away") {
		t.Errorf("a damaged log: %v", err)
	}
	if out, err := s.command("backup", filepath.Join(t.TempDir(), "b.tar")); err == nil ||
		!strings.Contains(out, "damaged at frame 1") {
		t.Errorf("a backup of a damaged log: %v\n%s", err, out)
	}
	if now, err := os.ReadFile(queue + "-wal"); err != nil || string(now) != string(log) {
		t.Errorf("the log was changed: %d bytes of %d, %v", len(now), len(log), err)
	}
	log[32+24+1000] ^= 4
	if err := os.WriteFile(queue+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	if jobs := s.jobs(c); len(jobs) != 2 {
		t.Errorf("jobs %v", jobs)
	}
	s.kill()
	if err := os.Remove(queue); err != nil { // its log stays
		t.Fatal(err)
	}
	s.start()
	mustSubmit(t, c, roots, "anna", demos("three", 2))
	if text, _ := s.said.all(); !strings.Contains(text, "is kept as") || strings.Contains(text, "malformed") {
		t.Errorf("the server said:\n%s", text)
	}
	s.stop()
	s.start()
	if jobs := s.jobs(c); len(jobs) != 1 {
		t.Errorf("jobs %v", jobs)
	}
	if out, err := s.command("backup", filepath.Join(t.TempDir(), "b.tar")); err != nil {
		t.Errorf("backup: %v\n%s", err, out)
	}
}
