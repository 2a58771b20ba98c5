package train

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/scene"
)

// devicesAuto as --devices leaves the choice to the program, see chooseDevices.
const devicesAuto = "auto"

// DevicesAll as --devices takes all of the machine.
const DevicesAll = "all"

// deviceName is an index, a UUID, which need not have its dashes, or a PCI address, which need not have its domain.
var deviceName = regexp.MustCompile(
	`^(?i:[0-9]{1,7}|(gpu-)?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$`)

// namesDevices reports whether a value of --devices is one that some machine has: all, auto, or indices, UUIDs and PCI
// addresses.
func namesDevices(list string) bool {
	if list == DevicesAll || list == devicesAuto {
		return true
	}
	return !slices.ContainsFunc(strings.Split(list, ","),
		func(name string) bool { return !deviceName.MatchString(strings.TrimSpace(name)) })
}

// machine is the devices that train, their memory, and the photos in it.
type machine struct {
	*Options
	*notes
	device  *pipeline.Device
	others  []*pipeline.Device // that train with it
	chosen  string             // why these, with --devices auto
	plan    *pipeline.Plan
	photos  *photos.Cache // of the cameras
	Trainer *pipeline.Trainer
}

// openDevices opens what is trained on, or the first of what will be.
func (m *machine) openDevices() (err error) {
	if m.Opened != nil {
		m.device = m.Opened
	} else if m.Devices == "" || m.Devices == devicesAuto {
		m.device, err = pipeline.OpenDevice(m.Options.Device)
	} else {
		var list []*pipeline.Device
		if list, err = pipeline.OpenDevices(m.Options.Device, m.Devices); err == nil {
			m.device, m.others = list[0], list[1:]
		}
	}
	if err != nil {
		return err
	}
	m.console.LimitHeap(m.device.HeapLimit())
	if note := models.DeviceNote(m.device); note != "" {
		m.noteLater(note)
	}
	return nil
}

// chooseDevices opens others of the first device's kind where the run is large enough for several: for their memory, or
// for their speed. A run is resumed on as many as before, so that the bytes stay those of one run.
func (m *machine) chooseDevices(cams []scene.Camera, splats int, o *pipeline.TrainerOptions,
	from *checkpoint.File) error {
	if m.Config.NativeLens { // works on one device alone
		return nil
	}
	there, err := m.device.Alike()
	if err != nil {
		return err
	}
	want := 1
	if want, m.chosen = m.devicesFor(cams, splats, there, *o, from); want > 1 {
		m.others, err = m.device.OpenAlike(m.Options.Device, want-1)
		o.Others = m.others
	}
	return err
}

// devicesFor returns how many devices a run that starts with some splats takes, of a first one and others like it,
// and why.
func (m *machine) devicesFor(cams []scene.Camera, splats, others int, o pipeline.TrainerOptions,
	from *checkpoint.File) (n int, why string) {
	asked := m.Config.Splats
	if asked == 0 {
		asked = m.Config.MaxSplats
	}
	all := 1 + others
	if from != nil {
		if n = max(1, len(from.Header.Team)); n > all {
			return all, fmt.Sprintf("the run so far used %d, but only %d of a kind are available", n, all)
		}
		return n, fmt.Sprintf("as in the run so far, of %d", all)
	}
	if all == 1 {
		return 1, "no other GPU is like it"
	}
	if m.Config.RefineCameras {
		return 1, fault.Setting("refine-cameras") + " works on one device alone"
	}
	if most := max(splats, asked); most >= pipeline.TeamPays {
		return all, fmt.Sprintf("%s, and from %s on several are faster", cli.Count(most, "splat"),
			cli.Count(pipeline.TeamPays, "splat"))
	}
	plan, err := m.device.Plan(cams, splats, m.Config, o)
	if errors.Is(err, pipeline.ErrTooSmall) || err == nil && plan.Ceiling < asked {
		return all, "one has too little memory"
	}
	return 1, fmt.Sprintf("of %d: below %s one is about as fast", all, cli.Count(pipeline.TeamPays, "splat"))
}

// deviceNames words what is trained on, and why where the program chose.
func (m *machine) deviceNames() string {
	if m.chosen != "" {
		return fmt.Sprintf("%s (auto: %s)", m.allNames(), m.chosen)
	}
	return m.allNames()
}

// allNames words what is trained on.
func (m *machine) allNames() string {
	names := []string{m.device.Name()}
	alike := true
	for _, d := range m.others {
		names, alike = append(names, d.Name()), alike && d.Name() == names[0]
	}
	if alike && len(names) > 1 {
		return fmt.Sprintf("%d x %s", len(names), names[0])
	}
	return strings.Join(names, " + ")
}

// deviceBudget is the ceiling of the memory of all devices.
func (m *machine) deviceBudget() int64 {
	sum := m.device.Budget()
	for _, d := range m.others {
		sum += d.Budget()
	}
	return sum
}

// close frees what is open. opened, the caller's device, stays.
func (m *machine) close() error {
	var errs []error
	if m.Trainer != nil {
		errs = append(errs, m.Trainer.Close())
	}
	if m.photos != nil {
		errs = append(errs, m.photos.Close())
	}
	if m.device != nil && m.device != m.Opened {
		errs = append(errs, models.CloseDevice(m.device))
	}
	for _, d := range m.others {
		errs = append(errs, models.CloseDevice(d))
	}
	m.Trainer, m.photos, m.device, m.others = nil, nil, nil, nil
	return errors.Join(errs...)
}
