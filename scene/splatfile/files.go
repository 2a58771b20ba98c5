package splatfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"vksplat/internal/fault"
	"vksplat/internal/filekind"
	"vksplat/scene/ply"
)

// openWith opens a file as a model, which closes it.
func openWith(op, path string, open func(path string, r io.ReaderAt, size int64, closer io.Closer) (Source,
	error)) (Source, error) {
	file, size, err := fault.Open(path)
	if err != nil {
		return nil, readError(op, path, err, "")
	}
	source, err := open(path, file, size, file)
	if err != nil {
		_ = file.Close() // the first error is the one to report
		return nil, readError(op, path, err, "")
	}
	return source, nil
}

// readError names the file that was to be read in an error, and says what to do about it: hint, unless the error itself
// tells. Nil stays nil.
func readError(op, path string, err error, hint string) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		if known.Op != "" {
			known.Path = cmp.Or(known.Path, path)
			return known
		}
		hint = cmp.Or(known.Hint, hint) // of an error that only tells what to do
	}
	out := &fault.Error{Op: op, Path: path, Err: withoutPath(err), Hint: hint}
	switch {
	case errors.Is(err, fault.ErrNotRegular):
		out.Hint = "name a file on a disk"
	case errors.Is(err, fs.ErrPermission):
		out.Hint, out.Kind = "make the file readable for this user", fault.ErrTryAgain
	case hint != "":
	case errors.Is(err, fs.ErrNotExist):
		out.Hint = "check the spelling of the path"
	default:
		out.Hint = "the file may be cut short, damaged or of another format: copy or export it again"
	}
	return out
}

// withoutPath drops the path from an error of the operating system: fault.Error names it.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// otherKind adds to the error of a file that begins with head what the file is instead, where that is known.
func otherKind(err error, head []byte) error {
	if kind, hint := filekind.Of("", head); kind != "" {
		return &fault.Error{Err: fmt.Errorf("%w: it is %s", err, kind), Hint: hint}
	}
	return err
}

// surplusNotes adds what ply.Surplus says of the end of a file to notes.
func surplusNotes(notes []string, bytes, n, row int64) ([]string, error) {
	note, err := ply.Surplus("byte", bytes, n, row)
	if note != "" {
		notes = append(notes, note)
	}
	return notes, err
}

// readRows reads n rows of a length in bytes from row first on, of those that begin at a place in a file, into room,
// which grows to what it takes.
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
