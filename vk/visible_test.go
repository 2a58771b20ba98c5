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
	twin := DeviceInfo{Index: 3, Name: "early by another driver", Type: Discrete, Vendor: vendorNVIDIA, UUID: "cccc",
		PCI: early.PCI}
	amd := DeviceInfo{Index: 1, Name: "amd", Type: Discrete, Vendor: vendorAMD, UUID: "00000000-0300",
		PCI: "0000:03:00.0"}
	weak := DeviceInfo{Index: 1, Name: "weak", Type: Discrete, Vendor: vendorNVIDIA, UUID: "dddd",
		Missing: []string{"x"}}
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
		{two, "CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID SLURM_JOB_GPUS=0", 1,
			"device 1 (late, 0001:02:00.0) is selected because of CUDA_VISIBLE_DEVICES=1, counted in PCI order"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-" + b, 1, "by its UUID"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-aaaa", 2, "by its UUID"},
		{two, "CUDA_VISIBLE_DEVICES=GPU-eeee", -2, "is not a GPU"},
		{two, "CUDA_VISIBLE_DEVICES=MIG-aaaa", -2, "MIG"},
		{two, "CUDA_VISIBLE_DEVICES=5", -2, "there are 2"},
		{two, "CUDA_VISIBLE_DEVICES=x", -2, "is not a GPU"},
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
		list, note, err := visible(func(name string) string { return values[name] }, c.devices)
		got := -1
		if len(list) > 0 {
			d := &c.devices[list[0]]
			got, note = d.Index, d.chosen(note)
		}
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

// TestAllOf wants "all" to mean what the environment gives to a process, as the choice of one device does.
func TestAllOf(t *testing.T) {
	gpu := func(i int, name string, vendor uint32, uuid, pci string) DeviceInfo {
		return DeviceInfo{Index: i, Name: name, Type: Discrete, Vendor: vendor, UUID: uuid, PCI: pci}
	}
	lavapipe := DeviceInfo{Index: 0, Name: "cpu", Type: CPU, UUID: "6d657361"}
	four := []DeviceInfo{lavapipe, gpu(1, "c", vendorNVIDIA, "cc-1", "0000:81:00.0"),
		gpu(2, "a", vendorNVIDIA, "aa-1", "0000:01:00.0"),
		gpu(3, "d", vendorNVIDIA, "dd-1", "0001:02:00.0"), gpu(4, "b", vendorNVIDIA, "bb-1", "0000:41:00.0"),
		gpu(5, "twin", vendorNVIDIA, "ee-1", "0000:41:00.0")}
	mixed := []DeviceInfo{gpu(0, "n", vendorNVIDIA, "aa-1", "0000:01:00.0"),
		gpu(1, "x", vendorAMD, "bb-1", "0000:02:00.0"), gpu(2, "y", vendorAMD, "cc-1", "0000:03:00.0")}
	for _, c := range []struct {
		devices []DeviceInfo
		env     string
		want    string // names in order, or the error's text behind a !
		note    string // a part of it
	}{
		{four, "", "c a d b", ""},
		{four, "CUDA_VISIBLE_DEVICES=2", "c",
			"using 1 of 4 GPUs, because of CUDA_VISIBLE_DEVICES=2, counted in PCI order"},
		{four, "CUDA_VISIBLE_DEVICES=3,0", "d a", "2 of 4"},
		{four, "CUDA_VISIBLE_DEVICES=0,0,1", "a b", "2 of 4"},
		{four, "CUDA_VISIBLE_DEVICES=1,-1,2", "b", "1 of 4"},
		{four, "CUDA_VISIBLE_DEVICES=GPU-cc,GPU-BB1", "c b", "by its UUID"},
		{four, "CUDA_VISIBLE_DEVICES=GPU-cc,2,0", "c a", "2 of 4"},
		{four, "CUDA_VISIBLE_DEVICES=0,4", "!there are 4", ""},
		{four, "CUDA_VISIBLE_DEVICES=0,GPU-77", "!is not a GPU", ""},
		{four, "CUDA_VISIBLE_DEVICES=0-65535", "!is not a GPU", ""},
		{four, "CUDA_VISIBLE_DEVICES=GPU-aa,9", "!there are 4", ""},
		{four, "SLURM_JOB_GPUS=1-2", "b c", "SLURM_JOB_GPUS=1-2"},
		{four, "SLURM_JOB_GPUS=0,2-3 SLURM_STEP_GPUS=3", "d", "SLURM_STEP_GPUS"},
		{four, "SLURM_JOB_GPUS=4-7", "a b c d", ""}, // others are hidden
		{four, "NVIDIA_VISIBLE_DEVICES=all SLURM_JOB_GPUS=1", "b", "SLURM_JOB_GPUS"},
		{four, "CUDA_VISIBLE_DEVICES=-1", "c a d b", ""},
		{mixed, "GPU_DEVICE_ORDINAL=1", "y", "GPU_DEVICE_ORDINAL"},
		{mixed, "ROCR_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=1", "x", "ROCR_VISIBLE_DEVICES"},
		{mixed, "CUDA_VISIBLE_DEVICES=0", "n", ""},
		{four[:1], "CUDA_VISIBLE_DEVICES=0", "cpu", ""},
		{[]DeviceInfo{{Name: "weak", Type: Discrete, Missing: []string{"x"}}}, "", "!weak", ""},
	} {
		values := map[string]string{}
		for field := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(field, "=")
			values[name] = value
		}
		list, note, err := allOf(func(name string) string { return values[name] }, c.devices)
		var names []string
		for _, d := range list {
			names = append(names, d.Name)
		}
		if text, wrong := strings.CutPrefix(c.want, "!"); wrong {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, error %v, want one of %q", c.env, names, err, text)
			}
			continue
		}
		if got := strings.Join(names, " "); err != nil || got != c.want || !strings.Contains(note, c.note) ||
			c.note == "" && note != "" {
			t.Errorf("%s: %q, want %q; note %q, want %q; error %v", c.env, got, c.want, note, c.note, err)
		}
	}
}

