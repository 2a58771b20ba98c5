// Package pointcloud reads files of points: PLY of any layout, and LAS as laser scanners and photogrammetry write it.
package pointcloud

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Read reads the points of a file, whose first bytes tell the format. Points without colour are grey. Errors are of
// kind fault.ErrData.
func Read(path string) (points []scene.Point, err error) {
	is, err := withLAS(path, func(r io.Reader, size int64) error {
		points, err = readLAS(r, size)
		return err
	})
	if !is {
		return ply.ReadPoints(path)
	}
	return points, err
}

// CountLAS reports whether a file is LAS, and then how many points it has, by its header.
func CountLAS(path string) (n int, is bool, err error) {
	is, err = withLAS(path, func(r io.Reader, size int64) error {
		h, err := readLASHeader(r, size)
		if err == nil {
			n = int(h.count)
		}
		return err
	})
	return n, is, err
}

// withLAS calls read with a file and its size if it is LAS, as its first bytes or its name say.
func withLAS(path string, read func(r io.Reader, size int64) error) (is bool, err error) {
	ext := filepath.Ext(path)
	named := strings.EqualFold(ext, ".las") || strings.EqualFold(ext, ".laz")
	f, err := os.Open(path)
	if err != nil {
		return named, lasError(path, "check the spelling of the path", err)
	}
	defer f.Close()
	info, err := f.Stat()
	b := bufio.NewReaderSize(f, 1<<20)
	if magic, short := b.Peek(len(lasMagic)); err != nil || short != nil || string(magic) != lasMagic {
		return named, lasError(path, "name a LAS or a PLY file", errNotLAS)
	}
	if err = read(b, info.Size()); err == nil {
		return true, nil
	}
	if errors.Is(err, errCompressed) {
		return true, lasError(path, "unpack it, as with pdal translate IN.laz OUT.las", err)
	}
	return true, lasError(path, "write it again, as with pdal translate IN.las OUT.las", err)
}

func lasError(path, hint string, err error) error {
	return &fault.Error{Op: "read las", Path: path, Kind: fault.ErrData, Hint: hint, Err: fault.TrimPath(err)}
}
