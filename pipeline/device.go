package pipeline

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"vksplat/internal/fault"
	"vksplat/pipeline/failure"
	"vksplat/vk"
)

// Kinds of failure that a caller may want to tell apart, for errors.Is.
var (
	ErrNoDevice    = vk.ErrNoDevice
	ErrDeviceLost  = vk.ErrDeviceLost
	ErrOutOfMemory = vk.ErrOutOfMemory
	// ErrNoSplats says that training diverged: nothing is left of the model. The photos and the poses do not belong
	// together then.
	ErrNoSplats = fault.Sentinel(fault.ErrData, "every splat was pruned: nothing left to train",
		"check that the photos and the poses match: splats that no photo supports are pruned.")
	// ErrDiverged says that the loss or the model is no longer finite.
	ErrDiverged = failure.ErrDiverged
	// ErrTooMany says that the model is larger than its ceiling before training begins.
	ErrTooMany = fault.Sentinel(fault.ErrUsage, "too many splats",
		"raise "+fault.Setting("max-splats")+", or start with fewer points.")
	// ErrTooSmall says that the memory budget cannot hold what was asked for.
	ErrTooSmall = failure.ErrTooSmall
	// ErrLittleRAM says that the budget of host memory cannot hold what was asked for.
	ErrLittleRAM = failure.ErrLittleRAM
)

var (
	// errUnreachable says that no refinement makes the number of splats that was asked for.
	errUnreachable = fault.Sentinel(fault.ErrUsage, "number of splats out of reach",
		fmt.Sprintf("train more steps, refine from an earlier step (%s), to a later one (%s) or more often "+
			"(%s), or ask for another number.",
			fault.Setting("refine-start"), fault.Setting("refine-stop"), fault.Setting("refine-every")))
	// errFewSplats says that there are more devices than splats to deal out.
	errFewSplats = fault.Sentinel(fault.ErrUsage, "a device would have none", fewerDevices)
	// errManyDevices says that more devices are named than can train one scene.
	errManyDevices = fault.Sentinel(fault.ErrUsage, "too many devices", fewerDevices)
	fewerDevices   = "give " + fault.Setting("devices") + " a shorter list."
)

// DeviceOptions choose a device.
type DeviceOptions struct {
	// "auto" or "": discrete, then integrated, then virtual, then a CPU driver; or an index, UUID or PCI address of
	// ListDevices
	Select string
	// hard ceiling of device memory: bytes, with an optional K, M, G or KiB, MiB, GiB, or a percentage of the heap; "":
	// 80%
	MaxVRAM string
	// ceiling of host memory, in the same form; a percentage is of all RAM; "": half of what is available. Where the
	// device uses RAM it counts as RAM.
	MaxRAM string
}

// Device is an opened device.
type Device struct {
	instance *vk.Instance
	dev      *vk.Device
	note     string
	host     int64 // ceiling of host memory, without what the device takes of it
	driver   int64 // host memory that opening the device took
	vram     bool  // the ceiling of device memory was given
}

// MemorySetting names the setting of the ceiling of device memory.
func (d *Device) MemorySetting() string {
	if unified(d) && !d.vram {
		return "max-ram"
	}
	return "max-vram"
}

// OpenDevice opens a device.
func OpenDevice(o DeviceOptions) (*Device, error) {
	programOnce.Do(func() { programBytes = notGo() })
	before := notGo()
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return nil, err
	}
	d := &Device{instance: in}
	if err := d.open(o, before); err != nil {
		in.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) open(o DeviceOptions, before int64) error {
	if o.Select == "" {
		o.Select = "auto"
	}
	info, note, err := d.instance.Select(o.Select)
	if err != nil {
		return err
	}
	budget, host, err := memoryBudgets(o, info.DefaultBudget(), info.Unified(), systemMemory())
	if err != nil {
		return err
	}
	d.note, d.host, d.vram = note, host, o.MaxVRAM != ""
	d.dev, err = d.instance.NewDevice(info, vk.DeviceOptions{Budget: budget, CacheDir: cacheDir()})
	d.driver = driverBytes(programBytes + notGo() - before)
	return err
}

