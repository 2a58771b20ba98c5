package main

import (
	"archive/tar"
	"archive/zip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

type writer = io.Writer

// counted counts and hashes what is written.
type counted struct {
	w   io.Writer
	n   int64
	sum hash.Hash
}

func newCounted(w io.Writer) *counted { return &counted{w: w, sum: sha256.New()} }

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.sum.Write(p[:n])
	return n, err
}

func (c *counted) digest() string { return fmt.Sprintf("%x", c.sum.Sum(nil)) }

// write makes a file of the release and prints its size.
func (m *maker) write(name string, write func(w *counted) error) error {
	started := time.Now()
	f, err := os.Create(filepath.Join(m.out, name))
	if err != nil {
		return err
	}
	w := newCounted(f)
	if err := errors.Join(write(w), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Printf("  %-48s %6.1f MB  %4.0f s\n", name, float64(w.n)/1e6, time.Since(started).Seconds())
	return nil
}

// gzipped compresses. The header has no name and no time.
func gzipped(w io.Writer, write func(w writer) error) error {
	z := gzip.NewWriter(w)
	return errors.Join(write(z), z.Close())
}

// writeTar writes files below a folder, and every folder before what is in it. All belong to root.
func writeTar(w io.Writer, files []file, top string, at time.Time) error {
	t := tar.NewWriter(w)
	made := map[string]bool{}
	var folder func(dir string) error
	folder = func(dir string) error {
		if dir == "." && top != "." || made[dir] {
			return nil
		}
		if dir != "." {
			if err := folder(path.Dir(dir)); err != nil {
				return err
			}
		}
		made[dir] = true
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: entry(top, dir) + "/", Mode: 0o755, ModTime: at})
	}
	for _, f := range files {
		name := path.Join(top, f.path)
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: entry(top, name), Mode: int64(f.mode), ModTime: at,
			Size: int64(len(f.data))}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

// entry is how an archive names a path: dpkg's begin with a dot.
func entry(top, name string) string {
	if top != "." || name == "." {
		return name
	}
	return "./" + name
}

// writeZip writes files below a folder.
func writeZip(w io.Writer, files []file, top string, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(top, f.path), Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		dst, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := dst.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeJSON writes v for people to read, too.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeSums writes SHA256SUMS of the files of a folder, as sha256sum -c reads it.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
