//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes a rename in dir survive a power cut. File systems that cannot
// sync a folder say EINVAL or ENOTSUP: there the rename is all there is.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

func rename(from, to string) error { return os.Rename(from, to) }
