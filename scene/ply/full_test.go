package ply

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

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
	must.Do(t, os.WriteFile(path, []byte("old"), 0o644))
	s := scenetest.RandomSplats(5000, 1)
	for _, room := range []int{0, 100, 5000 * 26 * 4} {
		err := atomicfile.Write(path, func(w io.Writer) error {
			p, err := newWriter(&fullDisk{w, room}, s.N, s.Degree, Meta{})
			if err != nil {
				return err
			}
			return errors.Join(p.Append(s), p.Close())
		})
		if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, fault.ErrTryAgain) ||
			!strings.Contains(fault.Hint(err), "full") {
			t.Errorf("room for %d bytes: %v, hint %q", room, err, fault.Hint(err))
		}
		filetest.Only(t, dir, "f", "old")
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
	if _, err := newWriter(f, 1, 0, Meta{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
}

// TestWritePLYPieces writes a model in pieces: the bytes are those of one piece, and a failure on the way keeps the
// former file.
func TestWritePLYPieces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	s := scenetest.RandomSplats(2500, 2)
	must.Do(t, write(path, s, Meta{Step: 7}))
	whole := must.Get(os.ReadFile(path))(t)
	broken := errors.New("device lost")
	for _, c := range []struct {
		size, given int
		err         error
		want        string
	}{
		{1, 2500, nil, ""}, {999, 2500, nil, ""}, {2500, 2500, nil, ""}, {100, 1100, broken, "device lost"},
		{100, 1100, nil, "2500 splats announced, 1100 given"},
	} {
		must.Do(t, os.WriteFile(path, []byte("old"), 0o644))
		err := WritePieces(path, s.N, s.Degree, Meta{Step: 7}, func(put func(*scene.Splats) error) error {
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
			filetest.Only(t, dir, "f", "old")
		} else if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != string(whole) {
			t.Errorf("%+v: %v, %v; the bytes differ", c, err, readErr)
		}
	}
}
