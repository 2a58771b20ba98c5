package models

import (
	"errors"
	"fmt"
	"strings"

	"vksplat/internal/cli"
	"vksplat/pipeline"
)

// LimitHeap keeps the process to its ceiling of host memory until a device is open.
func LimitHeap(console *cli.Console, o pipeline.DeviceOptions) error {
	bytes, err := pipeline.HeapLimit(o)
	if err == nil {
		console.LimitHeap(bytes)
	}
	return err
}

// OpenDevice opens a device for a command, keeps the process to what the driver leaves of host memory, and prints
// DeviceNote.
func OpenDevice(console *cli.Console, o pipeline.DeviceOptions) (*pipeline.Device, error) {
	d, err := pipeline.OpenDevice(o)
	if err != nil {
		return nil, err
	}
	console.LimitHeap(d.HeapLimit())
	if note := DeviceNote(d); note != "" {
		console.Note(note)
	}
	return d, nil
}

// CloseDevice closes d. What the validation layer said, if VKSPLAT_VALIDATE=1 turned it on, is an error.
func CloseDevice(d *pipeline.Device) error {
	err := d.Close()
	if said := d.ValidationMessages(); len(said) > 0 {
		err = errors.Join(err, fmt.Errorf("the validation layer said: %s", strings.Join(said, "\n")))
	}
	return err
}

// toldNoGPU is there once a user knows that the machine has no GPU for this program, until it has one.
const toldNoGPU = "told-no-gpu"

// DeviceNote is the note for users about the device, "" for none: that there is no GPU, once, and always what the
// environment decided. Each command names its device anyway.
func DeviceNote(d *pipeline.Device) string {
	switch {
	case !d.OnCPU():
		cli.Untell(toldNoGPU)
	case d.Note() != "" && d.NoGPU() && cli.ToldBefore(toldNoGPU):
		return ""
	}
	return d.Note()
}