// programBytes are the resident bytes that were not Go's before the first device was opened: the program's code.
var (
	programOnce  sync.Once
	programBytes int64
)

// notGo returns the resident bytes that are not Go's; 0 or less if they are unknown.
func notGo() int64 { return residentBytes() - goBytes() }

// driverMost is the largest result of driverBytes.
var driverMost atomic.Int64

// driverBytes returns the RAM of program code and drivers, where took was measured when a device was opened: libraries
// stay loaded, so it is the most of all openings. It is rounded up, so that equal runs have equal plans.
func driverBytes(took int64) int64 {
	const step = 16 << 20
	took = max(took+step-1, 0) / step * step
	for {
		most := driverMost.Load()
		if took <= most {
			return most
		}
		if driverMost.CompareAndSwap(most, took) {
			return took
		}
	}
}

// memoryBudgets returns the ceilings of device and host memory; standard is the device's default. On unified memory
// they are parts of one pool.
func memoryBudgets(o DeviceOptions, standard int64, unified bool, m hostMemory) (device, host int64, err error) {
	pool, err := hostBudget(o.MaxRAM, m)
	if err != nil {
		return 0, 0, err
	}
	share, least := unifiedShares(pool, 0, false)
	if unified {
		standard = min(standard, share)
	}
	if device, err = parseBudget(o.MaxVRAM, standard); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", fault.Setting("max-vram"), err)
	}
	if !unified {
		return device, pool, nil
	}
	if o.MaxVRAM == "" && device == share {
		return device, least, nil // of a pool that is all the host's, the device's byte counts as nothing
	}
	_, host = unifiedShares(pool, device, true)
	// without --max-ram, the given device memory must leave enough of the pool
	if o.MaxRAM == "" {
		host = max(host, least)
	}
	return device, host, nil
}

// cacheDir returns the folder of compiled pipelines, or "" if there is none.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "vksplat")
}

