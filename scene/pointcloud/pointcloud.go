// Package pointcloud reads files of points: PLY of any layout, and LAS as laser scanners and photogrammetry write it.
package pointcloud

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/filekind"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Read reads the points of a file, whose first bytes tell the format. Points without colour are grey. Those that are
// not finite are left out: notes say so, and what else is wrong with the file, a clause each. Errors are of kind
// fault.ErrData.
func Read(path string) (points []scene.Point, notes []string, err error) {
	var note string
	is, err := withLAS(path, func(r io.Reader, size int64) error {
		points, note, err = readLAS(r, size)
		return err
	})
	if !is {
		points, note, err = ply.ReadPoints(path)
	}
	if note != "" {
		notes = append(notes, note)
	}
	n := len(points)
	points = slices.DeleteFunc(points, func(p scene.Point) bool {
		return !scene.Finite64(p.Pos[0]) || !scene.Finite64(p.Pos[1]) || !scene.Finite64(p.Pos[2])
	})
	if bad := n - len(points); bad > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d points are left out: their coordinates are not finite", bad, n))
	}
	return points, notes, err
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
	if head, _ := b.Peek(512); err != nil || !bytes.HasPrefix(head, []byte(lasMagic)) {
		hint, cause := "name a LAS or a PLY file", errNotLAS
		if kind, remedy := filekind.Of(path, head); kind != "" {
			hint, cause = cmp.Or(remedy, hint), fmt.Errorf("%w: it is %s", errNotLAS, kind)
		}
		return named, lasError(path, hint, cause)
	}
	if err = read(b, info.Size()); err == nil {
		return true, nil
	}
	if errors.Is(err, errCompressed) {
		return true, lasError(path, "unpack it, as with pdal translate IN.laz OUT.las", err)
	}
	hint := cmp.Or(fault.OwnHint(err), "write it again, as with pdal translate IN.las OUT.las")
	return true, lasError(path, hint, err)
}

func lasError(path, hint string, err error) error {
	return &fault.Error{Op: "read las", Path: path, Kind: fault.ErrData, Hint: hint, Err: fault.TrimPath(err)}
}
