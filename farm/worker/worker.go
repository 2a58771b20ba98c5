package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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
	Known    []string                // names of the roots, for who submits
	Lacks    map[spec.Kind]string    // kinds of tasks that cannot be done here, and why
	Claimed  func() error            // called once the name is this worker's alone, before it claims a task; nil for nothing
	Mirror   bool                    // keep the documents of jobs in the store, for fsck
	Alone    bool                    // there is no other worker: quarantine would only stop the job
	Lost     string                  // what a child says that has lost its device
	CoolDown time.Duration           // of such a device, for each time in a row; 0: half a minute
	Log      *slog.Logger
	Kill     <-chan struct{} // closed to end children at once, where they do not stop by themselves; nil for never
}

const (
	pause        = time.Second
	declineFor   = 10 * time.Second // the next claim after this node could not do a task
	leaveFor     = 3 * time.Minute  // before this node looks again at a task that it declined; on a machine alone declineFor
	keptJobs     = 16               // that are not read again for each task
	coolDown     = 30 * time.Second // of a device that was lost, for each time in a row
	mostLost     = 3                // times in a row, then the device is no more used
	finishWithin = 10 * time.Minute // for the last word about a task while the queue is away
	leaveWithin  = 20 * time.Second // likewise, when the worker is to end
	mostSaid     = 1000             // warnings that are remembered
)

// errDevicesLost is of a worker that has no device any more, and nothing to do without one.
var errDevicesLost = error(&scene.Error{Op: "run worker", Err: errors.New("every device was lost several times in a row"),
	Hint: "look at the driver's messages, as by dmesg; once the devices are reset, or the machine was started again, start this again", Kind: scene.ErrTryAgain})

// node is a worker that runs.
type node struct {
	Options
	queue    *queue.Worker
	uses     uses
	rootless *rootWatch

	lock sync.Mutex
	jobs map[string]*job // by name
	said map[string]bool // by job, what was warned of
	idle string          // why no task is claimed, as it was said; "" while tasks are
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
	n := &node{Options: o, rootless: newRootWatch(), jobs: map[string]*job{}, said: map[string]bool{}}
	for i := range o.Devices {
		if _, err := n.isFree(&o.Devices[i]); err != nil {
			return &scene.Error{Op: "lock device", Path: n.lockFile(&o.Devices[i]), Err: err, Hint: "remove the file, or name another folder with --locks, the same for all workers of this machine", Kind: scene.ErrTryAgain}
		}
	}
	if len(o.Devices) > 0 {
		n.locks(n.lockFile(&o.Devices[0]), "workers of this machine would use its devices at the same time; name a folder on a local disk with --locks")
	}
	home, leave, err := n.seat(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return n.work(ctx, home)
}

// info is what others know of this worker.
func (n *node) info(home string, pools []string) queue.WorkerInfo {
	info := queue.WorkerInfo{Node: n.Node, Home: home, Pools: pools, Roots: n.Known, Use: n.use, Away: n.rootless.list}
	for _, d := range n.Devices {
		info.Devices = append(info.Devices, fmt.Sprintf("%s (%s)", d.Name, d.ID))
	}
	for _, kind := range slices.Sorted(maps.Keys(n.Lacks)) {
		info.Lacks = append(info.Lacks, string(kind))
	}
	info.DiskFree = func() int64 {
		free, _ := scene.FreeSpace(n.Work)
		return free
	}
	return info
}

// work joins the farm and claims tasks until ctx ends, or the farm has no place for this worker any more.
func (n *node) work(ctx context.Context, home string) error {
	o := &n.Options
	var plain, special []string
	for _, pool := range append(slices.Clone(o.Pools), queue.AnyPool) {
		plain, special = append(plain, pool), append(special, pool+spec.DevicePool)
	}
	var pools []string // for which there are slots
	if o.Others > 0 {
		pools = append(pools, plain...)
	}
	if len(o.Devices) > 0 {
		pools = append(pools, special...)
	}
	w, err := o.Queue.Join(ctx, n.info(home, pools))
	if err != nil {
		return err
	}
	defer w.Leave()
	n.queue = w
	if o.Claimed != nil {
		if err := o.Claimed(); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(w.Context(), func() { stop(context.Cause(w.Context())) })()
	var group sync.WaitGroup
	var lost atomic.Int32
	for i := range o.Devices {
		d := &o.Devices[i]
		group.Go(func() {
			gone := n.serve(ctx, d, queue.Slot{Device: d.ID, Driver: d.Driver, Pools: special})
			if gone && int(lost.Add(1)) == len(o.Devices) && (o.Alone || o.Others == 0) { // on a machine alone nobody else does what needs one
				stop(errDevicesLost)
			}
		})
	}
	for range o.Others {
		group.Go(func() { n.serve(ctx, nil, queue.Slot{Pools: plain}) })
	}
	if len(o.Devices)+o.Others > 0 {
		sweeping, end := context.WithCancel(ctx)
		defer end()
		go n.sweeps(sweeping)
		if !n.Alone { // there, nobody else could take its tasks
			n.watchRoots(sweeping)
		}
		if o.Mirror {
			go n.mirrorFates(sweeping)
		}
	}
	group.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errDevicesLost) {
		return cause
	}
	return context.Cause(w.Context())
}

// serve claims tasks and does them, one after the other, on a device, nil for none. It returns true where the device was lost too often.
func (n *node) serve(ctx context.Context, d *Device, slot queue.Slot) bool {
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
			n.idles(err)
			if n.queue.Await(ctx) == nil { // else ctx has ended
				n.idles(nil)
			}
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
			return true
		}
		n.Log.Warn("device lost; it cools down", "device", d.Name)
		rest(ctx, time.Duration(lost)*cmp.Or(n.CoolDown, coolDown))
	}
	return false
}

