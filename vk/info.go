package vk

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"vksplat/internal/fault"
)

// Heap is a pool of memory of a device. Sizes are in bytes.
type Heap struct {
	Size        int64 `json:"size"`
	DeviceLocal bool  `json:"device_local"`
	// what this process may use now, by the driver's estimate; 0 if it gives none
	Budget int64 `json:"budget,omitempty"`
	Usage  int64 `json:"usage,omitempty"` // what this process uses, likewise
}

// DeviceInfo describes a physical device.
type DeviceInfo struct {
	Index         int        `json:"index"` // in Instance.Devices
	Name          string     `json:"name"`
	Driver        string     `json:"driver"`         // name and version, as the driver words them
	DriverVersion uint32     `json:"driver_version"` // in the vendor's own encoding
	API           Version    `json:"api"`            // the Vulkan version
	Vendor        uint32     `json:"vendor"`         // PCI id, or one of Khronos for who has none
	Type          DeviceType `json:"type"`
	UUID          string     `json:"uuid"`
	PCI           string     `json:"pci,omitempty"` // address, as in 0000:65:00.0, where the driver tells
	Limits        Limits     `json:"limits"`
	Features      Features   `json:"features"`
	Heaps         []Heap     `json:"heaps"`
	// what the device lacks of the floor; such a device cannot be opened
	Missing []string `json:"missing,omitempty"`

	handle   uint64
	family   uint32 // queue family
	identity string // of device, driver and driver version, for the pipeline cache

	types  []memoryType // of the profile that it stands in for
	faults faults
}

// describe looks up everything about a device.
func (in *Instance) describe(index int, handle uint64) (DeviceInfo, error) {
	core := readProperties(handle)
	d := DeviceInfo{Index: index, Name: core.name, DriverVersion: core.driver, Vendor: core.vendor,
		API: Version(core.api), Type: core.kind, handle: handle, Limits: core.limits}
	if !d.API.AtLeast(1, 2) {
		d.Missing = missing(d.API, Limits{}, Features{})[:1]
		return d, nil
	}
	have, r := in.shim.extensions(handle)
	if err := failed("vkEnumerateDeviceExtensionProperties", d.Name, r); err != nil {
		return d, err
	}
	exts := deviceExts{
		subgroup_control: cbool(have["VK_EXT_subgroup_size_control"]),
		atomic_float:     cbool(have["VK_EXT_shader_atomic_float"]),
		memory_budget:    cbool(have["VK_EXT_memory_budget"]), maintenance4: cbool(have["VK_KHR_maintenance4"]),
		executable_info: cbool(have["VK_KHR_pipeline_executable_properties"]),
		pci_bus:         cbool(have["VK_EXT_pci_bus_info"]),
		integer_dot:     cbool(have["VK_KHR_shader_integer_dot_product"]),
		memory_host:     cbool(have["VK_EXT_external_memory_host"] && in.shim.canImport(handle)),
	}
	caps := in.shim.caps(handle, exts)
	family, bits, hasQueue := in.shim.computeFamily(handle)
	d.family = family
	d.Driver = strings.TrimSpace(cText(caps.driver_name[:]) + " " + cText(caps.driver_info[:]))
	uuid := *(*[16]byte)(unsafe.Pointer(&caps.device_uuid))
	driver := *(*[16]byte)(unsafe.Pointer(&caps.driver_uuid))
	d.UUID = uuidText(uuid)
	if caps.has_pci != 0 {
		d.PCI = fmt.Sprintf("%04x:%02x:%02x.%x", caps.pci[0], caps.pci[1], caps.pci[2], caps.pci[3])
	}
	d.identity = fmt.Sprintf("%x %x %x %x %s", uuid, driver, core.driver, core.cacheUUID, d.Driver)
	d.Limits, d.Features = limitsOf(core, caps, bits), featuresOf(caps, exts)
	if err := d.standIn(); err != nil {
		return d, err
	}
	if d.types == nil {
		d.Heaps, _ = in.memory(handle, d.Features.MemoryBudget)
	}
	d.Missing = missing(d.API, d.Limits, d.Features)
	if !hasQueue {
		d.Missing = append(d.Missing, "a compute queue")
	}
	return d, nil
}

func (in *Instance) memory(handle uint64, budget bool) (heaps []Heap, types []memoryType) {
	m := in.shim.memory(handle, budget)
	for i := range m.n_types {
		types = append(types, memoryType{uint32(m.type_heap[i]), memoryFlags(m.type_flags[i])})
	}
	for i := range m.n_heaps {
		heaps = append(heaps, Heap{Size: clampInt64(uint64(m.heap_size[i])), DeviceLocal: m.heap_flags[i]&1 != 0,
			Budget: clampInt64(uint64(m.heap_budget[i])), Usage: clampInt64(uint64(m.heap_usage[i]))})
	}
	return heaps, types
}

// called names the device in messages: several of a machine may have one name.
func (d *DeviceInfo) called() string { return fmt.Sprintf("device %d, %s", d.Index, d.Name) }

// refuse returns the error of a device that does not reach the floor.
func (d *DeviceInfo) refuse() error {
	return fault.WithHint(&callError{Call: "open device", Object: d.Name, Err: fmt.Errorf("%w: %s", errMissingFeature,
		strings.Join(d.Missing, ", "))},
		"a newer driver may help; to list other devices: "+fault.Command("devices"))
}

// Unified reports whether the device's memory is the host's: on integrated devices and on the CPU.
func (d *DeviceInfo) Unified() bool { return d.Type == Integrated || d.Type == CPU }

// vendorNVIDIA is the PCI id of NVIDIA.
const vendorNVIDIA = 0x10DE

// ForwardProgress reports whether a workgroup that has begun goes on whatever the other workgroups of its dispatch do,
// so that they may wait for it. Vulkan promises that nowhere; it holds for NVIDIA's discrete GPUs. Software Vulkan runs
// workgroups in order of their number on several threads, but its compiler ends loops after 65535 turns, which is too
// few to wait for a thread that has no core.
func (d *DeviceInfo) ForwardProgress() bool { return d.Type == Discrete && d.Vendor == vendorNVIDIA }

// lanesVariable asks for kernels in a GPU's shape on software Vulkan, for tests.
const lanesVariable = "VKSPLAT_LANES"

// ShapedForCPU reports whether kernels take the shape that suits a processor: few lanes with much to do each.
func (d *DeviceInfo) ShapedForCPU() bool { return d.Type == CPU && os.Getenv(lanesVariable) != "gpu" }

// DefaultBudget returns the bytes of device memory that a process may take unless the user says otherwise: 80 % of the
// largest device-local heap, less where the driver says that others use it, and on unified memory at most half of the
// RAM that is available.
func (d *DeviceInfo) DefaultBudget() int64 {
	var best Heap
	for _, h := range d.Heaps {
		if h.DeviceLocal && h.Size > best.Size {
			best = h
		}
	}
	budget := best.Size / 5 * 4
	if free := best.Budget - best.Usage; best.Budget > 0 {
		budget = min(budget, max(free, 0))
	}
	if d.Unified() {
		budget = min(budget, availableRAM()/2)
	}
	return budget
}

// availableRAM returns the bytes of RAM that can be had without swapping, or a very large number where the system does
// not tell.
func availableRAM() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n << 10
			}
		}
	}
	return math.MaxInt64
}
