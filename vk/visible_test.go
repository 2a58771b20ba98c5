package vk

import (
	"errors"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	const a, b = "aaaa0000-1111-2222-3333-444455556666", "bbbb0000-1111-2222-3333-444455556666"
	lavapipe := DeviceInfo{Index: 0, Name: "llvmpipe", Type: CPU, UUID: "6d657361"}
	late := DeviceInfo{Index: 1, Name: "late", Type: Discrete, Vendor: vendorNVIDIA, UUID: b, PCI: "0001:02:00.0"}
	early := DeviceInfo{Index: 2, Name: "early", Type: Discrete, Vendor: vendorNVIDIA, UUID: a, PCI: "0000:65:00.0"}
	twin := DeviceInfo{Index: 3, Name: "early by another driver", Type: Discrete, Vendor: vendorNVIDIA, UUID: "cccc", PCI: early.PCI}
	amd := DeviceInfo{Index: 1, Name: "amd", Type: Discrete, Vendor: vendorAMD, UUID: "00000000-0300", PCI: "0000:03:00.0"}
	weak := DeviceInfo{Index: 1, Name: "weak", Type: Discrete, Vendor: vendorNVIDIA, UUID: "dddd", Missing: []string{"x"}}
	two := []DeviceInfo{lavapipe, late, early, twin}
	for _, c := range []struct {
		devices []DeviceInfo
		env     string // name=value, spaces between
		want    int
		note    string // a part of it, or of the error
	}{
		{two, "", -1, ""},
		{two, "CUDA_VISIBLE_DEVICES=", -1, ""},
		{two, "CUDA_VISIBLE_DEVICES=-1 NVIDIA_VISIBLE_DEVICES=all", -1, ""},
		{two, "CUDA_VISIBLE_DEVICES=0", 2, "CUDA counts so with CUDA_DEVICE_ORDER"},
		{two, "CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID SLURM_JOB_GPUS=0", 1, "device 1 (late, 0001:02:00.0) is chosen because of CUDA_VISIBLE_DEVICES=1, counted in PCI order"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-" + b, 1, "by its UUID"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-aaaa", 2, "by its UUID"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-eeee", -2, "none of the GPUs"},
		{two, "CUDA_VISIBLE_DEVICES=MIG-aaaa", -2, "MIG"},
		{two, "CUDA_VISIBLE_DEVICES=5", -2, "there are 2"},
		{two, "CUDA_VISIBLE_DEVICES=x", -2, "none of the GPUs"},
		{two, "CUDA_VISIBLE_DEVICES=6,7", 2, "as many as are seen here (2)"},
		{two, "SLURM_STEP_GPUS=1 SLURM_JOB_GPUS=0", 1, "SLURM_STEP_GPUS=1, counted in PCI order"},
		{two, "SLURM_JOB_GPUS=4-5", 2, "as many"},
		{two, "SLURM_JOB_GPUS=0-1", 2, "SLURM_JOB_GPUS"},
		{two, "HIP_VISIBLE_DEVICES=1", -1, ""},
		{two[:2], "SLURM_JOB_GPUS=3", 1, ""}, // the others are hidden
		{[]DeviceInfo{lavapipe}, "CUDA_VISIBLE_DEVICES=0 SLURM_JOB_GPUS=0", -1, ""},
		{[]DeviceInfo{lavapipe, weak}, "CUDA_VISIBLE_DEVICES=0", -1, ""},
		{[]DeviceInfo{lavapipe, amd}, "ROCR_VISIBLE_DEVICES=GPU-1234567890abcdef", 1, ""},
	} {
		values := map[string]string{}
		for field := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(field, "=")
			values[name] = value
		}
		got, note, err := visible(func(name string) string { return values[name] }, c.devices)
		if c.want == -2 {
			if !errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), c.note) {
				t.Errorf("%s: device %d, error %v, want one of %q", c.env, got, err, c.note)
			}
			continue
		}
		if err != nil || got != c.want || !strings.Contains(note, c.note) || (c.note == "") != (note == "") {
			t.Errorf("%s: device %d, want %d; note %q, want %q; error %v", c.env, got, c.want, note, c.note, err)
		}
	}
}

func TestSamePCI(t *testing.T) {
	for given, want := range map[string]bool{"0000:65:00.0": true, "65:00.0": true, "00000000:65:00.0": true, "0001:65:00.0": false, "5:00.0": false, ":65:00.0": true, "65:00.1": false} {
		if samePCI("0000:65:00.0", given) != want {
			t.Errorf("%s: %v", given, !want)
		}
	}
	if samePCI("", "0000:65:00.0") {
		t.Error("a device without an address has one")
	}
}
