package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"", "one", strings.Repeat("two", atomicfile.WriteBuffer)} {
		must.Do(t, atomicfile.WriteText(path, text))
		filetest.Only(t, dir, "f", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestNoRename writes where a folder has the name: the error says nothing of the temporary file.
func TestNoRename(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(dir, "f", "g"), 0o777))
	err := atomicfile.WriteText(filepath.Join(dir, "f"), "text")
	if err == nil || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("a folder in the place of a file: %v", err)
	}
}

// TestTempOf wants the name of a temporary file to tell the file's.
func TestTempOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f.png", strings.Repeat("n", fault.MaxTempBase+9)} {
		err := atomicfile.Write(filepath.Join(dir, name), func(io.Writer) error {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if base, cut := fault.TempOf(e.Name()); base != name[:min(len(name), fault.MaxTempBase)] ||
					cut != (len(base) < len(name)) {
					t.Errorf("%s is of %q, %v", e.Name(), base, cut)
				}
			}
			return os.ErrClosed // nothing stays
		})
		if !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"f.png", ".f.png", ".f.png.tmp", ".f.png.tmp1x", "f.png.tmp1", "..tmp1"} {
		if base, _ := fault.TempOf(name); base != "" {
			t.Errorf("%s is taken for a temporary file of %s", name, base)
		}
	}
}

func TestWriteFileKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must.Do(t, os.WriteFile(path, []byte("old"), 0o644))
	cause := errors.New("cause")
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 3*atomicfile.WriteBuffer))
		return cause
	})
	if !errors.Is(err, cause) || errors.Is(err, fault.ErrTryAgain) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	filetest.Only(t, dir, "f", "old")
}

func TestWriteFileRefused(t *testing.T) {
	nothing := func(io.Writer) error { return nil }
	path := filepath.Join(t.TempDir(), "none", "f")
	if err := atomicfile.Write(path, nothing); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, fault.ErrTryAgain) ||
		!strings.Contains(fault.Hint(err), "create the folder") {
		t.Errorf("missing folder: %v, hint %q", err, fault.Hint(err))
	}
	// Root may write anywhere; the kernel's own folders refuse even root.
	if err := atomicfile.Write("/proc/f", nothing); err == nil || !errors.Is(err, fault.ErrTryAgain) ||
		fault.Hint(err) == "" {
		t.Errorf("/proc: %v, hint %q", err, fault.Hint(err))
	}
	if hint := atomicfile.WriteHint(fmt.Errorf("x: %w", syscall.EROFS), "d/f"); !strings.Contains(hint,
		"d cannot be written") {
		t.Errorf("read-only hint %q", hint)
	}
	dir := t.TempDir()
	if err := atomicfile.Write(dir, nothing); err == nil {
		t.Error("a folder is replaced by a file")
	}
}
