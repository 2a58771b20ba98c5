// Package pointcloud reads files of points: PLY of any layout, and LAS as laser scanners and photogrammetry write it.
package pointcloud

import (
	"bufio"
	"errors"
	"io"
	"os"

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

// withLAS calls read with a file and its size if it begins as LAS files do.
func withLAS(path string, read func(r io.Reader, size int64) error) (is bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	info, err := f.Stat()
	b := bufio.NewReaderSize(f, 1<<20)
	if magic, short := b.Peek(len(lasMagic)); err != nil || short != nil || string(magic) != lasMagic {
		return false, nil
	}
	if err = read(b, info.Size()); err == nil {
		return true, nil
	}
	hint := "write it again, as with pdal translate IN.las OUT.las"
	if errors.Is(err, errCompressed) {
		hint = "unpack it, as with pdal translate IN.laz OUT.las"
	}
	return true, &fault.Error{Op: "read las", Path: path, Kind: fault.ErrData, Hint: hint, Err: fault.TrimPath(err)}
}
