package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vksplat/vk"
)

// OpenDevices opens the devices that a list names: "all" for every one that can be used, without processors where there is a GPU, or indices and UUIDs of
// ListDevices, separated by commas. One may be named twice: it then works as two, which shares its memory and gains nothing but a test. The ceilings of o are
// of each device.
func OpenDevices(o DeviceOptions, list string) (devices []*Device, err error) {
	names := strings.Split(list, ",")
	if list == "all" {
		if names, err = usableDevices(); err != nil {
			return nil, err
		}
	}
	if len(names) > mostDevices {
		return nil, fmt.Errorf("pipeline: open devices: %w: %d, and %d can train one scene", ErrManyDevices, len(names), mostDevices)
	}
	for _, name := range names {
		one := o
		one.Select = strings.TrimSpace(name)
		d, err := OpenDevice(one)
		if err != nil {
			return nil, errors.Join(err, CloseDevices(devices))
		}
		devices = append(devices, d)
	}
	shareRAM(devices)
	return devices, nil
}

// TeamPays is how many splats a model has to end with for --devices auto to take several devices. On two NVIDIA H200 two are 1.3 times as fast at as many
// views from there on, and with a tenth of it 1.2 times (docs/devices.md); but runs as small as that take seconds, and one device needs no larger batches.
const TeamPays = 500_000

// OpenAlike opens up to n devices like d, for a team with it.
func (d *Device) OpenAlike(o DeviceOptions, n int) (devices []*Device, err error) {
	list, err := ListDevices()
	if err != nil {
		return nil, err
	}
	names := alike(list, d.Summary())
	for _, name := range names[:min(n, len(names), mostDevices-1)] {
		o.Select = name
		one, err := OpenDevice(o)
		if err != nil {
			return nil, errors.Join(err, CloseDevices(devices))
		}
		devices = append(devices, one)
	}
	return devices, nil
}

// Alike returns how many other devices of the machine are like d.
func (d *Device) Alike() (int, error) {
	list, err := ListDevices()
	return len(alike(list, d.Summary())), err
}

// alike lists the UUIDs of the devices of a list that are of the kind of one of them: GPUs of one name and driver with memory of their own. A team is as fast as
// its slowest device, and those that share RAM gain none by being several.
func alike(list []DeviceSummary, one DeviceSummary) (uuids []string) {
	if one.Type == vk.CPU.String() || one.Type == vk.Integrated.String() {
		return nil
	}
	for _, d := range list {
		if d.Usable && d.Name == one.Name && d.Type == one.Type && d.Driver == one.Driver && d.UUID != one.UUID && !slices.Contains(uuids, d.UUID) {
			uuids = append(uuids, d.UUID)
		}
	}
	return uuids
}

// shareRAM divides what devices that use RAM may take of it, unless their ceilings were given.
func shareRAM(devices []*Device) {
	n := int64(0)
	for _, d := range devices {
		if unified(d) {
			n++
		}
	}
	for _, d := range devices {
		if unified(d) && !d.vram {
			d.dev.SetBudget(d.dev.Budget() / n)
		}
	}
}

// mostDevices is the most that project_bwd_adam_views has views for.
const mostDevices = 16

// CloseDevices closes devices.
func CloseDevices(devices []*Device) (err error) {
	for _, d := range devices {
		err = errors.Join(err, d.Close())
	}
	return err
}

// usableDevices lists the UUIDs of GPUs, or of processors where there is none.
func usableDevices() (gpus []string, err error) {
	list, err := ListDevices()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, d := range list {
		switch {
		case !d.Usable:
		case slices.Contains(gpus, d.UUID) || slices.Contains(others, d.UUID): // by another driver
		case d.Type == vk.CPU.String():
			others = append(others, d.UUID)
		default:
			gpus = append(gpus, d.UUID)
		}
	}
	if len(gpus) == 0 {
		gpus = others
	}
	if len(gpus) == 0 {
		return nil, fmt.Errorf("pipeline: open devices: %w", ErrNoDevice)
	}
	return gpus, nil
}
