package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// badSPZs are damaged or hostile files and what the error must say.
func badSPZs(t testing.TB) map[string][]byte {
	body := make([]byte, 20)
	v4 := func(change func(b []byte) []byte) []byte {
		path := filepath.Join(t.TempDir(), "a.spz")
		must.Get(spz.Write(path, Memory(madeModel(50, 1, "edges"), ply.Meta{}),
			WriteOptions{Version: 4}))(t)
		b := must.Get(os.ReadFile(path))(t)
		return change(b)
	}
	table := func(at int, value uint64) []byte {
		return v4(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[32+at:], value); return b })
	}
	return map[string][]byte{
		"not an SPZ":          []byte("ply\nformat"),
		"not an SPZ file":     {},
		"its version is 9":    spzFile(9, 1, 0, 12, 0, body),
		"its version is 0":    spzFile(0, 1, 0, 12, 0, body),
		"degree 5":            spzFile(3, 1, 5, 12, 0, body),
		"25 fractional":       spzFile(3, 1, 0, 25, 0, body),
		"claims 2000000000":   gzipped(t, spzFile(3, 2000000000, 3, 12, 0, body)),
		"claims 4294967295":   spzFile(3, math.MaxUint32, 3, 12, 0, body),
		"before its 1 splats": spzFile(3, 1, 0, 12, 0, body[:19]),
		"before its 2 splats": gzipped(t, spzFile(3, 2, 0, 12, 0, body)),
		"before its 1000000":  gzipped(t, spzFile(3, 1000000, 3, 12, 0, body)),
		"checksum": func() []byte {
			b := gzipped(t,
				spzFile(3, 1, 0, 12, 0, body))
			b[len(b)-5] ^= 1
			return b
		}(),
		"has data after": gzipped(t, spzFile(3, 1, 0, 12, 0, body, make([]byte, 1<<20))),
		"axes are of kind 17": spzFile(3, 1, 0, 12, 2, body,
			[]byte{3, 0, 0xbe, 0xad, 4, 0, 0, 0, 17, 0, 0, 0}),
		"extension 0x1": spzFile(3, 1, 0, 12, 2, body,
			[]byte{1, 0, 0, 0, 255, 255, 255, 255, 8, 0, 0, 0}),
		"extensions":                               spzFile(3, 1, 0, 12, 2, body, []byte{1, 0, 0}),
		"table at byte 16":                         v4(func(b []byte) []byte { b[16] = 16; return b }),
		"table ends":                               v4(func(b []byte) []byte { return b[:60] }),
		"table has 4 streams":                      v4(func(b []byte) []byte { b[15] = 4; return b }),
		"table has 7 streams":                      v4(func(b []byte) []byte { b[15] = 7; return b }),
		"positions: the table":                     table(8, 1<<62),
		"alphas: the table":                        table(24, 1<<62),
		"positions: the file ends early":           table(0, 1<<62),
		"spherical harmonics: the file ends early": v4(func(b []byte) []byte { return b[:len(b)-1] }),
		"the last of its 50 splats":                v4(func(b []byte) []byte { return append(b, 0) }),
		"the last of its 3 splats":                 gzipped(t, spzFile(3, 3, 0, 12, 0, make([]byte, 4*20))),
		"the last of its 4 splats":                 spzFile(2, 4, 1, 12, 0, make([]byte, 4*28+1)),
		"positions: ":                              v4(func(b []byte) []byte { b[32+6*16] ^= 1; return b }),
	}
}

func TestSPZReadRefuses(t *testing.T) {
	refusesAll(t, "a.spz", badSPZs(t), openBytes, 64<<20)
	missing := filepath.Join(t.TempDir(), "none.spz")
	if _, err := spz.Open(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) ||
		fault.Hint(err) == "" {
		t.Errorf("missing file: %v", err)
	}
	if _, err := spz.Open(t.TempDir()); !errors.Is(err, fault.ErrData) {
		t.Errorf("folder: %v", err)
	}
}

func FuzzSPZ(f *testing.F) {
	for _, data := range badSPZs(f) {
		f.Add(data)
	}
	for _, version := range []int{3, 4} {
		path := filepath.Join(f.TempDir(), "a.spz")
		must.Get(spz.Write(path, Memory(madeModel(3, 1, "edges"), ply.Meta{}),
			WriteOptions{Version: version}))(f)
		data := must.Get(os.ReadFile(path))(f)
		f.Add(data)
	}
	f.Add(spzFile(1, 1, 0, 12, 0, make([]byte, 16)))
	f.Fuzz(func(t *testing.T, data []byte) {
		spz.Detect(data[:min(len(data), headBytes)])
		m, err := openBytes(data)
		if err == nil {
			n := 0
			err = m.Read(func(piece *scene.Splats) error {
				n += piece.N
				if m.head.version > 1 {
					return piece.Validate()
				}
				return nil
			})
			if err == nil && n != m.Info().N {
				t.Errorf("%d splats of %d", n, m.Info().N)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		if err != nil && !errors.Is(err, fault.ErrData) {
			t.Errorf("error of no kind: %v", err)
		}
	})
}

// countedReader counts the bytes that are read.
type countedReader struct {
	io.ReaderAt
	read atomic.Int64
}

func (c *countedReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.read.Add(int64(n))
	return n, err
}

// A file of a few hundred kilobytes may hold millions of splats that are all the same. Its header is read without them,
// and they take neither memory nor disk.
func TestSPZUnpacksNothing(t *testing.T) {
	const n = 3_000_000
	t.Setenv("TMPDIR", t.TempDir())
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	must.Get(z.Write(spzFile(3, n, 3, 12, 0)))(t)
	for zeros, left := make([]byte, 65*1000), n/1000; left > 0; left-- {
		must.Get(z.Write(zeros))(t)
	}
	must.Do(t, z.Close())
	allocated := filetest.Allocated()
	file := &countedReader{ReaderAt: bytes.NewReader(packed.Bytes())}
	m, err := newSPZSource("a.spz", file, int64(packed.Len()), io.NopCloser(nil))
	if err != nil || m.Info().N != n || !m.Info().Packed {
		t.Fatalf("%+v, %v", m, err)
	}
	if read := file.read.Load(); read > 1<<16 {
		t.Errorf("%d bytes of %d were read for the header", read, packed.Len())
	}
	seen := 0
	err = m.Read(func(piece *scene.Splats) error {
		seen += piece.N
		return nil
	})
	if used := allocated(); err != nil || seen != n || used > 16<<20 {
		t.Errorf("%d splats of %d with %d bytes of memory, %v", seen, n, used, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// What does not fit the disk is not begun.
func TestTemporaryFileFits(t *testing.T) {
	dir := t.TempDir()
	if _, known := atomicfile.FreeSpace(dir); !known {
		t.Skip("this system does not tell how much is free")
	}
	_, err := createTemp(dir, 1<<60)
	if !errors.Is(err, fault.ErrTryAgain) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) ||
		fault.Hint(err) == "" {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, _, err := gatherable(claimed{Memory(madeModel(1, 3, "edges"), ply.Meta{})}, dir); err != nil {
		t.Errorf("a model that can be read in any order: %v", err)
	}
	if _, _, err := gatherable(endless{}, dir); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a copy of 10^17 bytes: %v", err)
	}
}

// endless is a model that fits no disk. Nothing of it can be read.
type endless struct{ Source }

func (endless) Info() Info { return Info{N: 1 << 50, Degree: 3} }
