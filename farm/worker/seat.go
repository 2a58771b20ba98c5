package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// seatPatience is how long a worker waits for the one before it, which may be ending.
const seatPatience = 2 * time.Second

// seat takes the worker's name in its work folder, where the files of a second one of that name would be the same. Home is unique to name and folder, and stays: the
// queue knows by it that whoever was there before has ended. It is "" where the file system has no locks.
func (n *node) seat(ctx context.Context) (home string, leave func(), err error) {
	base := filepath.Join(n.Work, "worker-"+spec.Escape(n.Node))
	wait, cancel := context.WithTimeout(ctx, seatPatience)
	defer cancel()
	leave, err = store.Lock(wait, base+".lock")
	switch {
	case err != nil && ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return "", nil, &scene.Error{Op: "start worker", Path: n.Node, Err: fmt.Errorf("another worker of this name works in %s", n.Work),
			Hint: "give this one another name with --name; one worker can use all devices", Kind: scene.ErrTryAgain}
	case err != nil:
		return "", nil, &scene.Error{Op: "lock work folder", Path: base + ".lock", Err: err, Hint: "name another folder with --work", Kind: scene.ErrTryAgain}
	}
	if !n.locks(base+".lock", "two workers of one name would not see each other; name a folder on a local disk with --work") {
		return "", leave, nil
	}
	file := base + ".id"
	if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data)), leave, nil
	}
	home = rand.Text()
	if err := errors.Join(os.WriteFile(file+".new", []byte(home+"\n"), 0o666), os.Rename(file+".new", file)); err != nil {
		leave()
		return "", nil, &scene.Error{Op: "start worker", Path: file, Err: err, Hint: "name another folder with --work", Kind: scene.ErrTryAgain}
	}
	return home, leave, nil
}

// locks says whether a file can be locked where it is, and warns with what follows if not: a lock that cannot be had is taken as had.
func (n *node) locks(file, follows string) bool {
	err := store.Locks(file)
	if err != nil {
		n.Log.Warn("the file system has no locks: "+follows, "file", file, "cause", err)
	}
	return err == nil
}