// TestNames has a device be named in every way in which tools print UUIDs and PCI addresses, and by nothing else.
func TestNames(t *testing.T) {
	const uuid, pci = "aaaa0000-1111-2222-3333-444455556666", "0000:65:00.0"
	for given, want := range map[string]bool{
		uuid: true, strings.ToUpper(uuid): true, "GPU-" + uuid: true, "gpu-" + uuid: true,
		"aaaa0000111122223333444455556666": true,
		pci:                                true, "65:00.0": true, "00000000:65:00.0": true,
		"": false, "-": false, "GPU-": false, "0": false, "aaaa0000": false, ":": false, "65:00.1": false,
		"0001:65:00.0": false, uuid + "0": false,
	} {
		if isNamed(given, uuid, pci) != want {
			t.Errorf("%q: %v", given, !want)
		}
	}
	if isNamed("", "", "") || isNamed(":", "", "") || isNamed(pci, uuid, "") {
		t.Error("a device without UUID or address is named by nothing")
	}
	in := &Instance{devices: []DeviceInfo{{Index: 0, UUID: "bb", PCI: "0000:01:00.0"},
		{Index: 1, UUID: uuid, PCI: pci}}}
	for what, want := range map[string]int{"1": 1, "GPU-" + uuid: 1, pci: 1, "01:00.0": 0, "2": -1, "02:00.0": -1,
		"GPU-": -1, "11111111": -1} {
		d, _, err := in.Select(what)
		if want < 0 && !errors.Is(err, ErrNoDevice) || want >= 0 && (err != nil || d.Index != want) {
			t.Errorf("Select(%q) = %d, %v, want %d", what, d.Index, err, want)
		}
	}
}

func TestSamePCI(t *testing.T) {
	for given, want := range map[string]bool{"0000:65:00.0": true, "65:00.0": true, "00000000:65:00.0": true,
		"0001:65:00.0": false, "5:00.0": false, ":65:00.0": true, "65:00.1": false} {
		if samePCI("0000:65:00.0", given) != want {
			t.Errorf("%s: %v", given, !want)
		}
	}
	if samePCI("", "0000:65:00.0") {
		t.Error("a device without an address has one")
	}
}
