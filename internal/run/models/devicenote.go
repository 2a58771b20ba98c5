package models

import (
	"vksplat/internal/cli"
	"vksplat/pipeline"
)

// toldNoGPU is there once a user knows that the machine has no GPU for this program, until it has one.
const toldNoGPU = "told-no-gpu"

// DeviceNote is what a user must be told of the device, "" for nothing: that there is no GPU, once, and always what the
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
