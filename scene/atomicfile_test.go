package scene

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// onlyFile checks that dir holds exactly one file, with the given text: no
// temporary file is left.
func onlyFile(t *testing.T, dir, name, text string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("folder holds %v, want only %s", entries, name)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
		t.Errorf("file holds %q, %v, want %q", got, err, text)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"", "one", strings.Repeat("two", writeBuffer)} {
		err := WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		onlyFile(t, dir, "f", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestTempOf wants the name of a temporary file to tell the file's.
func TestTempOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f.png", strings.Repeat("n", maxTempBase+9)} {
		err := WriteFile(filepath.Join(dir, name), func(io.Writer) error {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if base, cut := TempOf(e.Name()); base != name[:min(len(name), maxTempBase)] || cut != (len(base) < len(name)) {
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
		if base, _ := TempOf(name); base != "" {
			t.Errorf("%s is taken for a temporary file of %s", name, base)
		}
	}
}

func TestWriteFileKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("cause")
	err := WriteFile(path, func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 3*writeBuffer))
		return cause
	})
	if !errors.Is(err, cause) || errors.Is(err, ErrTryAgain) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	onlyFile(t, dir, "f", "old")
}

// fullDisk passes what fits and then says what the system says.
type fullDisk struct {
	w    io.Writer
	left int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		n, _ := d.w.Write(p[:d.left])
		d.left = 0
		return n, &os.PathError{Op: "write", Path: "temporary", Err: syscall.ENOSPC}
	}
	d.left -= len(p)
	return d.w.Write(p)
}

func TestWriteFileDiskFull(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := randomSplats(5000, 1)
	for _, room := range []int{0, 100, 5000 * 26 * 4} {
		err := WriteFile(path, func(w io.Writer) error {
			p, err := NewPLYWriter(&fullDisk{w, room}, s.N, s.Degree, PLYMeta{})
			if err != nil {
				return err
			}
			return errors.Join(p.Append(s), p.Close())
		})
		if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrTryAgain) || !strings.Contains(Hint(err), "full") {
			t.Errorf("room for %d bytes: %v, hint %q", room, err, Hint(err))
		}
		onlyFile(t, dir, "f", "old")
	}
}

// A real device that is always full, where the system has one.
func TestPLYWriterDevFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip("no /dev/full here")
	}
	defer f.Close()
	if _, err := NewPLYWriter(f, 1, 0, PLYMeta{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
}

func TestWriteFileRefused(t *testing.T) {
	nothing := func(io.Writer) error { return nil }
	path := filepath.Join(t.TempDir(), "none", "f")
	if err := WriteFile(path, nothing); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, ErrTryAgain) || !strings.Contains(Hint(err), "create the folder") {
		t.Errorf("missing folder: %v, hint %q", err, Hint(err))
	}
	// Root may write anywhere; the kernel's own folders refuse even root.
	if err := WriteFile("/proc/f", nothing); err == nil || !errors.Is(err, ErrTryAgain) || Hint(err) == "" {
		t.Errorf("/proc: %v, hint %q", err, Hint(err))
	}
	if hint := writeHint(fmt.Errorf("x: %w", syscall.EROFS), "d/f"); !strings.Contains(hint, "d cannot be written") {
		t.Errorf("read-only hint %q", hint)
	}
	dir := t.TempDir()
	if err := WriteFile(dir, nothing); err == nil {
		t.Error("a folder is replaced by a file")
	}
}

// TestWritePLYPieces writes a model in pieces: the bytes are those of one piece, and a failure on the way keeps the former file.
func TestWritePLYPieces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	s := randomSplats(2500, 2)
	if err := WritePLY(path, s, PLYMeta{Step: 7}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("device lost")
	for _, c := range []struct {
		size, given int
		err         error
		want        string
	}{
		{1, 2500, nil, ""}, {999, 2500, nil, ""}, {2500, 2500, nil, ""}, {100, 1100, broken, "device lost"}, {100, 1100, nil, "2500 splats announced, 1100 given"},
	} {
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := WritePLYPieces(path, s.N, s.Degree, PLYMeta{Step: 7}, func(put func(*Splats) error) error {
			for lo := 0; lo < c.given; lo += c.size {
				if err := put(s.Slice(lo, min(lo+c.size, c.given))); err != nil {
					return err
				}
			}
			return c.err
		})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%+v: got %v", c, err)
			}
			onlyFile(t, dir, "f", "old")
		} else if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != string(whole) {
			t.Errorf("%+v: %v, %v; the bytes differ", c, err, readErr)
		}
	}
}