// idles says why no task is claimed, nil for no reason, once for all that claim.
func (n *node) idles(why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	n.lock.Lock()
	news := text != n.idle
	n.idle = text
	n.lock.Unlock()
	if news && why != nil {
		n.Log.Warn("no task is claimed", "node", n.Node, "cause", why)
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
	defer context.AfterFunc(n.queue.Context(), cancel)() // who is shut out of the farm has nobody to tell
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
	n.rootless.writes(j.Store.Outputs)
	for _, root := range []string{j.Store.Inputs, j.Store.Outputs} {
		if why := n.rootless.away(root); why != "" {
			r.finish(end, fmt.Errorf("root %s: %s", root, why), declined)
			return false
		}
	}
	if why := n.unfit(r.task, d); why != "" {
		r.finish(end, errors.New(why), declined)
		return false
	}
	if r.outputs, err = r.openRoots(); err != nil {
		what := judgeError(err, n.Alone)
		if r.finish(end, err, what); what != declined {
			rest(ctx, declineFor)
		}
		return false
	}
	unlock, err := r.lockDevice(ctx)
	if err != nil && ctx.Err() == nil && lease.Context().Err() == nil {
		r.finish(end, fmt.Errorf("the device's lock cannot be taken: %w", err), declined)
		rest(ctx, declineFor)
		return false
	}
	if err != nil {
		r.note(lease.Handback(end))
		return false
	}
	r.unlock = sync.OnceFunc(unlock)
	defer r.unlock()
	return r.do(ctx, end)
}

// decline leaves a task to others. Every reason is warned of once for each job: somebody may wait for it.
func (r *run) decline(end context.Context, why string) {
	keep := leaveFor
	if r.Alone {
		keep = declineFor // nobody else takes it
	}
	level, id := slog.LevelWarn, r.lease.Job+"\x00"+why
	r.node.lock.Lock()
	if r.node.said[id] {
		level = slog.LevelInfo
	}
	if len(r.node.said) >= mostSaid {
		clear(r.node.said)
	}
	r.node.said[id] = true
	r.node.lock.Unlock()
	r.log.Log(end, level, "task left to other workers", "why", why)
	r.note(r.lease.Decline(end, why, keep))
}

// unfit says why a task cannot be done on a device here, "" where it can.
func (n *node) unfit(t *spec.Task, d *Device) string {
	if free, known := scene.FreeSpace(n.Work); known && free < int64(t.Limits.DiskMinGB)<<30 {
		return fmt.Sprintf("it needs %d GB of disk, %d are free", t.Limits.DiskMinGB, free>>30)
	}
	if why := n.Lacks[t.Kind]; why != "" {
		return why
	}
	if d == nil || !task.NeedsDevice(t.Kind) {
		return ""
	}
	if why := d.Elsewhere(t.Pin); why != "" {
		return why
	}
	if d.MemoryBytes > 0 && d.MemoryBytes < int64(t.Limits.VRAMMinMB)<<20 {
		return fmt.Sprintf("it needs %d MB of device memory, %s has %d", t.Limits.VRAMMinMB, d.Name, d.MemoryBytes>>20)
	}
	return ""
}

// Elsewhere says that a pin means another device, "" where it means this one.
func (d *Device) Elsewhere(pin spec.Pin) string {
	switch {
	case pin.Device != "" && !(task.Device{Name: d.Name, UUID: d.ID, PCI: d.PCI}).Is(pin.Device):
		return fmt.Sprintf("it is pinned to the device %s, this is %s", pin.Device, d.Name)
	case pin.Driver != "" && pin.Driver != d.Driver:
		return fmt.Sprintf("it is pinned to the driver %s, this is %s", pin.Driver, d.Driver)
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
	file := filepath.Join(dir, documentFile)
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
