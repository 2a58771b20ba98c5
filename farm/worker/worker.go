package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/task"
	"vksplat/scene"
)

// Device is one that tasks may run on.
type Device struct {
	ID          string // for --device: its UUID, which stays when other devices come and go
	PCI         string // its address, "" where the driver does not tell
	Name        string
	Driver      string
	MemoryBytes int64
}

// Options say what a worker works with.
type Options struct {
	Queue    *queue.Queue
	Node     string   // its name, unique in the farm
	Pools    []string // of job documents, beside queue.AnyPool
	Devices  []Device
	Others   int                     // tasks without a device that run at a time, beside those with one
	Roots    func(job string) string // the file of roots for tasks of a job
	Work     string                  // folder on the local disk for what is in the making
	Locks    string                  // folder of the locks of devices, which all workers of the machine share
	CacheMax int64                   // bytes of inputs that stay in Work, 0: all
	Command  []string                // program and first arguments of run-task
	Mirror   bool                    // keep the documents of jobs in the store, for fsck
	Alone    bool                    // there is no other worker: quarantine would only stop the job
	Lost     string                  // what a child says that has lost its device
	Log      *slog.Logger
	Kill     <-chan struct{} // closed to end children at once, where they do not stop by themselves; nil for never
}

const (
	pause        = time.Second
	declineFor   = 10 * time.Second
	keptJobs     = 16               // that are not read again for each task
	coolDown     = 30 * time.Second // of a device that was lost, for each time in a row
	mostLost     = 3                // times in a row, then the device is no more used
	finishWithin = 10 * time.Minute // for the last word about a task while the queue is away
	leaveWithin  = 20 * time.Second // likewise, when the worker is to end
)

// node is a worker that runs.
type node struct {
	Options
	queue *queue.Worker
	uses  uses

	lock sync.Mutex
	jobs map[string]*job // by name
}

// job is what tasks of a job share.
type job struct {
	*spec.Job
	plan *spec.Plan
	file string // of the document
}

// Run works until ctx ends. Children are then asked to save and stop, and their tasks handed back.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, dir := range []string{o.Work, o.Locks} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return &scene.Error{Op: "start worker", Path: dir, Err: err, Hint: "name another folder with --work", Kind: scene.ErrTryAgain}
		}
	}
	n := &node{Options: o, jobs: map[string]*job{}}
	for i := range o.Devices {
		if _, err := n.isFree(&o.Devices[i]); err != nil {
			return &scene.Error{Op: "lock device", Path: n.lockFile(&o.Devices[i]), Err: err, Hint: "remove the file, or name another folder with --locks, the same for all workers of this machine", Kind: scene.ErrTryAgain}
		}
	}
	var plain, special, names []string
	for _, pool := range append(slices.Clone(o.Pools), queue.AnyPool) {
		plain, special = append(plain, pool), append(special, pool+devicePool)
	}
	for _, d := range o.Devices {
		names = append(names, fmt.Sprintf("%s (%s)", d.Name, d.ID))
	}
	w, err := o.Queue.Join(ctx, queue.WorkerInfo{Node: o.Node, Pools: slices.Concat(plain, special), Devices: names, Use: n.use})
	if err != nil {
		return err
	}
	defer w.Leave()
	n.queue = w
	var group sync.WaitGroup
	for i := range o.Devices {
		d := &o.Devices[i]
		group.Go(func() { n.serve(ctx, d, queue.Slot{Device: d.ID, Driver: d.Driver, Pools: special}) })
	}
	for range o.Others {
		group.Go(func() { n.serve(ctx, nil, queue.Slot{Pools: plain}) })
	}
	if len(o.Devices)+o.Others > 0 {
		sweeping, end := context.WithCancel(ctx)
		defer end()
		go n.sweeps(sweeping)
		if o.Mirror {
			go n.mirrorFates(sweeping)
		}
	}
	group.Wait()
	return nil
}

// serve claims tasks and does them, one after the other, on a device, nil for none.
func (n *node) serve(ctx context.Context, d *Device, slot queue.Slot) {
	lost := 0
	for ctx.Err() == nil {
		if d != nil {
			free, err := n.isFree(d)
			if err != nil {
				n.Log.Error("the device's lock cannot be taken, so no task is claimed for it", "device", d.Name, "cause", err)
				rest(ctx, declineFor)
				continue
			}
			if !free {
				rest(ctx, pause)
				continue
			}
		}
		lease, err := n.queue.Claim(ctx, slot)
		switch {
		case errors.Is(err, queue.ErrQuarantined) && n.Alone:
			if err := n.Queue.Undrain(ctx, n.Node); err != nil {
				n.Log.Warn("still in quarantine", "cause", err)
			}
			rest(ctx, pause)
			continue
		case errors.Is(err, queue.ErrDrained), errors.Is(err, queue.ErrQuarantined):
			n.Log.Warn("no task is claimed", "node", n.Node, "cause", err)
			_ = n.queue.Await(ctx) // the loop's condition looks at ctx
			continue
		case err != nil:
			if ctx.Err() == nil {
				n.Log.Error("no task could be claimed", "cause", err)
				rest(ctx, declineFor)
			}
			continue
		}
		if !n.attempt(ctx, lease, d) {
			lost = 0
			continue
		}
		if lost++; lost == mostLost {
			n.Log.Error("this device is no more used: it was lost several times in a row", "device", d.Name, "times", lost)
			return
		}
		n.Log.Warn("device lost; it cools down", "device", d.Name)
		rest(ctx, time.Duration(lost)*coolDown)
	}
}

