package main

import (
	"regexp"
	"strconv"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/train"
	"vksplat/internal/wording"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// memoryTable lists the options of sharing memory out.
func memoryTable(f *train.MemoryFlags) []option {
	return []option{
		text(&f.ImageCache, "image-cache",
			"cache decoded photos that do not fit in RAM in folder `DIR` while the command runs").isFolder(),
		other((*sizeFlag)(&f.ImageCacheBytes), "image-cache-size",
			"limit --image-cache to `BYTES` (default: room for all photos)"),
		other((*sizeFlag)(&f.PhotoRAM), "photo-ram",
			"keep at most `BYTES` of decoded photos in RAM, within --max-ram (default: planned)"),
		other((*sizeFlag)(&f.PhotoVRAM), "photo-vram",
			"keep at most `BYTES` of decoded photos on the device, within --max-vram (default: planned)"),
		truth(&f.DryRun, "dry-run", "print the memory plan and stop").flagOnly(),
		truth(&f.PlanJSON, "json", "with --dry-run, print it as JSON").flagOnly(),
	}
}

// sizeFlag is a number of bytes.
type sizeFlag int64

func (f *sizeFlag) Type() string { return "BYTES" }

func (f *sizeFlag) String() string {
	switch gib := int64(*f) >> 30; {
	case *f == 0:
		return ""
	case gib<<30 == int64(*f):
		return strconv.FormatInt(gib, 10) + "GiB"
	}
	return strconv.FormatInt(int64(*f), 10)
}

// Set parses bytes with an optional unit.
func (f *sizeFlag) Set(s string) error {
	n, err := pipeline.ParseBytes(s)
	if err != nil {
		return fault.Usagef("give bytes as in 32000000, 32M or 32MiB", "%q is not an amount of memory", s)
	}
	*f = sizeFlag(n)
	return nil
}

// loadTable lists the options of reading a capture.
func loadTable(f *captured.Options) []option {
	return []option{
		text(&f.Images, "images", "read photos from `DIR`; below SCENE or absolute (default: found)").
			letter("i").from(fromINRIA).isFolder(),
		other(&f.Downscale, "downscale", "shrink photos by 1, 2, 4 or 8; auto limits widths to 1600").
			letter("r").from(fromINRIA).
			oneOf("auto", "1", "2", "4", "8").also("data-factor", "resolution", "resize-factor"),
		truth(&f.Full, "full-photos",
			"with --downscale, shrink the full-size photos; even where a folder images_N has smaller ones"),
		other(&f.Model, "model", "read COLMAP model `N` of several (default: the one with most images)"),
		truth(&f.Strict, "strict", "fail if a photo is missing or broken, or has an impossible pose"),
		chosen(&f.Format, "format",
			"read SCENE as `KIND`; "+wording.Or(append([]string{scene.FormatAuto}, scene.Formats...))+
				"; auto takes the first of these that is there",
			append([]string{scene.FormatAuto}, scene.Formats...)...),
		text(&f.Masks, "masks",
			"read masks from `DIR`; white counts, black does not (default: masks next to the photos)").isFolder(),
		truth(&f.Inverted, "invert-masks", "in masks, black counts and white does not").from(fromBrush),
		integer(&f.GrowMasks, "grow-masks", "grow masked-out regions by `N` pixels of the mask"),
		other((*camerasFlag)(&f.Cameras), "cameras", "use `CAMERAS`; auto calibrates lenses and poses where their own observations say "+
			"so, given takes those of SCENE, and a folder is a COLMAP model of the same photos").isFolder(),
		truth(&f.Undo, "undo-applied-transform",
			"undo the applied_transform of transforms.json in what is written"),
	}
}

// deviceOptions choose and limit the device.
func deviceOptions(o *pipeline.DeviceOptions) []option {
	return []option{
		other((*deviceFlag)(&o.Select), "device", "use device `ID`: index, UUID or PCI address"),
		other((*bytesFlag)(&o.MaxVRAM), "max-vram", "device memory limit, as in 6G or 80%"),
		other((*ramFlag)(&o.MaxRAM), "max-ram", "RAM limit, as in 6G (default: half of what is available)"),
	}
}

// lookOptions are those that training and rendering must agree on.
func lookOptions(background *[3]float32, near *float64) []option {
	return []option{
		plain(background, "background", "black, white or R,G,B from 0 to 1 (default: as trained, else black)").
			asNumbers(kindFloat, 3, 0, 1),
		float(near, "near",
			"distance of the near plane; the median camera distance is 1 (default: as trained, else 0.01)").
			within(1e-6, 1e6),
	}
}

// camerasFlag is auto, given, or a folder.
type camerasFlag string

func (f *camerasFlag) Type() string   { return "CAMERAS" }
func (f *camerasFlag) String() string { return string(*f) }

// Set parses auto, given or a folder. Whether a model in that is whole is seen when it is read.
func (f *camerasFlag) Set(s string) error {
	const hint = "give auto, given, or the folder of a COLMAP model, as OUT/sparse/0 of a run"
	if s == "" { // as of a variable of a shell that is not set
		return fault.Usagef(hint, "an empty name says no cameras")
	}
	if _, found := colmap.FormOf(s); !found && s != captured.CamerasAuto && s != captured.CamerasGiven {
		return fault.Usagef(hint, "%q holds no COLMAP model", s)
	}
	*f = camerasFlag(s)
	return nil
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
			"%q is not an amount of memory", s)
	}
	*f = bytesFlag(s)
	return nil
}

// ramFlag is a bytesFlag without a default of its own.
type ramFlag string

func (f *ramFlag) Type() string       { return "BYTES" }
func (f *ramFlag) String() string     { return string(*f) }
func (f *ramFlag) Set(s string) error { return (*bytesFlag)(f).Set(s) }
