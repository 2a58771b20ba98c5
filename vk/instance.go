package vk

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"vksplat/internal/fault"
)

type InstanceOptions struct {
	Validation bool // turn on the validation layer with synchronization validation; VKSPLAT_VALIDATE=1 does so too
}

// Instance is a connection to the Vulkan loader and, through it, to the machine's drivers. Its methods may be called
// from several goroutines.
type Instance struct {
	shim     shimInstance
	devices  []DeviceInfo
	validate bool
	open     atomic.Int32 // devices not yet closed

	mu     sync.Mutex
	said   []string // messages of the validation layer so far
	closed bool
}

const (
	loaderVariable   = "VKSPLAT_LOADER"
	validateVariable = "VKSPLAT_VALIDATE"
	validationLayer  = "VK_LAYER_KHRONOS_validation"
)

// loadLoader returns the loader's vkGetInstanceProcAddr.
func loadLoader() (unsafe.Pointer, error) {
	names := loaderNames
	if s := os.Getenv(loaderVariable); s != "" {
		names = []string{s}
	}
	var first error
	for _, name := range names {
		p, err := openLoader(name)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fault.WithHint(&callError{Call: "load Vulkan", Object: names[0], Err: fmt.Errorf("%w: %w", ErrNoLoader,
		first)}, loaderHint)
}

// Open loads Vulkan and lists the devices. It fails with ErrNoLoader, errNoValidation or, when no driver answers,
// ErrNoDevice; Hint says what to install. Close ends what Open began.
func Open(o InstanceOptions) (in *Instance, err error) {
	procAddr, err := loadLoader()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = blameManifest(err, os.Getenv)
		}
	}()
	v := Version(loaderVersion(procAddr))
	if v == 0 { // it fails for lack of memory alone
		return nil, fault.WithHint(&callError{Call: "vkEnumerateInstanceVersion", Result: outOfHostMemory,
			Err: ErrNoLoader}, loaderHint)
	}
	if !v.AtLeast(1, 2) {
		return nil, fault.WithHint(&callError{Call: "load Vulkan", Object: "loader",
			Err: fmt.Errorf("%w: version %v, 1.2 is needed", ErrNoLoader, v)}, loaderHint)
	}
	if err := bindLoader(procAddr); err != nil {
		return nil, fault.WithHint(&callError{Call: "load Vulkan", Object: BackEnd, Err: err}, loaderHint)
	}
	validate := o.Validation || os.Getenv(validateVariable) == "1"
	if validate && !hasLayer(procAddr, validationLayer) {
		return nil, fault.WithHint(&callError{Call: "vkCreateInstance", Object: validationLayer, Err: errNoValidation},
			"install the layer: apt-get install vulkan-validationlayers (Debian, Ubuntu), or unset "+validateVariable)
	}
	// Whether there is VK_EXT_debug_utils, which names objects, is found out by trying: to list the extensions, the
	// loader loads all drivers, and ends them again.
	shim, call, r := createInstance(procAddr, uint32(version12), validate, true)
	if r == extensionMissing {
		shim, call, r = createInstance(procAddr, uint32(version12), validate, false)
	}
	if r == badDriver {
		return nil, fault.WithHint(&callError{Call: call, Result: r, Err: ErrNoDevice}, driverHint)
	}
	if err := failed(call, "", r); err != nil {
		return nil, err
	}
	in = &Instance{shim: shim, validate: validate}
	if err := in.list(); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

func (in *Instance) list() error {
	if err := bindInstance(in.shim.handle()); err != nil {
		return fault.WithHint(&callError{Call: "load Vulkan", Object: BackEnd, Err: err}, loaderHint)
	}
	handles, r := enumerateDevices(in.shim.handle())
	if err := failed("vkEnumeratePhysicalDevices", "", r); err != nil {
		return fault.WithHint(&callError{Call: "vkEnumeratePhysicalDevices", Result: r, Err: ErrNoDevice}, driverHint)
	}
	for i, h := range handles {
		d, err := in.describe(i, h)
		if err != nil {
			return err
		}
		in.devices = append(in.devices, d)
	}
	return nil
}

// Close ends the instance. Its devices must have been closed.
func (in *Instance) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := in.open.Load(); n > 0 {
		return invalid("close instance", "", "%d devices are still open", n)
	}
	if !in.closed {
		in.collect()
		in.closed = true
		in.shim.free()
	}
	return nil
}

// Messages returns the warnings and errors of the validation layer so far, after Close too.
func (in *Instance) Messages() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.collect()
	return slices.Clone(in.said)
}

