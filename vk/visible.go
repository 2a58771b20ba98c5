package vk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schedulers and containers give GPUs to processes by environment variables that CUDA and HIP obey and Vulkan does not. visibility lists them, those that
// users set nearest to the program first. SLURM_ variables count all GPUs of the machine, as CUDA_VISIBLE_DEVICES does where Slurm does not hide the others.
var visibility = []struct {
	name   string
	vendor uint32 // PCI id of the vendor whose GPUs it counts, 0: all
}{
	{"CUDA_VISIBLE_DEVICES", vendorNVIDIA},
	{"NVIDIA_VISIBLE_DEVICES", vendorNVIDIA},
	{"HIP_VISIBLE_DEVICES", vendorAMD},
	{"ROCR_VISIBLE_DEVICES", vendorAMD},
	{"SLURM_STEP_GPUS", 0},
	{"SLURM_JOB_GPUS", 0},
}

// vendorAMD is the PCI id of AMD.
const vendorAMD = 0x1002

// visible returns the index of the device that the environment gives to this process, -1 where it says nothing, and a note that says why. A variable that names
// a GPU which is not there is an error: another one may be somebody else's.
func visible(env func(string) string, devices []DeviceInfo) (index int, note string, err error) {
	for _, v := range visibility {
		value := strings.TrimSpace(env(v.name))
		gpus := gpusOf(devices, v.vendor)
		if len(gpus) == 0 || value == "" || slices.Contains([]string{"all", "none", "void", "-1", "NoDevFiles"}, value) {
			continue
		}
		setting := v.name + "=" + value
		n, why := firstOf(strings.Split(value, ","), gpus, devices)
		if n < 0 {
			return -1, "", &Error{Call: "select device", Object: setting, Err: fmt.Errorf("%w: %s", ErrNoDevice, why),
				Hint: "name one that vksplat devices lists with --device, or correct the variable"}
		}
		d := &devices[gpus[n]]
		if len(gpus) == 1 {
			return d.Index, "", nil // there is nothing to choose
		}
		if v.name == "CUDA_VISIBLE_DEVICES" && strings.Contains(why, "PCI") && env("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" {
			why += "; CUDA counts so with CUDA_DEVICE_ORDER=PCI_BUS_ID alone"
		}
		return d.Index, fmt.Sprintf("device %d (%s, %s) is chosen because of %s, %s", d.Index, d.Name, cmp.Or(d.PCI, d.UUID), setting, why), nil
	}
	return -1, "", nil
}

// gpusOf lists the devices of a vendor in the order of their PCI addresses, each once, whatever drivers it has. Those without address come last.
func gpusOf(devices []DeviceInfo, vendor uint32) (list []int) {
	for i, d := range devices {
		if d.Type == CPU || len(d.Missing) > 0 || vendor != 0 && d.Vendor != vendor {
			continue
		}
		same := func(k int) bool { return devices[k].UUID == d.UUID || d.PCI != "" && devices[k].PCI == d.PCI }
		if !slices.ContainsFunc(list, same) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		pa, pb := devices[a].PCI, devices[b].PCI
		if (pa == "") != (pb == "") {
			return strings.Compare(pb, pa)
		}
		return strings.Compare(pa, pb)
	})
	return list
}

// firstOf finds the first GPU that a list of indices, ranges of them and UUIDs names among those of this machine, and says how; -1 with the reason where it
// is none.
func firstOf(names []string, gpus []int, devices []DeviceInfo) (n int, why string) {
	count := 0
	for _, name := range names {
		first, last, isRange := strings.Cut(strings.TrimSpace(name), "-")
		a, err := strconv.ParseUint(first, 10, 16)
		b := a
		if isRange && err == nil {
			b, err = strconv.ParseUint(last, 10, 16)
		}
		if err != nil || b < a {
			return named(strings.TrimSpace(names[0]), gpus, devices)
		}
		if count == 0 {
			n = int(a)
		}
		count += int(b-a) + 1
	}
	switch {
	case count == len(gpus):
		return 0, fmt.Sprintf("which names as many as are seen here (%d): the first in PCI order", count)
	case n < len(gpus):
		return n, "counted in PCI order"
	}
	return -1, fmt.Sprintf("there are %d, counted from 0", len(gpus))
}

// named finds a GPU by its UUID, as in GPU- and the first digits or all.
func named(name string, gpus []int, devices []DeviceInfo) (n int, why string) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	uuid, isGPU := strings.CutPrefix(name, "GPU-")
	if strings.HasPrefix(name, "MIG-") {
		return -1, "a part of a GPU (MIG) is no device of Vulkan"
	}
	if isGPU && uuid != "" {
		for n, i := range gpus {
			if strings.HasPrefix(plain(devices[i].UUID), plain(uuid)) {
				return n, "by its UUID"
			}
		}
		if devices[gpus[0]].Vendor == vendorAMD && len(gpus) == 1 { // whose tools and drivers give different UUIDs
			return 0, "the only one that is seen"
		}
	}
	return -1, fmt.Sprintf("%.60q is none of the GPUs that Vulkan sees", name)
}

// samePCI compares an address with one that may be given without domain, or with a longer one, as nvidia-smi prints it.
func samePCI(address, given string) bool {
	given = strings.ToLower(given)
	if len(given) < len("65:00.0") || address == "" {
		return false
	}
	return strings.HasSuffix(address, given) || strings.HasSuffix(given, address)
}
