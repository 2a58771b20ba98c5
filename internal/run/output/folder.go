package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// RefuseFile refuses a folder that cannot be made because a file has its name, or that of a folder above, or because a
// name is too long. It writes nothing: Claim finds the same when it makes the folder.
func RefuseFile(dir string) error {
	for at := Absolute(dir); ; at = filepath.Dir(at) {
		st, err := os.Stat(at)
		switch {
		case err == nil && !st.IsDir():
			return FolderError(dir, syscall.ENOTDIR)
		case errors.Is(err, syscall.ENAMETOOLONG):
			return FolderError(dir, err)
		case err == nil || at == filepath.Dir(at):
			return nil
		}
	}
}

// probeBytes is how much claimFolder writes to see whether the disk has room at all.
const probeBytes = 1 << 20

// LockName is the file that is locked in the folder of a training run.
const LockName = ".lock"

// ErrBusy is the error of a folder that another run is writing to.
var ErrBusy = fault.Sentinel(fault.ErrTryAgain, "another run is writing there", "")

// Claim makes dir and proves that files can be written in it, so that a
// long run does not find out at its end. With exclusive, no second run gets dir
// until release is called; waits are WaitForLock's. Release also removes the
// folders that were made here, if nothing was put into them: a refused input
// leaves none behind.
func Claim(dir string, exclusive bool, waits ...func()) (release func(), err error) {
	made := missingFolders(dir)
	unlock := func() {}
	release = func() {
		unlock()
		for _, d := range made {
			_ = os.Remove(d) // refused unless empty
		}
	}
	defer func() {
		if err != nil {
			release()
			release, err = nil, FolderError(dir, err)
		}
	}()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return release, err
	}
	if exclusive {
		free, err := WaitForLock(context.Background(), filepath.Join(dir, LockName), waits...)
		if err != nil {
			return release, err
		}
		unlock = free
	}
	return release, Probe(dir)
}

// lockPatience is how long a run waits for the one before it. A process that was
// killed keeps its lock until its driver has given the device back, which takes
// seconds.
const lockPatience = 8 * time.Second

// WaitForLock takes the lock on path, or gives fault.ErrInterrupted once ctx has ended. It calls waits, once, before it
// waits for another run to end.
func WaitForLock(ctx context.Context, path string, waits ...func()) (func(), error) {
	for start := time.Now(); ; {
		free, err := lockfile.Try(path, lockfile.Removed)
		if !errors.Is(err, lockfile.ErrLocked) {
			return free, err
		} else if time.Since(start) > lockPatience {
			return nil, ErrBusy
		}
		for _, say := range waits {
			say()
		}
		waits = nil
		select {
		case <-ctx.Done():
			return nil, fault.ErrInterrupted
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// missingFolders lists dir and those above it that do not exist, innermost first.
func missingFolders(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
		parent := filepath.Dir(dir)
		if parent == dir {
			return missing
		}
		dir = parent
	}
}

// Probe writes a file in dir and removes it.
func Probe(dir string) error {
	f, err := os.CreateTemp(dir, ".probe*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// FolderError says what can be done about a folder that cannot be written to.
func FolderError(dir string, err error) error {
	if errors.Is(err, fault.ErrInterrupted) {
		return err
	}
	if p, ok := errors.AsType[*os.PathError](err); ok {
		if bad := fault.Dangling(p.Path); bad != nil {
			return bad
		}
	}
	err = fmt.Errorf("write to folder %s: %w", dir, fault.Pathless(err))
	switch {
	case errors.Is(err, ErrBusy):
		return fault.WithHint(err, "wait until it has ended, or choose another folder")
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP),
		errors.Is(err, syscall.EINVAL):
		return fault.Usagef("no folder of that name can be made there: choose another", "%w", err)
	case errors.Is(err, syscall.ENOTDIR):
		return fault.Usagef("a file has that name, or that of a folder above: choose another folder", "%w", err)
	}
	if errors.Is(err, syscall.EROFS) {
		return fault.WithHint(err, "nothing can be written there: choose another folder")
	}
	return fault.WithHint(err, "choose another folder, or make room and give write permission there")
}
