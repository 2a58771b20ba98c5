package vk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

type DeviceOptions struct {
	Budget   int64  // ceiling of the device memory taken, in bytes; 0 means DeviceInfo.DefaultBudget
	CacheDir string // folder where compiled pipelines are kept between runs; "" keeps none
}

// Device is an open device. Its methods may be called from several goroutines; so may those of different objects made
// from it.
type Device struct {
	in       *Instance
	info     DeviceInfo
	shim     shimDevice
	h        uint64 // VkDevice
	queue    uint64
	timeline timeline
	memory   memory
	kernels  *kernels

	queueMu sync.Mutex // guards the queue, changes of timeline.submitted, and submits
	submits uint64     // submissions so far
	lost    atomic.Bool

	owned owned
}

// owned are programs, copiers, pools, gates and parts of shared memory not yet closed: a device closes them.
type owned struct {
	mu  sync.Mutex
	set map[closer]bool
}

// closer is an object that a device closes before itself.
type closer interface{ Close() error }

// NewDevice opens the device that info describes, with all features that it has. It fails with errMissingFeature when
// the device does not reach the floor; the error names what is missing.
func (in *Instance) NewDevice(info DeviceInfo, o DeviceOptions) (*Device, error) {
	if info.handle == 0 || len(info.Missing) > 0 {
		return nil, info.refuse()
	}
	if o.Budget < 0 {
		return nil, invalid("open device", info.Name, "budget of %d bytes is negative", o.Budget)
	}
	want, exts := info.Features.enable()
	shim, r := in.shim.createDevice(info.handle, info.family, want, exts)
	if err := failed("vkCreateDevice", info.Name, r); err != nil {
		return nil, err
	}
	in.open.Add(1)
	d := &Device{in: in, info: info, shim: shim, h: shim.handle(), owned: owned{set: map[closer]bool{}}}
	d.kernels = newKernels(d)
	d.timeline.dev = d
	d.queue = getQueue(d.h, info.family)
	if err := d.begin(o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) begin(o DeviceOptions) error {
	var r Result
	if d.timeline.semaphore, r = d.shim.createTimeline(); r < 0 {
		return failed("vkCreateSemaphore", "timeline of "+d.info.Name, r)
	}
	budget := o.Budget
	if budget == 0 {
		budget = d.info.DefaultBudget()
	}
	if err := d.memory.begin(d, budget); err != nil {
		return err
	}
	var err error
	d.kernels.cache, err = openPipelineCache(d, o.CacheDir)
	return err
}

func (d *Device) Info() DeviceInfo { return d.info }

// Close opens all gates for whatever waits there, waits until the device is idle, writes the pipeline cache, and ends
// everything that was made from the device. The error, if any, is about the last work or the cache; the device is
// closed nevertheless.
func (d *Device) Close() error {
	if d.h == 0 {
		return nil
	}
	var err error
	for _, c := range d.owned.list() {
		if g, ok := c.(*Gate); ok {
			err = errors.Join(err, g.end())
		}
	}
	err = errors.Join(err, d.WaitIdle())
	for _, c := range d.owned.list() {
		if g, ok := c.(*Gate); ok {
			g.destroy() // it has ended, and no Submit is under way that has its semaphore: WaitIdle had the queue
			continue
		}
		err = errors.Join(err, c.Close())
	}
	if d.kernels.cache != nil {
		err = errors.Join(err, d.kernels.cache.close(d))
	}
	d.kernels.close()
	d.memory.close()
	d.timeline.mu.Lock() // others may not have returned from Wait yet
	defer d.timeline.mu.Unlock()
	if d.timeline.semaphore != 0 {
		destroySemaphore(d.h, d.timeline.semaphore)
	}
	d.shim.free()
	d.h, d.timeline.semaphore = 0, 0
	d.in.open.Add(-1)
	return err
}

func (o *owned) list() []closer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.set))
}

func (o *owned) add(c closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set[c] = true
}

func (o *owned) remove(c closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, c)
}

// check is failed, and remembers that the device was lost.
func (d *Device) check(call, object string, r Result) error {
	if r >= 0 {
		return nil
	}
	if r == deviceLost {
		d.lost.Store(true)
	}
	return &callError{Call: call, Object: fmt.Sprintf("%s on %s", object, d.info.called()), Result: r}
}

// Lost reports whether the driver gave the device up.
func (d *Device) Lost() bool { return d.lost.Load() }
