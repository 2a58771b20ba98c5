package main

import (
	"errors"
	"fmt"
	"strings"

	"vksplat/pipeline"
)

// openDevices opens what is trained on.
func (r *trainRun) openDevices() (err error) {
	if r.devices == "" {
		r.device, err = pipeline.OpenDevice(r.trainOptions.device)
	} else {
		var list []*pipeline.Device
		if list, err = pipeline.OpenDevices(r.trainOptions.device, r.devices); err == nil {
			r.device, r.others = list[0], list[1:]
		}
	}
	if err != nil {
		return err
	}
	r.device.LimitHeap()
	if note := r.device.Note(); note != "" {
		r.noteLater(note)
	}
	return nil
}

// deviceNames words what is trained on.
func (r *trainRun) deviceNames() string {
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
func (r *trainRun) deviceBudget() int64 {
	sum := r.device.Budget()
	for _, d := range r.others {
		sum += d.Budget()
	}
	return sum
}

// closeDevice closes d. What the validation layer said, if VKSPLAT_VALIDATE=1 turned it on, is an error.
func closeDevice(d *pipeline.Device) error {
	err := d.Close()
	if said := d.ValidationMessages(); len(said) > 0 {
		err = errors.Join(err, fmt.Errorf("the validation layer said: %s", strings.Join(said, "\n")))
	}
	return err
}
