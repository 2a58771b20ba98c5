package splatfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// tempFile holds what memory does not. Its errors name its folder and what to do.
type tempFile struct {
	file *os.File
	dir  string
}

// createTemp makes a file in dir, where there must be room for need bytes.
func createTemp(dir string, need int64) (*tempFile, error) {
	t := &tempFile{dir: dir}
	if free, known := atomicfile.FreeSpace(dir); known && free < need {
		return nil, t.fail(fmt.Errorf("%w: %d MB are needed, %d are free", syscall.ENOSPC, need/1e6, max(free, 0)/1e6))
	}
	file, err := os.CreateTemp(dir, ".splats.tmp*")
	if err != nil {
		return nil, t.fail(err)
	}
	t.file = file
	// Where the system lets an open file lose its name, nothing is left behind by a killed process. Elsewhere close
	// removes it.
	_ = os.Remove(file.Name())
	return t, nil
}

func (t *tempFile) fail(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &fault.Error{Op: "keep splats in a temporary file", Path: t.dir, Err: withoutPath(err),
		Kind: fault.ErrTryAgain,
		Hint: "make room there, or name another folder for temporary files"}
}

func (t *tempFile) Write(b []byte) (int, error) {
	n, err := t.file.Write(b)
	return n, t.fail(err)
}

func (t *tempFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := t.file.WriteAt(b, at)
	return n, t.fail(err)
}

func (t *tempFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := t.file.ReadAt(b, at)
	return n, t.fail(err)
}

// close gives the file's bytes back.
func (t *tempFile) close() error {
	err := t.file.Close()
	if gone := os.Remove(t.file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
