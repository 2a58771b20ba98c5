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

// openDevices opens what is trained on, or the first of what will be.
func (r *Run) openDevices() (err error) {
	if r.Opened != nil {
		r.device = r.Opened
	} else if r.Devices == "" || r.Devices == devicesAuto {
		r.device, err = pipeline.OpenDevice(r.Options.Device)
	} else {
		var list []*pipeline.Device
		if list, err = pipeline.OpenDevices(r.Options.Device, r.Devices); err == nil {
			r.device, r.others = list[0], list[1:]
		}
	}
	if err != nil {
		return err
	}
	r.Console.LimitHeap(r.device.HeapLimit())
	if note := models.DeviceNote(r.device); note != "" {
		r.noteLater(note)
	}
	return nil
}

// chooseDevices opens others of the first device's kind where the run is large enough for several: for their memory, or
// for their speed. What was begun goes on with as many as before, so that the bytes stay those of one run.
func (r *Run) chooseDevices(cams []scene.Camera, splats int, o *pipeline.TrainerOptions) error {
	if r.Config.NativeLens { // works on one device alone
		return nil
	}
	there, err := r.device.Alike()
	if err != nil {
		return err
	}
	want := 1
	if want, r.chosen = r.devicesFor(cams, splats, there, *o); want > 1 {
		r.others, err = r.device.OpenAlike(r.Options.Device, want-1)
		o.Others = r.others
	}
	return err
}

// devicesFor returns how many devices a run of so many splats at the start takes, of a first one and others like it,
// and why.
func (r *Run) devicesFor(cams []scene.Camera, splats, others int, o pipeline.TrainerOptions) (n int, why string) {
	asked := r.Config.Splats
	if asked == 0 {
		asked = r.Config.MaxSplats
	}
	all := 1 + others
	if from := r.saver.from; from != nil {
		if n = max(1, len(from.Header.Team)); n > all {
			return all, fmt.Sprintf("the steps so far were of %d, and no more than %d of a kind are there", n, all)
		}
		return n, fmt.Sprintf("as the steps so far, of %d", all)
	}
	if all == 1 {
		return 1, "no other GPU is like it"
	}
	if r.Config.RefinePoses {
		return 1, fault.Setting("refine-poses") + " works on one device alone"
	}
	if most := max(splats, asked); most >= pipeline.TeamPays {
		return all, fmt.Sprintf("%s, and from %s on several are faster", cli.Count(most, "splat"),
			cli.Count(pipeline.TeamPays, "splat"))
	}
	plan, err := r.device.Plan(cams, splats, r.Config, o)
	if errors.Is(err, pipeline.ErrTooSmall) || err == nil && plan.Ceiling < asked {
		return all, "one has too little memory"
	}
	return 1, fmt.Sprintf("of %d: up to %s one is about as fast", all, cli.Count(pipeline.TeamPays, "splat"))
}

// deviceNames words what is trained on, and why where the program chose.
func (r *Run) deviceNames() string {
	if r.chosen != "" {
		return fmt.Sprintf("%s (auto: %s)", r.allNames(), r.chosen)
	}
	return r.allNames()
}

// allNames words what is trained on.
func (r *Run) allNames() string {
	names := []string{r.device.Name()}
	alike := true
	for _, d := range r.others {
		names, alike = append(names, d.Name()), alike && d.Name() == names[0]
	}
	if alike && len(names) > 1 {
		return fmt.Sprintf("%d x %s", len(names), names[0])
	}
	return strings.Join(names, " + ")
}

// deviceBudget is the ceiling of the memory of all devices.
func (r *Run) deviceBudget() int64 {
	sum := r.device.Budget()
	for _, d := range r.others {
		sum += d.Budget()
	}
	return sum
}