// parseBudget reads --max-vram; standard is 80 % of the device's memory.
func parseBudget(s string, standard int64) (int64, error) {
	s = strings.TrimSpace(s)
	bad := fault.Usagef("give bytes as in 6000000000, 6G or 512MiB, or a share as in 80%",
		"%q is not an amount of memory", s)
	if s == "" {
		return standard, nil
	}
	if p, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(v > 0 && v <= 100) {
			return 0, bad
		}
		return int64(float64(standard) * v / 80), nil
	}
	unit := 1.0
	lower := strings.ToLower(s)
	for _, u := range []struct {
		suffix string
		bytes  float64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"k", 1 << 10},
		{"m", 1 << 20}, {"g", 1 << 30}} {
		if p, ok := strings.CutSuffix(lower, u.suffix); ok {
			lower, unit = strings.TrimSpace(p), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(lower, 64)
	if err != nil || !(v*unit >= 1) || v*unit > math.MaxInt64/2 {
		return 0, bad
	}
	return int64(v * unit), nil
}

// ParseBytes reads a number of bytes: as in 4000000000, 4G or 3.5GiB.
func ParseBytes(s string) (int64, error) {
	if t := strings.TrimSpace(s); t == "" || strings.HasSuffix(t, "%") {
		return 0, fmt.Errorf("parse bytes %q: no number of bytes", s)
	}
	return parseBudget(s, 0)
}

// BytesText words a number of bytes, as in "1.5 MiB".
func BytesText(n int64) string { return vk.BytesText(n) }

// Name returns the device's name and driver.
func (d *Device) Name() string { return d.dev.Info().Name }

// Driver returns the driver's name and version.
func (d *Device) Driver() string { return d.dev.Info().Driver }

// Note returns what the user should know about the choice of device, or "".
func (d *Device) Note() string { return d.note }

// OnCPU reports whether the device is software on the CPU.
func (d *Device) OnCPU() bool { return d.dev.Info().Type == vk.CPU }

// NoGPU reports whether that is so because the machine has no GPU for this program.
func (d *Device) NoGPU() bool { return d.note == vk.NoGPU(d.Name()) }

// Budget returns the hard ceiling of device memory, in bytes.
func (d *Device) Budget() int64 { return d.dev.Budget() }

// Peak returns how much of the device was taken at most.
func (d *Device) Peak() int64 { return d.dev.Stats().PeakAllocated }

// SetBudget changes the ceiling of the device memory taken. It never gets below what is taken already.
func (d *Device) SetBudget(bytes int64) { d.dev.SetBudget(bytes) }

// RAM returns the ceiling of host memory, in bytes, beside what the device takes of it.
func (d *Device) RAM() int64 { return d.host }

// Pipelines says what compiling kernels took so far: how many, seconds of the host, and whether there were those of an
// earlier run to begin with.
func (d *Device) Pipelines() (n int, seconds float64, cached bool) {
	p := d.dev.Pipelines()
	return p.N, p.Seconds, p.Cached
}

// ValidationMessages returns what the validation layer said, if VKSPLAT_VALIDATE=1 turned it on.
func (d *Device) ValidationMessages() []string { return d.instance.Messages() }

// Close closes the device. Everything made on it must be closed before.
func (d *Device) Close() error { return errors.Join(d.dev.Close(), d.instance.Close()) }

// DeviceSummary describes a device of the machine.
type DeviceSummary struct {
	Index       int         `json:"index"`
	Name        string      `json:"name"`
	Type        string      `json:"type"`
	Driver      string      `json:"driver"`
	API         string      `json:"api"`
	UUID        string      `json:"uuid"`
	PCI         string      `json:"pci,omitempty"` // address, if the driver has it
	MemoryBytes int64       `json:"memory_bytes"`  // of the largest device-local heap
	Usable      bool        `json:"usable"`
	Missing     []string    `json:"missing,omitempty"` // what the device lacks
	Limits      vk.Limits   `json:"limits"`
	Features    vk.Features `json:"features"`
}

// ListDevices lists the machine's devices, usable or not.
func ListDevices() ([]DeviceSummary, error) {
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var list []DeviceSummary
	for _, i := range in.Devices() {
		list = append(list, summaryOf(i))
	}
	return list, nil
}

// FindDevices describes the devices that OpenDevices would open, without opening them: all, or indices, UUIDs, PCI
// addresses or auto, separated by commas. Note is to be printed.
func FindDevices(list string) (devices []DeviceSummary, note string, err error) {
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	if list == "all" {
		all, note, err := in.SelectAll()
		for _, i := range all {
			devices = append(devices, summaryOf(i))
		}
		return devices, note, err
	}
	for name := range strings.SplitSeq(list, ",") {
		info, said, err := in.Select(strings.TrimSpace(name))
		if err != nil {
			return nil, "", err
		}
		devices, note = append(devices, summaryOf(info)), said
	}
	return devices, note, nil
}

// Summary describes the device.
func (d *Device) Summary() DeviceSummary { return summaryOf(d.dev.Info()) }

func summaryOf(i vk.DeviceInfo) DeviceSummary {
	s := DeviceSummary{Index: i.Index, Name: i.Name, Type: i.Type.String(), Driver: i.Driver, API: fmt.Sprint(i.API),
		UUID: i.UUID, PCI: i.PCI,
		Usable: len(i.Missing) == 0, Missing: i.Missing, Limits: i.Limits, Features: i.Features}
	for _, h := range i.Heaps {
		if h.DeviceLocal {
			s.MemoryBytes = max(s.MemoryBytes, h.Size)
		}
	}
	return s
}
