package vk

import (
	"errors"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
)

// TestPhantom measures a list of buffers that are not there; it cannot be built.
func TestPhantom(t *testing.T) {
	d := testDevice(t)
	r := NewRecorder(d)
	s := r.Scratch("scratch", 1<<20)
	r.Fill(s, 1)
	r.Copy(d.Phantom(1<<20, "phantom"), s)
	before := d.Stats().AllocCalls
	if got := r.ScratchRegions(); !slices.Equal(got, []int64{1 << 20}) {
		t.Errorf("%d bytes of scratch", got)
	}
	pool := d.NewScratchPool()
	defer pool.Close()
	if _, err := r.Build("phantom", pool, BuildOptions{}); err == nil {
		t.Error("a list with a phantom was built")
	}
	if d.Stats().AllocCalls != before {
		t.Error("memory was taken")
	}
}

// TestLimitHeap lets the driver seem to run out of memory.
func TestLimitHeap(t *testing.T) {
	d := testDevice(t)
	d.LimitHeap(d.Stats().Allocated + d.Stats().HostAllocated + 1<<20)
	_, err := d.Alloc(DeviceLocal, 2<<20, "too much")
	if !errors.Is(err, ErrOutOfMemory) || !RefusedByDriver(err) {
		t.Errorf("got %v", err)
	}
	v := must.Get(d.Alloc(DeviceLocal, 1<<19, "enough"))(t)
	must.Do(t, d.Free(v))
	d.LimitHeap(0)
	v = must.Get(d.Alloc(DeviceLocal, 2<<20, "enough again"))(t)
	d.SetBudget(1)
	if s := d.Stats(); s.Budget != s.Allocated || s.Allocated < 2<<20 {
		t.Errorf("a budget of %d bytes with %d taken", s.Budget, s.Allocated)
	}
	if _, err := d.Alloc(DeviceLocal, 64<<20, "above the budget"); !errors.Is(err, ErrOutOfMemory) ||
		RefusedByDriver(err) {
		t.Errorf("got %v", err)
	}
	must.Do(t, d.Free(v))
}
