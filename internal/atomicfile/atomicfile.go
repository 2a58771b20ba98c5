package atomicfile

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// WriteBuffer is the size in bytes of the buffer between encoders and files.
const WriteBuffer = 1 << 20

// Write replaces path by what write produces: a temporary file in the same
// folder, fsync, rename, fsync of the folder. A reader sees the old file or the
// whole new one. When anything fails the old file stays, the temporary one is
// removed, and the error carries a hint where the cause is known. The folder
// must exist.
func Write(path string, write func(w io.Writer) error) error {
	finish, err := Start(path, write)
	if err != nil {
		return err
	}
	return finish()
}

// Start is Write up to where the disk is waited for: finish does the rest, and must be called once.
func Start(path string, write func(w io.Writer) error) (finish func() error, err error) {
	rest, err := startWhole(path, func(f *os.File) error {
		b := bufio.NewWriterSize(f, WriteBuffer)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return nil, WriteError("write", path, err)
	}
	return func() error {
		if err := rest(); err != nil {
			return WriteError("write", path, err)
		}
		return nil
	}, nil
}

// WriteAt is Write for what is not written from beginning to end. Nothing is buffered.
func WriteAt(path string, write func(w io.WriterAt) error) error {
	if err := ReplaceWhole(path, func(f *os.File) error { return write(f) }); err != nil {
		return WriteError("write", path, err)
	}
	return nil
}

// ReplaceWhole is Write for writers that seek.
func ReplaceWhole(path string, write func(f *os.File) error) error {
	finish, err := startWhole(path, write)
	if err != nil {
		return err
	}
	return finish()
}

// startWhole is Start for writers that seek.
func startWhole(path string, write func(f *os.File) error) (finish func() error, err error) {
	dir := filepath.Dir(path)
	base := filepath.Base(path)
	f, err := os.CreateTemp(dir, "."+base[:min(len(base), fault.MaxTempBase)]+".tmp*")
	if err != nil {
		return nil, err
	}
	step := func(err error) error {
		if err != nil {
			// The first error is the one to report; these are clean-up.
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
		return err
	}
	if err := step(write(f)); err != nil {
		return nil, err
	}
	return func() error { return step(completeFile(f, path)) }, nil
}

// completeFile brings a temporary file to the disk and to its place.
func completeFile(f *os.File, path string) error {
	// CreateTemp makes private files; a model is as readable as any other file.
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// SyncDir makes renames in a folder survive a power cut.
func SyncDir(dir string) error { return syncDir(dir) }

// WriteError makes an Error of what went wrong while path was written. What the
// operating system refuses may work later or elsewhere: ErrTryAgain.
func WriteError(op, path string, err error) error {
	out := &fault.Error{Op: op, Path: path, Err: fault.TrimPath(err), Hint: WriteHint(err, path)}
	var refused syscall.Errno
	if errors.As(err, &refused) {
		out.Kind = fault.ErrTryAgain
	}
	if why, _ := wording.BadName(filepath.Base(path)); why != "" && runtime.GOOS == "windows" {
		out.Kind = fault.ErrUsage
	}
	return out
}

// WriteHint says what to do about an error of the operating system.
func WriteHint(err error, path string) string {
	dir := filepath.Dir(path)
	switch {
	case fault.IsFull(err):
		hint := fmt.Sprintf("the disk or quota that holds %s is full: free some space or write to another folder", dir)
		if _, err := os.Lstat(path); err == nil {
			hint += "; the earlier file is untouched"
		}
		return hint
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		return fmt.Sprintf("%s cannot be written to: choose another output folder or change its permissions", dir)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("create the folder %s first", dir)
	case runtime.GOOS == "windows":
		if why, hint := wording.BadName(filepath.Base(path)); why != "" {
			return why + ": " + hint
		}
	}
	return ""
}

func IsDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// SHA256 is the hash of a file in hexadecimal digits.
func SHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
