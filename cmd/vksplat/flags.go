package main

import (
	"regexp"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
)

// memoryTable lists the options of sharing memory out.
func memoryTable(f *train.MemoryFlags) []option {
	return []option{
		text(&f.ImageCache, "image-cache",
			"keep decoded photos that RAM does not hold in the folder `DIR`, until the end").isFolder(),
		other((*sizeFlag)(&f.ImageCacheBytes), "image-cache-size",
			"`BYTES` that --image-cache takes at most (default: what all photos take)"),
		other((*sizeFlag)(&f.PhotoRAM), "photo-ram",
			"`BYTES` of decoded photos to keep in RAM at most, within --max-ram (default: planned)"),
		other((*sizeFlag)(&f.PhotoVRAM), "photo-vram",
			"`BYTES` of decoded photos to keep on the device at most, within --max-vram (default: planned)"),
		truth(&f.DryRun, "dry-run", "print what memory would be used for, and stop").essential().flagOnly(),
		truth(&f.PlanJSON, "json", "with --dry-run: as JSON").flagOnly(),
	}
}

// sizeFlag is a number of bytes.
type sizeFlag int64

func (f *sizeFlag) Type() string { return "BYTES" }

func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*f), 10)
}

// Set parses bytes with an optional unit.
func (f *sizeFlag) Set(s string) error {
	n, err := pipeline.ParseBytes(s)
	if err != nil {
		return fault.Usagef("give bytes as in 32000000, 32M or 32MiB", "%q is no amount of memory", s)
	}
	*f = sizeFlag(n)
	return nil
}

// loadTable lists the options of reading a capture.
func loadTable(f *captured.Options) []option {
	return []option{
		text(&f.Images, "images",
			"folder of the photos, `DIR` below SCENE or absolute (default: found)").
			letter("i").from(fromINRIA).essential().isFolder(),
		other(&f.Downscale, "downscale",
			"size of the photos: auto, 1, 2, 4 or 8; auto brings widths above 1600 to 1600").
			letter("r").from(fromINRIA).essential().
			oneOf("auto", "1", "2", "4", "8").also("data-factor", "resolution", "resize-factor"),
		truth(&f.Full, "full-photos",
			"with --downscale N, reduce the photos of full size, even where a folder images_N has reduced ones"),
		other(&f.Model, "model", "take COLMAP model `N`, when there are several (default: the one with most images)"),
		truth(&f.Strict, "strict", "a photo that is missing, cannot be decoded or has an impossible pose is an error"),
		chosen(&f.Format, "format",
			"what SCENE is, `KIND`: auto takes COLMAP's model, else transforms.json, else transforms_train.json",
			scene.FormatAuto, scene.FormatColmap, scene.FormatTransforms, scene.FormatBlender),
		text(&f.Masks, "masks",
			"folder of masks, `DIR`: white counts, black does not (default: masks beside the photos, if it is "+
				"there)").isFolder().essential(),
		truth(&f.Inverted, "invert-masks", "black counts and white does not").from(fromBrush),
		truth(&f.Undo, "undo-applied-transform",
			"write in the frame from before the applied_transform of transforms.json"),
	}
}

// deviceOptions choose and limit the device.
func deviceOptions(o *pipeline.DeviceOptions) []option {
	return []option{
		other((*deviceFlag)(&o.Select), "device",
			"auto, or a device's `INDEX|UUID|PCI` as vksplat devices lists them").essential(),
		other((*bytesFlag)(&o.MaxVRAM), "max-vram",
			"device memory to use at most: bytes, with K, M or G, or a share as in 80%").essential(),
		other((*ramFlag)(&o.MaxRAM), "max-ram",
			"RAM to use at most, likewise (default: half of what is available)").essential(),
	}
}

// lookOptions are those that training and rendering must agree on.
func lookOptions(background *[3]float32, near *float64) []option {
	return []option{
		other((*colourFlag)(background), "background",
			"black, white or R,G,B from 0 to 1; without the flag as in training, where that is recorded").
			oneOf("black", "white"),
		float(near, "near", "near plane at `DISTANCE`, likewise; the median camera distance is 1"),
	}
}

// deviceFlag is a device's index, UUID or PCI address, or "" for auto.
type deviceFlag string

func (f *deviceFlag) Type() string { return "DEVICE" }

func (f *deviceFlag) String() string {
	if *f == "" {
		return "auto"
	}
	return string(*f)
}

// Set takes any text: what there is, pipeline knows.
func (f *deviceFlag) Set(s string) error {
	*f = deviceFlag(s)
	return nil
}

// colourFlag is an RGB colour from 0 to 1.
type colourFlag = cli.Colour

// bytesFlag is a number of bytes or a share, checked but left as text: what a
// share is of depends on the device.
type bytesFlag string

// maxAmount bounds the number in front of a unit: more gigabytes than an int64 has bytes for.
const maxAmount = 1 << 32

var bytesForm = regexp.MustCompile(`^(?i)((\d+(?:\.\d+)?)(%|[KMG](?:i?B)?)?)$`)

func (f *bytesFlag) Type() string { return "BYTES" }

func (f *bytesFlag) String() string {
	if *f == "" {
		return "80%"
	}
	return string(*f)
}

// Set checks the form.
func (f *bytesFlag) Set(s string) error {
	parts := bytesForm.FindStringSubmatch(s)
	bad := parts == nil
	if !bad {
		n, err := strconv.ParseFloat(parts[2], 64)
		bad = err != nil || n == 0 || n > maxAmount || parts[3] == "" && n < 1 || parts[3] == "%" && n > 100
	}
	if bad {
		return fault.Usagef("give bytes as in 6000000000, 6G or 512MiB, or a share as in 80%",
			"%q is no amount of memory", s)
	}
	*f = bytesFlag(s)
	return nil
}

// ramFlag is a bytesFlag without a default of its own.
type ramFlag string

func (f *ramFlag) Type() string       { return "BYTES" }
func (f *ramFlag) String() string     { return string(*f) }
func (f *ramFlag) Set(s string) error { return (*bytesFlag)(f).Set(s) }
