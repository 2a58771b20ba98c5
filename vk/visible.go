package vk

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
)

// Schedulers and containers give GPUs to processes by environment variables that CUDA and HIP obey and Vulkan does not.
// visibility lists them, those that users set nearest to the program first. SLURM_ variables count all GPUs of the
// machine, as CUDA_VISIBLE_DEVICES does where Slurm does not hide the others.
var visibility = []struct {
	name   string
	vendor uint32 // PCI id of the vendor whose GPUs it counts, 0: all
}{
	{"CUDA_VISIBLE_DEVICES", vendorNVIDIA},
	{"NVIDIA_VISIBLE_DEVICES", vendorNVIDIA},
	{"HIP_VISIBLE_DEVICES", vendorAMD},
	{"ROCR_VISIBLE_DEVICES", vendorAMD},
	{"GPU_DEVICE_ORDINAL", vendorAMD},
	{"SLURM_STEP_GPUS", 0},
	{"SLURM_JOB_GPUS", 0},
}

// mostGPUs is more than a machine has.
const mostGPUs = 1024

// vendorAMD is the PCI id of AMD.
const vendorAMD = 0x1002

// visible returns the indices of the devices that the environment gives to this process, none where it says nothing,
// and a note that says why. A variable that names a GPU which does not exist is an error: another one may be somebody
// else's.
func visible(env func(string) string, devices []DeviceInfo) (list []int, note string, err error) {
	for _, v := range visibility {
		value := strings.TrimSpace(env(v.name))
		gpus := gpusOf(devices, v.vendor)
		if len(gpus) == 0 || value == "" || slices.Contains([]string{"all", "none", "void", "-1", "NoDevFiles"},
			value) {
			continue
		}
		setting := v.name + "=" + value
		places, why := placesOf(strings.Split(value, ","), gpus, devices)
		if len(places) == 0 {
			return nil, "", fault.WithHint(&callError{Call: "select device", Object: setting, Err: fmt.Errorf("%w: %s",
				ErrNoDevice, why)},
				"choose a device with "+fault.Setting("device")+" ("+fault.Command("devices")+
					" lists them), or correct the variable")
		}
		for _, n := range places {
			list = append(list, gpus[n])
		}
		if len(gpus) == 1 {
			return list, "", nil // there is nothing to choose
		}
		if v.name == "CUDA_VISIBLE_DEVICES" && strings.Contains(why, "PCI") &&
			env("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" {
			why += "; CUDA counts so with CUDA_DEVICE_ORDER=PCI_BUS_ID alone"
		}
		return list, fmt.Sprintf("because of %s, %s", setting, why), nil
	}
	return nil, "", nil
}

// chosen words that a device is taken, and why.
func (d *DeviceInfo) chosen(why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf("device %d (%s, %s) is selected %s", d.Index, d.Name, cmp.Or(d.PCI, d.UUID), why)
}

// allOf lists the devices that a process takes which is to take all: those that the environment gives to it, else every
// GPU, else every processor. Each counts once, whatever drivers it has. The note says what the environment left out.
func allOf(env func(string) string, devices []DeviceInfo) (list []DeviceInfo, note string, err error) {
	given, why, err := visible(env, devices)
	if err != nil {
		return nil, "", err
	}
	gpus := gpusOf(devices, 0)
	for _, i := range given {
		list = append(list, devices[i])
	}
	if len(list) > 0 {
		if why != "" && len(list) < len(gpus) {
			note = fmt.Sprintf("using %d of %d GPUs, %s", len(list), len(gpus), why)
		}
		return list, note, nil
	}
	for i, d := range devices {
		other := func(e DeviceInfo) bool { return e.UUID == d.UUID || d.PCI != "" && e.PCI == d.PCI }
		if len(d.Missing) == 0 && (len(gpus) == 0 || d.Type != CPU) && !slices.ContainsFunc(list, other) {
			list = append(list, devices[i])
		}
	}
	if len(list) == 0 && len(devices) > 0 {
		return nil, "", devices[0].refuse()
	}
	return list, "", nil
}

// gpusOf lists the devices of a vendor in the order of their PCI addresses, each once, whatever drivers it has. Those
// without address come last.
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

// placesOf finds the GPUs that a list of indices, ranges of them and UUIDs names among those of this machine, and says
// how; none with the reason where one of them is not there. As for CUDA the list ends with -1.
func placesOf(names []string, gpus []int, devices []DeviceInfo) (places []int, why string) {
	counted, named := true, 0
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "-1" && named > 0 {
			break
		}
		first, last, isRange := strings.Cut(name, "-")
		a, err := strconv.ParseUint(first, 10, 16)
		b := a
		if isRange && err == nil {
			b, err = strconv.ParseUint(last, 10, 16)
		}
		if err != nil || b < a || b-a > mostGPUs {
			n, how := byUUID(name, gpus, devices)
			if n < 0 {
				return nil, how
			}
			counted, why = false, how
			a, b = uint64(n), uint64(n)
		}
		for n := a; n <= b; n++ {
			if named++; !slices.Contains(places, int(n)) {
				places = append(places, int(n))
			}
		}
	}
	switch {
	case !counted && slices.Max(places) < len(gpus):
		return places, why
	case counted && len(places) == len(gpus):
		slices.Sort(places)
		for n := range places {
			places[n] = n
		}
		return places, fmt.Sprintf("which names as many as are seen here (%d), in PCI order", len(places))
	case slices.Max(places) < len(gpus):
		return places, "counted in PCI order"
	}
	return nil, fmt.Sprintf("there are %d, counted from 0", len(gpus))
}

// byUUID finds a GPU by its UUID, as in GPU- and the first digits or all.
func byUUID(name string, gpus []int, devices []DeviceInfo) (n int, why string) {
	uuid, isGPU := strings.CutPrefix(name, "GPU-")
	if strings.HasPrefix(name, "MIG-") {
		return -1, "a part of a GPU (MIG) is not a Vulkan device"
	}
	if isGPU && uuid != "" {
		for n, i := range gpus {
			if strings.HasPrefix(plainUUID(devices[i].UUID), plainUUID(uuid)) {
				return n, "by its UUID"
			}
		}
		if devices[gpus[0]].Vendor == vendorAMD && len(gpus) == 1 { // whose tools and drivers give different UUIDs
			return 0, "the only one that is seen"
		}
	}
	return -1, fmt.Sprintf("%.60q is not a GPU that Vulkan sees", name)
}

// plainUUID is a UUID without what may differ in how it is written: capitals, dashes, and the GPU- of NVIDIA's tools.
func plainUUID(s string) string {
	s = strings.ToLower(s)
	return strings.ReplaceAll(strings.TrimPrefix(s, "gpu-"), "-", "")
}

// isNamed says whether what a user gave is the UUID or the PCI address of a device with these.
func isNamed(given, uuid, pci string) bool {
	same := plainUUID(given) != "" && plainUUID(given) == plainUUID(uuid)
	return same || strings.Contains(given, ":") && samePCI(pci, given)
}

// samePCI compares an address with one that may be given without domain, or with a longer one, as nvidia-smi prints it.
func samePCI(address, given string) bool {
	given = strings.ToLower(given)
	if len(given) < len("65:00.0") || address == "" {
		return false
	}
	return strings.HasSuffix(address, given) || strings.HasSuffix(given, address)
}