// collect moves messages from the shim to in.said.
func (in *Instance) collect() {
	if in.closed {
		return
	}
	list, dropped := in.shim.messages()
	in.said = append(in.said, list...)
	if dropped > 0 {
		in.said = append(in.said, fmt.Sprintf("warning: %d more messages were dropped", dropped))
	}
}

// Devices returns the machine's devices, software ones and unsuitable ones included, in the loader's order.
func (in *Instance) Devices() []DeviceInfo { return slices.Clone(in.devices) }

// Select picks a device: by index, UUID or PCI address, or with "auto" (or "") the one that the environment gives to
// this process (see visible), else the best of those that reach the floor, where discrete ones come before integrated
// ones, then virtual ones, then software on the CPU. Note says what the environment decided, or warns that there is no
// GPU and says what driver to look for; it must be printed.
func (in *Instance) Select(what string) (info DeviceInfo, note string, err error) {
	if len(in.devices) == 0 {
		return info, "", fault.WithHint(&callError{Call: "select device", Object: what, Err: ErrNoDevice}, driverHint)
	}
	if what != "auto" && what != "" {
		return in.pick(what)
	}
	given, why, err := visible(os.Getenv, in.devices)
	if err != nil {
		return info, "", err
	}
	if len(given) > 0 {
		info = in.devices[given[0]]
		return info, info.chosen(why), nil
	}
	best := -1
	for i, d := range in.devices {
		if len(d.Missing) == 0 && (best < 0 || d.Type.rank() < in.devices[best].Type.rank()) {
			best = i
		}
	}
	if best < 0 {
		return info, "", in.devices[0].refuse()
	}
	info = in.devices[best]
	if info.Type == CPU {
		note = NoGPU(info.Name)
	}
	return info, note, nil
}

// NoGPU is Select's note of a run on the processor. What to install is the doctor's to say.
func NoGPU(name string) string {
	return fmt.Sprintf("no GPU with a Vulkan driver was found: running on the CPU (%s), many times slower; %s says "+
		"what to install", name, fault.Command("doctor"))
}

func DriverHint() string { return driverHint }

// SelectAll returns the devices that "all" means to this process: those that the environment gives to it (see visible),
// else all GPUs, else all processors that reach the floor, each once. Note says what the environment decided; it must
// be printed.
func (in *Instance) SelectAll() (list []DeviceInfo, note string, err error) {
	if len(in.devices) == 0 {
		return nil, "", fault.WithHint(&callError{Call: "select devices", Object: "all", Err: ErrNoDevice}, driverHint)
	}
	return allOf(os.Getenv, in.devices)
}

// pick finds the device that the user named.
func (in *Instance) pick(what string) (info DeviceInfo, note string, err error) {
	if i, err := strconv.Atoi(what); err == nil && len(what) < 8 {
		if i >= 0 && i < len(in.devices) {
			return in.devices[i], "", nil
		}
		return info, "", noSuch(what, fmt.Errorf("%w of this index: there are %d, counted from 0", ErrNoDevice,
			len(in.devices)))
	}
	for _, d := range in.devices {
		if isNamed(what, d.UUID, d.PCI) {
			return d, "", nil
		}
	}
	return info, "", noSuch(what, fmt.Errorf("%w of this UUID or PCI address", ErrNoDevice))
}

// noSuch is the error of a device that was named and is not there: the same call will not find it later.
func noSuch(what string, err error) error {
	return &fault.Error{Err: &callError{Call: "select device", Object: what, Err: err}, Kind: fault.ErrUsage,
		Hint: "list the devices with: " + fault.Command("devices")}
}

type Version uint32

const version12 = Version(1<<22 | 2<<12)

func (v Version) AtLeast(major, minor uint32) bool { return uint32(v)>>12 >= major<<10|minor }

// String returns v as in "1.3.230".
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff) }

func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// DeviceType is the sort of machine behind a device.
type DeviceType int

// The device types, with Vulkan's numbers.
const (
	OtherType DeviceType = iota
	Integrated
	Discrete
	Virtual
	CPU
)

// String returns "discrete", "integrated", "virtual", "cpu" or "other".
func (t DeviceType) String() string {
	switch t {
	case Integrated:
		return "integrated"
	case Discrete:
		return "discrete"
	case Virtual:
		return "virtual"
	case CPU:
		return "cpu"
	}
	return "other"
}

func (t DeviceType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *DeviceType) UnmarshalText(text []byte) error {
	for *t = OtherType; *t <= CPU; *t++ {
		if t.String() == string(text) {
			return nil
		}
	}
	return fmt.Errorf("no type of device is called %q", text)
}

// rank orders the types for automatic choice.
func (t DeviceType) rank() int {
	return slices.Index([]DeviceType{Discrete, Integrated, Virtual, OtherType, CPU}, t)
}

// uuidText writes a UUID in the usual form.
func uuidText(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