// rest waits, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// attempt does a task that was claimed, and says whether it lost its device.
func (n *node) attempt(ctx context.Context, lease *queue.Lease, d *Device) (lost bool) {
	log := n.Log.With("job", lease.Job, "task", lease.Task.Name, "attempt", lease.Attempt)
	r := &run{node: n, lease: lease, device: d, log: log}
	end, cancel := lastWord(ctx, lease.Context(), leaveWithin+task.StopWithin, finishWithin)
	defer cancel()
	j, err := n.open(lease.Context(), lease.Job)
	if err == nil && lease.Index >= len(j.plan.Tasks) {
		err = &scene.Error{Op: "open job", Path: lease.Job, Err: fmt.Errorf("it has no task %d", lease.Index), Kind: spec.ErrSpec}
	}
	if err != nil {
		r.finish(end, err, judgeOpen(context.Cause(lease.Context()), err))
		rest(ctx, declineFor) // others go first: this node may have no disk left
		return false
	}
	r.job, r.task = j, &j.plan.Tasks[lease.Index]
	if why := n.unfit(r.task, d); why != "" {
		r.finish(end, errors.New(why), declined)
		return false
	}
	if r.outputs, err = r.openRoots(); err != nil {
		r.finish(end, err, judgeError(err, n.Alone))
		rest(ctx, declineFor)
		return false
	}
	unlock, err := r.lockDevice(ctx)
	if err != nil && ctx.Err() == nil && lease.Context().Err() == nil {
		log.Error("the device's lock cannot be taken", "cause", err)
		r.finish(end, err, declined)
		rest(ctx, declineFor)
		return false
	}
	if err != nil {
		r.note(lease.Handback(end))
		return false
	}
	defer unlock()
	return r.do(ctx, end)
}

// unfit says why a task cannot be done on a device here, "" where it can.
func (n *node) unfit(t *spec.Task, d *Device) string {
	if free, known := scene.FreeSpace(n.Work); known && free < int64(t.Limits.DiskMinGB)<<30 {
		return fmt.Sprintf("it needs %d GB of disk, %d are free", t.Limits.DiskMinGB, free>>30)
	}
	if d == nil || !NeedsDevice(t.Kind) {
		return ""
	}
	switch {
	case t.Pin.Device != "" && t.Pin.Device != d.Name && t.Pin.Device != d.ID:
		return fmt.Sprintf("it is pinned to the device %s, this is %s", t.Pin.Device, d.Name)
	case t.Pin.Driver != "" && t.Pin.Driver != d.Driver:
		return fmt.Sprintf("it is pinned to the driver %s, this is %s", t.Pin.Driver, d.Driver)
	case d.MemoryBytes > 0 && d.MemoryBytes < int64(t.Limits.VRAMMinMB)<<20:
		return fmt.Sprintf("it needs %d MB of device memory, %s has %d", t.Limits.VRAMMinMB, d.Name, d.MemoryBytes>>20)
	}
	return ""
}

// exists says whether a file is there: another worker on the same folder may have swept it.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// open gives the job of a name, and has its document in a file for children.
func (n *node) open(ctx context.Context, name string) (*job, error) {
	document, err := n.Queue.Document(ctx, name)
	if err != nil {
		return nil, err
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if j := n.jobs[name]; j != nil && slices.Equal(j.Canonical(), document) && exists(j.file) {
		return j, nil
	}
	parsed, err := spec.Parse(name, document)
	if err != nil {
		return nil, err
	}
	plan, err := parsed.Plan()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(n.Work, jobsFolder, parsed.Hash()[:16])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "job.json")
	temp := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temp, document, 0o666); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, file); err != nil {
		return nil, err
	}
	j := &job{parsed, plan, file}
	n.remember(name, j)
	return j, nil
}

// remember keeps a job for the next task of it, and not too many. The caller holds lock.
func (n *node) remember(name string, j *job) {
	if len(n.jobs) >= keptJobs {
		clear(n.jobs) // tasks have theirs, others are read again
	}
	n.jobs[name] = j
}
