package worker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/wire"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// Options say which tasks a worker takes, and with what it does them.
type Options struct {
	Conn  *wire.Conn
	Pools []string

	Devices []task.Device
	Others  int                  // tasks without a device that run at a time
	Lacks   map[*spec.Kind]error // kinds of tasks that this machine cannot do, and why

	Roots    store.Roots
	Work     string // folder on the local disk for what is in the making
	Locks    string // folder of the locks of devices, which all runs of this machine share
	CacheMax int64  // bytes of inputs that stay in Work, 0: all

	Program string // this program's file
	Version string // and version

	Note func(text string) // of what people should know, from any goroutine
}

// worker is this machine at a farm.
type worker struct {
	Options
	do        func(context.Context, task.Options) (*store.Manifest, error)
	documents *flow.Documents
	host      string

	stopping context.Context // ends when tasks are to save
	running  sync.WaitGroup
	alone    sync.Mutex               // guards what follows
	at       map[string]chan struct{} // tasks that run here; closed when they have ended
	away     string                   // why the farm does not answer, as was said; "": it does
}

// Run takes tasks until ctx ends. Then running tasks save, and other workers continue them.
func Run(ctx context.Context, o Options) error { return run(ctx, o, task.Run) }

func run(ctx context.Context, o Options, do func(context.Context, task.Options) (*store.Manifest, error)) error {
	stopping, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	w := &worker{Options: o, do: do, documents: &flow.Documents{Roots: o.Roots}, stopping: stopping,
		at: map[string]chan struct{}{}}
	if w.host, _ = os.Hostname(); w.host == "" { // it is for people
		w.host = "worker"
	}
	if err := os.MkdirAll(o.Locks, 0o777); err != nil {
		return &fault.Error{Op: "lock devices", Path: o.Locks, Err: err,
			Hint: "make room there, and give write permission", Kind: fault.ErrTryAgain}
	}
	places := w.places()
	if len(places) == 0 {
		return fault.Usagef("give devices, or tasks beside them", "this worker can run no task")
	}
	var slots sync.WaitGroup
	for _, p := range places {
		for range p.slots {
			slots.Go(func() { p.serve(ctx) })
		}
	}
	<-ctx.Done()
	stop(task.ErrStopped)
	slots.Wait()
	w.running.Wait() // tasks have saved, and say so
	return nil
}

// places makes the places of this machine.
func (w *worker) places() (list []*place) {
	for i := range w.Devices {
		d := &w.Devices[i]
		p := newPlace(w, d, 1, w.queues(flow.ClassesOf(d)))
		lock, said := local.LockFile(w.Locks, d), false
		p.ready = func() (func(), bool) { // one slot at a time calls it
			unlock, err := lockfile.Try(lock, lockfile.Exclusive)
			if errors.Is(err, lockfile.ErrLocked) {
				if !said {
					w.say("tasks wait for " + d.Name + ", which another worker or run on this machine uses")
				}
				said = true
				return nil, false
			}
			said = false
			if err != nil { // there are no locks: it goes on without
				return func() {}, true
			}
			return unlock, true
		}
		list = append(list, p)
	}
	if w.Others > 0 {
		list = append(list, newPlace(w, nil, w.Others, w.queues(flow.ClassesWithout(w.Lacks))))
	}
	return list
}

// queues are those of classes, in the worker's pools.
func (w *worker) queues(classes []string) (list []string) {
	for _, pool := range w.Pools {
		for _, class := range classes {
			list = append(list, flow.Queue(pool, class))
		}
	}
	return list
}

// backlog asks the server how urgent the first task of each queue is.
func (w *worker) backlog(ctx context.Context, queues []string) ([]int, error) {
	urgency, errs := make([]int, len(queues)), make([]error, len(queues))
	within, cancel := context.WithTimeout(ctx, wire.CallFor)
	defer cancel()
	var group sync.WaitGroup
	for i, queue := range queues {
		group.Go(func() {
			var r wire.Backlogged
			errs[i] = w.Conn.Once(within, wire.Backlog(queue), &r)
			for key, stats := range r.ByPriority {
				if stats.Count > 0 && (urgency[i] == 0 || int(key) < urgency[i]) {
					urgency[i] = int(key)
				}
			}
		})
	}
	group.Wait()
	refused := 0
	for _, err := range errs {
		switch wire.CodeOf(err) {
		case wire.OK:
			continue
		case wire.Unimplemented, wire.Denied:
			if refused++; refused < len(errs) { // such as a class that an older server does not know: it has no tasks
				continue
			}
			return nil, errBlind // somebody else's cluster; or the pass was revoked, which polls report, too
		}
		if ctx.Err() == nil {
			w.hear(err)
		}
		return nil, err
	}
	w.hear(nil)
	return urgency, nil
}

// hear takes in whether the farm answers, and says so where that has changed, or where it turns out that waiting does
// not help.
func (w *worker) hear(err error) {
	now, lasting := "", false
	var own *wire.Error
	switch {
	case errors.As(err, &own) && own.Code == wire.Denied:
		now, lasting = "the farm refuses this machine: "+cmp.Or(own.Reason, own.Text), true
	case err != nil && flow.NeedsPass(err):
		now, lasting = "the farm refuses this machine: "+flow.Away(err)+"; join it again, then start the worker "+
			"again", true
	case err != nil:
		now = "the farm does not respond; running tasks continue: " + flow.Away(err)
	}
	w.alone.Lock()
	before := w.away
	w.away = now
	w.alone.Unlock()
	switch {
	case now == "" && before != "":
		w.say("the farm responds again")
	case now != "" && (before == "" || lasting && now != before):
		w.say(now)
	}
}

// holds has one attempt at a task at a time here: one that the server has given up may still be saving.
func (w *worker) holds(ctx context.Context, key string) (release func(), ok bool) {
	for {
		w.alone.Lock()
		before := w.at[key]
		if before == nil {
			done := make(chan struct{})
			w.at[key] = done
			w.alone.Unlock()
			return func() {
				w.alone.Lock()
				defer w.alone.Unlock()
				delete(w.at, key)
				close(done)
			}, true
		}
		w.alone.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, false
		}
	}
}
