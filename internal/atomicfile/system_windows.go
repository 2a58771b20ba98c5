package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// syncDir does nothing: Windows syncs no folder, and NTFS keeps a journal of renames.
func syncDir(string) error { return nil }

// rename is os.Rename that waits up to two seconds for others: Windows moves no file that is open, and scanners for
// viruses open every new one.
func rename(from, to string) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := os.Rename(from, to)
		if wait > time.Second || !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		time.Sleep(wait)
	}
}
