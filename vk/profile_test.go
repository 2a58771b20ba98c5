package vk

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestProfiles reads the profile of every device: it reaches the floor, kernels get a subgroup size that they can use,
// and buffers the heaps that they should.
func TestProfiles(t *testing.T) {
	files := must.Get(filepath.Glob("profiles/*.jsonc"))(t)
	want := map[string]struct {
		subgroup                uint32
		local, upload, readback uint32 // heaps
	}{
		"adreno-740": {64, 0, 0, 0}, "arc-a770": {32, 0, 1, 1}, "iris-xe": {32, 0, 0, 0}, "m2": {32, 0, 0, 0},
		"rtx3060": {32, 0, 1, 1}, "rx6600": {64, 0, 1, 1},
	}
	if len(files) != len(want) {
		t.Errorf("%d profiles, want %d", len(files), len(want))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonc")
		var d DeviceInfo
		if err := d.ReadProfile(file); err != nil {
			t.Error(err)
			continue
		}
		if lacks := missing(version12, d.Limits, d.Features); len(lacks) > 0 {
			t.Errorf("%s lacks %v", name, lacks)
		}
		heap := func(kind MemoryKind) uint32 {
			i, ok := chooseType(d.types, ^uint32(0), kind)
			if !ok {
				t.Errorf("%s has no %v memory", name, kind)
			}
			return d.types[i].Heap
		}
		w := want[name]
		if d.Limits.SubgroupSize != w.subgroup || heap(DeviceLocal) != w.local || heap(Upload) != w.upload ||
			heap(Readback) != w.readback || d.Unified() != (w.upload == w.local) {
			t.Errorf("%s: subgroups of %d, heaps %d %d %d, want %+v", name, d.Limits.SubgroupSize, heap(DeviceLocal),
				heap(Upload), heap(Readback), w)
		}
		ks := newKernels(&Device{info: d})
		if s, err := ks.shape(scanKernel, []uint32{0}); err != nil || (s.required == 0) != (d.Limits.MinSubgroupSize ==
			d.Limits.MaxSubgroupSize) {
			t.Errorf("%s: scan requires %d: %v", name, s.required, err)
		}
	}
}

// TestHeapsOfProfile wants each heap of a profile to be full by itself, and the files of several profiles to add up.
func TestHeapsOfProfile(t *testing.T) {
	heaps := writeFile(t, `{"deviceType": "discrete", // as on a card
		"memoryHeaps": [{"size": 8388608, "device_local": true}, {"size": 4194304}],
		"memoryTypes": [{"heapIndex": 0, "propertyFlags": "deviceLocal"},
			{"heapIndex": 1, "propertyFlags": "hostVisible hostCoherent"}]}`)
	t.Setenv(limitsVariable, heaps)
	in := testInstance(t)
	if info := in.devices[0]; info.Type != Discrete || info.Unified() || info.DefaultBudget() != 8388608/5*4 {
		t.Errorf("%v, budget %d", info.Type, info.DefaultBudget())
	}
	d := openDevice(t, in, DeviceOptions{Budget: 64 << 20})
	for kind, size := range map[MemoryKind]int64{DeviceLocal: 8 << 20, Upload: 3 << 20} {
		must.Get(d.Alloc(kind, size, "fits"))(t)
		if _, err := d.Alloc(kind, 2<<20, "does not"); !RefusedByDriver(err) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	t.Setenv(limitsVariable, heaps+string(filepath.ListSeparator)+writeFile(t, `{"refusedFrom": 2}`))
	d = openDevice(t, testInstance(t), DeviceOptions{Budget: 64 << 20})
	must.Get(d.Alloc(DeviceLocal, 1<<20, "first"))(t)
	if _, err := d.Alloc(Upload, 4, "second"); !RefusedByDriver(err) {
		t.Error(err)
	}
	for _, text := range []string{`{"memoryTypes": [{"heapIndex": 0}]}`, `{"memoryHeaps": [{"size": 1}]}`,
		`{"memoryHeaps": [{"size": 1}], "memoryTypes": [{"heapIndex": 1}]}`, `{"deviceType": "large"}`,
		`{"memoryHeaps": [{"size": 1}], "memoryTypes": [{"propertyFlags": "hostVisible cached"}]}`} {
		t.Setenv(limitsVariable, writeFile(t, text))
		if _, err := Open(InstanceOptions{}); !errors.Is(err, errBadLimits) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
