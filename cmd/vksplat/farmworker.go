package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/worker"
	"vksplat/pipeline"
	"vksplat/scene"
)

// devicesNone as a worker's --devices has it take only tasks that need none.
const devicesNone = "none"

// lostText is what run-task says when its device was lost.
var lostText = pipeline.ErrDeviceLost.Error()

// workFlags say what a worker takes on.
type workFlags struct {
	devices string
	others  int
	name    string
	pools   string
	work    string
	locks   string
	cache   int64 // bytes
	verbose bool
}

func (f *workFlags) table() []option {
	return []option{
		text(&f.devices, "devices", "devices to use, `LIST`: all, none, or indices, UUIDs or PCI addresses with commas, as vksplat devices lists them; all means GPUs where there is one, and of them those that the environment gives, as in CUDA_VISIBLE_DEVICES").oneOf(devicesAll, devicesNone),
		integer(&f.others, "others", "do `N` tasks without a device at a time, beside those with one: partitions, videos, conversions"),
		text(&f.name, "name", "the worker's `NAME` in the farm (default: the machine's)"),
		text(&f.pools, "pools", "also take tasks of these pools, `A,B`"),
		text(&f.work, "work", "folder `DIR` on a local disk for inputs and work in the making (default: in the user's folder of states)").isFolder(),
		text(&f.locks, "locks", "folder `DIR` of the locks of devices: all workers on a machine must have the same (default: in the user's folder of states)").isFolder(),
		other((*sizeFlag)(&f.cache), "cache-size", "`BYTES` of inputs that stay in the work folder; those that were used longest ago go first"),
		truth(&f.verbose, "verbose", "print every change of a task"),
	}
}

// defaultCache is how much a worker's inputs may take of the disk, in bytes.
const defaultCache = 50 << 30

// list gives the devices that are asked for.
func (f *workFlags) list(a *app) (list []worker.Device, err error) {
	if f.devices == devicesNone {
		return nil, nil
	}
	found, note, err := pipeline.FindDevices(f.devices)
	if err != nil {
		if f.devices == devicesAll && errors.Is(err, pipeline.ErrNoLoader) {
			return nil, &hintedError{err: err, hint: hint(err) + "; or give --devices none for tasks that need no device"}
		}
		if f.devices != devicesAll && errors.Is(err, pipeline.ErrNoDevice) {
			return nil, usagef("vksplat devices lists them", "flag --devices: %w", err)
		}
		return nil, err
	}
	if note != "" {
		a.note(note)
	}
	for _, d := range found {
		if !d.Usable {
			return nil, usagef("vksplat devices says what it lacks; name others", "flag --devices: device %d (%s) cannot be used", d.Index, d.Name)
		}
		if !slices.ContainsFunc(list, func(other worker.Device) bool { return other.ID == d.UUID }) { // a device with two drivers counts once
			list = append(list, worker.Device{ID: d.UUID, Name: d.Name, Driver: d.Driver, MemoryBytes: d.MemoryBytes, PCI: d.PCI})
		}
	}
	return list, nil
}

// nodeName is what this machine is called in a farm.
func nodeName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "worker"
	}
	return name
}

// runTaskCommand is the beginning of the command line of a task.
func runTaskCommand() ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{program, "farm", "run-task"}, nil
}

func (a *app) farmWorkerCommand() *cobra.Command {
	f, w, r := &farmFlags{}, &workFlags{devices: devicesAll, others: 1, cache: defaultCache}, &rootsFlags{}
	cmd := &cobra.Command{
		Use:   "worker --token FILE",
		Short: "Do tasks of a farm on this machine's devices",
		Long: "Claim tasks of a farm and do them: one at a time on each device, each in a process of its\n" +
			"own. SIGTERM or Ctrl-C lets the tasks save, hands them back and exits with 75; a second\n" +
			"Ctrl-C aborts. Workers on one machine take turns with its devices.",
		Example: "  vksplat farm worker --token lab.token --root inputs=/srv/scans --root outputs=/srv/results\n  vksplat farm worker --token lab.token --roots roots.toml --pools gpu24 --devices 0,1 --work /scratch/farm",
		Args:    cobra.NoArgs,
	}
	table := []optionGroup{{options: append(append(w.table(), r.table()...), f.table()...)}}
	register(cmd.Flags(), table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func([]string) error { return a.work(f, w, r) })
	return cmd
}

