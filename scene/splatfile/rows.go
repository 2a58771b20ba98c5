package splatfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"vksplat/scene"
)

// rowSource is a model in a file of equally long rows: it is read in any order, and nothing but rows that are wanted is in memory.
type rowSource struct {
	info Info
	op   string // for errors: "read splat"
	file *os.File
	// load reads splats first to first+n of the file into those of into from at on. room is the caller's, to be used again.
	load func(first, n int, into *scene.Splats, at int, room *[]byte) error
}

func (r *rowSource) Info() Info   { return r.info }
func (r *rowSource) Close() error { return r.file.Close() }

func (r *rowSource) Read(put func(piece *scene.Splats) error) error {
	splats, room := scene.NewSplats(min(r.info.N, PieceSplats), r.info.Degree), []byte(nil)
	for lo := 0; lo < r.info.N; lo += PieceSplats {
		n := min(PieceSplats, r.info.N-lo)
		if err := r.load(lo, n, splats, 0, &room); err != nil {
			return fileError(r.op, r.file.Name(), err, "")
		}
		if err := put(splats.Slice(0, n)); err != nil {
			return err
		}
	}
	return nil
}

func (r *rowSource) Gather(ids []uint32, into *scene.Splats) error {
	room := []byte(nil)
	for i := 0; i < len(ids); {
		n := 1
		for i+n < len(ids) && n < PieceSplats && ids[i+n] == ids[i]+uint32(n) {
			n++
		}
		if int64(ids[i])+int64(n) > int64(r.info.N) {
			return fmt.Errorf("splatfile: gather splats: splat %d of %d", int(ids[i])+n-1, r.info.N)
		}
		if err := r.load(int(ids[i]), n, into, i, &room); err != nil {
			return fileError(r.op, r.file.Name(), err, "")
		}
		i += n
	}
	return nil
}

// readRows reads n rows of a length in bytes from row first on, of those that begin at a place in a file, into room, which grows to what it takes.
func readRows(f io.ReaderAt, start int64, row, first, n int, room *[]byte) ([]byte, error) {
	if cap(*room) < row*n {
		*room = make([]byte, row*n)
	}
	b := (*room)[:row*n]
	if got, err := f.ReadAt(b, start+int64(row)*int64(first)); got < len(b) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// openRows opens a file that rows are read from.
func openRows(op, path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("this is no file")
	}
	if err != nil {
		return nil, 0, fileError(op, path, err, "")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fileError(op, path, err, "")
	}
	return f, info.Size(), nil
}

// fileError turns an error into one of kind ErrData that names the file, nil into nil.
func fileError(op, path string, err error, hint string) error {
	if err == nil {
		return nil
	}
	out := &scene.Error{Op: op, Path: path, Err: err, Hint: hint}
	var at *os.PathError
	if errors.As(err, &at) {
		out.Err = at.Err // the path is named already
	}
	switch {
	case hint != "":
	case errors.Is(err, os.ErrNotExist):
		out.Hint = "check the spelling of the path"
	case errors.Is(err, os.ErrPermission):
		out.Hint, out.Kind = "make the file readable for this user", scene.ErrTryAgain
	default:
		out.Hint = "the file may be cut short or of another format: copy or export it again"
	}
	return out
}
