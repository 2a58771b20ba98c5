package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"vksplat/vk"
)

// OpenDevices opens the devices that a list names: "all" for every one that can be used, without processors where there
// is a GPU and without those that the environment gives to others (see vk.Instance.SelectAll), or indices, UUIDs and
// PCI addresses of ListDevices, separated by commas. One may be named twice: it then works as two, which shares its
// memory and gains nothing but a test. The ceilings of o are of each device.
func OpenDevices(o DeviceOptions, list string) (devices []*Device, err error) {
	names, note := strings.Split(list, ","), ""
	if list == "all" {
		all, said, err := FindDevices(list)
		if err != nil {
			return nil, err
		}
		names, note = nil, said
		for _, d := range all {
			names = append(names, d.UUID)
		}
	}
	if len(names) > mostDevices {
		return nil, fmt.Errorf("open devices: %w: %d, and %d can train one scene", errManyDevices, len(names),
			mostDevices)
	}
	for _, name := range names {
		one := o
		one.Select = strings.TrimSpace(name)
		d, err := OpenDevice(one)
		if err != nil {
			return nil, errors.Join(err, closeDevices(devices))
		}
		devices = append(devices, d)
	}
	if note != "" {
		devices[0].note = note
	}
	shareRAM(devices)
	return devices, nil
}

// TeamPays is the least final number of splats for which --devices auto uses several devices. On two NVIDIA H200
// two are 1.3 times as fast at as many views from there on, and with a tenth of it 1.2 times (docs/devices.md); but
// runs as small as that take seconds, and one device needs no larger batches.
const TeamPays = 500_000

// OpenAlike opens up to n devices like d, for a team with it.
func (d *Device) OpenAlike(o DeviceOptions, n int) (devices []*Device, err error) {
	list, _, err := FindDevices("all") // the others belong to other programs
	if err != nil {
		return nil, err
	}
	names := alike(list, d.Summary())
	for _, name := range names[:min(n, len(names), mostDevices-1)] {
		o.Select = name
		one, err := OpenDevice(o)
		if err != nil {
			return nil, errors.Join(err, closeDevices(devices))
		}
		devices = append(devices, one)
	}
	return devices, nil
}

// Alike returns how many other devices that this process may use are like d.
func (d *Device) Alike() (int, error) {
	list, _, err := FindDevices("all")
	return len(alike(list, d.Summary())), err
}

// alike lists the UUIDs of the devices that are of the kind of one: GPUs of the same name and driver with memory of
// their own. A team is as fast as its slowest device, and devices that share RAM gain none by being several.
func alike(list []DeviceSummary, one DeviceSummary) (uuids []string) {
	if one.Type == vk.CPU.String() || one.Type == vk.Integrated.String() {
		return nil
	}
	for _, d := range list {
		if d.Usable && d.Name == one.Name && d.Type == one.Type && d.Driver == one.Driver && d.UUID != one.UUID &&
			!slices.Contains(uuids, d.UUID) {
			uuids = append(uuids, d.UUID)
		}
	}
	return uuids
}

// shareRAM divides RAM among the devices that use it, unless their ceilings were given.
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

// mostDevices is the most views that project_bwd_adam_views has.
const mostDevices = 16

func closeDevices(devices []*Device) (err error) {
	for _, d := range devices {
		err = errors.Join(err, d.Close())
	}
	return err
}