// errHandedBack is how a worker ends that was stopped.
var errHandedBack = fmt.Errorf("the worker was stopped and its tasks are handed back: %w", scene.ErrTryAgain)

// work runs a worker until it is stopped.
func (a *app) work(f *farmFlags, w *workFlags, r *rootsFlags) error {
	o := worker.Options{Node: cmp.Or(w.name, nodeName()), Others: w.others, Lost: lostText, Work: w.work, Locks: w.locks, CacheMax: w.cache}
	for pool := range strings.SplitSeq(w.pools, ",") {
		if pool != "" {
			o.Pools = append(o.Pools, pool)
		}
	}
	begin, err := w.folders(a, &o, r)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(ffmpegName); err != nil {
		o.Lacks = map[spec.Kind]string{spec.KindEncode: "there is no program " + ffmpegName}
		a.note("there is no program ffmpeg: videos (tasks of the kind encode) are left to other workers")
	}
	kill := make(chan struct{})
	a.onAbort = func() { close(kill) }
	ctx, stop := a.interruptible(always("stopping once the tasks have saved"))
	defer stop()
	level := slog.LevelWarn
	if w.verbose {
		level = slog.LevelInfo
	}
	o.Log, o.Kill = a.logger(level), kill
	q, err := f.configured(ctx, queue.Options{Version: programVersion(), Log: o.Log})
	if err != nil {
		return err
	}
	if q == nil {
		return errNoFarm()
	}
	defer q.close()
	o.Queue = q.Queue
	if o.Devices, err = w.list(a); err != nil {
		return err
	}
	if o.Command, err = runTaskCommand(); err != nil {
		return err
	}
	for _, d := range o.Devices {
		a.printf("device %s (%s)\n", d.Name, d.ID)
	}
	o.Claimed = func() error {
		if err := begin(); err != nil {
			return err
		}
		a.printf("worker %s is ready\n", o.Node)
		return nil
	}
	err = worker.Run(ctx, o)
	if err == nil && ctx.Err() != nil {
		return errHandedBack
	}
	return err
}

// folders fills in where a worker keeps things. Begin writes them, once nobody else of its name can.
func (w *workFlags) folders(a *app, o *worker.Options, r *rootsFlags) (begin func() error, err error) {
	roots, err := r.read()
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, usagef("as in --root inputs=/srv/scans --root outputs=/srv/results, or --roots FILE", "no root of the store is named")
	}
	o.Known = slices.Sorted(maps.Keys(roots))
	for _, name := range o.Known {
		if _, err := roots.Open(name); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{spec.DefaultInputs, spec.DefaultOutputs} {
		if _, named := roots[name]; !named {
			a.note(fmt.Sprintf("no root %q is named, which jobs use that name none of their own: such jobs are left to other workers", name))
		}
	}
	state, err := stateFolder("worker")
	if err != nil {
		return nil, err
	}
	o.Work = absolute(cmp.Or(o.Work, state))
	locks, err := stateFolder(lockFolder)
	if err != nil {
		return nil, err
	}
	o.Locks = cmp.Or(o.Locks, locks)
	file := filepath.Join(o.Work, fmt.Sprintf("roots-%s.toml", spec.Escape(o.Node)))
	o.Roots = func(string) string { return file }
	o.Mirror = true
	return func() error {
		if err := writeRoots(file, roots); err != nil {
			return folderError(o.Work, err)
		}
		return nil
	}, nil
}
