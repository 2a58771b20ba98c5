package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
)

func (n *node) lockFile(d *Device) string {
	return filepath.Join(n.Locks, "vksplat-gpu-"+spec.Escape(d.ID)+".lock")
}

// ready makes the lock's file where it is missing, such that workers of other users can take the lock too, whatever this one's umask.
func (n *node) ready(d *Device) (file string, err error) {
	file = n.lockFile(d)
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case errors.Is(err, os.ErrExist):
		return file, nil
	case err != nil:
		return file, err
	}
	return file, errors.Join(f.Chmod(0o666), f.Close())
}

// isFree says whether no other worker of this machine has the device now. The error is of a lock that cannot be taken at all.
func (n *node) isFree(d *Device) (bool, error) {
	file, err := n.ready(d)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one look, no waiting
	unlock, err := store.Lock(ctx, file)
	if err == nil {
		unlock()
		return true, nil
	}
	if errors.Is(err, context.Canceled) {
		return false, nil
	}
	return false, err
}

// lockDevice waits until no other worker of this machine uses the device. Meanwhile the lease is kept up.
func (r *run) lockDevice(ctx context.Context) (unlock func(), err error) {
	if r.device == nil {
		return func() {}, nil
	}
	began := time.Now()
	for {
		look, cancel := context.WithTimeout(ctx, pause)
		unlock, err = store.Lock(look, r.lockFile(r.device))
		waited := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		cancel()
		if !waited {
			return unlock, err
		}
		if r.lease.Context().Err() != nil {
			return nil, context.Cause(r.lease.Context())
		}
		r.lease.Progress(0, 0, fmt.Sprintf("waiting for %s, which another worker uses, for %d s", r.device.Name, int(time.Since(began).Seconds())))
	}
}
