package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

const (
	lookAtRoots = 15 * time.Second // between looks at a root
	rootSilent  = 30 * time.Second // a look that takes longer: the share hangs
)

// rootWatch knows which roots of this machine cannot be used for now: a share may be unmounted or become read-only while a worker runs.
type rootWatch struct {
	lock    sync.Mutex
	written map[string]bool      // roots that tasks put results to: these must be writable
	why     map[string]string    // by root, as the last look found, "" where it can be used
	began   map[string]time.Time // of looks that have not ended
}

func newRootWatch() *rootWatch {
	return &rootWatch{written: map[string]bool{spec.DefaultOutputs: true}, why: map[string]string{}, began: map[string]time.Time{}}
}

// writes notes that results go to a root.
func (w *rootWatch) writes(root string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.written[root] = true
}

// away says why a root cannot be used, "" where it can.
func (w *rootWatch) away(root string) string {
	w.lock.Lock()
	defer w.lock.Unlock()
	if began, looking := w.began[root]; looking && time.Since(began) > rootSilent {
		return "it does not answer"
	}
	return w.why[root]
}

// list names the roots that cannot be used, and why, for people.
func (w *rootWatch) list() (list []string) {
	w.lock.Lock()
	names := slices.Sorted(maps.Keys(w.why))
	w.lock.Unlock()
	for _, name := range names {
		if why := w.away(name); why != "" {
			list = append(list, fmt.Sprintf("root %s (%s)", name, why))
		}
	}
	return list
}

// look looks at a root, and says whether that changed what is known of it.
func (w *rootWatch) look(roots store.Roots, root string) (why string, changed bool) {
	w.lock.Lock()
	write, before := w.written[root], w.why[root]
	w.why[root], w.began[root] = before, time.Now() // list has it, also where this look does not end
	w.lock.Unlock()
	err := roots.Look(root, write)
	if err != nil {
		why = scene.ErrorText(err)
		var path *fs.PathError
		if errors.As(err, &path) {
			why = path.Err.Error()
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.began, root)
	w.why[root] = why
	return why, why != before
}

// watchRoots looks at the roots until ctx ends. Tasks that were left to others for a root are this worker's again when it is back.
func (n *node) watchRoots(ctx context.Context) {
	roots, err := n.roots("")
	if err != nil {
		return // each task says so
	}
	for _, root := range n.Known {
		go func() { // one that hangs holds up no other
			_ = roots.Tidy(root) // where it is away, the look says so
			for ; ctx.Err() == nil; rest(ctx, lookAtRoots) {
				why, changed := n.rootless.look(roots, root)
				switch {
				case !changed || ctx.Err() != nil:
				case why != "":
					n.Log.Warn("a root cannot be used: its tasks are left to other workers", "root", root, "cause", why)
				default:
					n.Log.Warn("the root can be used again", "root", root)
					n.queue.Reconsider()
				}
			}
		}()
	}
}
