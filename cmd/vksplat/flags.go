package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"vksplat/pipeline"
	"vksplat/scene"
)

// trainOptions is everything that train is asked for.
type trainOptions struct {
	scene   string // the capture's folder
	out     string // the folder that is written
	eval    bool
	claimed bool // the caller has claimed out already
	load    loadFlags
	device  pipeline.DeviceOptions
	origin  originFlag
	config  pipeline.Config
	memoryFlags
}

// memoryFlags say how memory is shared out.
type memoryFlags struct {
	dryRun          bool   // print the plan and stop
	planJSON        bool   // as JSON
	imageCache      string // folder of the disk cache, "": none
	imageCacheBytes int64  // 0: what all photos take
	photoRAM        int64  // decoded photos in RAM, 0: planned
	photoVRAM       int64  // decoded photos on the device, 0: planned
}

func (f *memoryFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.imageCache, "image-cache", "", "keep decoded photos that RAM does not hold in the folder `DIR`, until the end")
	fs.Var((*sizeFlag)(&f.imageCacheBytes), "image-cache-size", "the most that --image-cache takes (default: what all photos take)")
	fs.Var((*sizeFlag)(&f.photoRAM), "photo-ram", "decoded photos to keep in RAM at most, within --max-ram (default: planned)")
	fs.Var((*sizeFlag)(&f.photoVRAM), "photo-vram", "decoded photos to keep on the device at most, within --max-vram (default: planned)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print what memory would be used for, and stop")
	fs.BoolVar(&f.planJSON, "json", false, "with --dry-run: as JSON")
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
		return usagef("give bytes as in 32000000, 32M or 32MiB", "%q is no amount of memory", s)
	}
	*f = sizeFlag(n)
	return nil
}

// newTrainOptions returns the defaults.
func newTrainOptions() *trainOptions {
	return &trainOptions{load: loadFlags{model: scene.AnyModel}, origin: "auto", config: pipeline.DefaultConfig()}
}

// loadFlags says how a capture is read.
type loadFlags struct {
	images    string
	downscale downscaleFlag
	model     modelFlag
	strict    bool
}

func (f loadFlags) options() scene.LoadOptions {
	return scene.LoadOptions{Images: f.images, Downscale: int(f.downscale), Model: int(f.model), Strict: f.strict}
}

func (f *loadFlags) register(fs *pflag.FlagSet) {
	fs.StringVarP(&f.images, "images", "i", "", "folder of the photos, `DIR` below SCENE or absolute (default: found)")
	fs.VarP(&f.downscale, "downscale", "r", "size of the photos: auto, 1, 2, 4 or 8; auto brings widths above 1600 to 1600")
	fs.Var(&f.model, "model", "take COLMAP model `N`, when there are several (default: the one with most images)")
	fs.BoolVar(&f.strict, "strict", false, "a photo that is missing or cannot be decoded is an error")
}

// registerDevice adds the flags that choose and limit the device.
func registerDevice(fs *pflag.FlagSet, o *pipeline.DeviceOptions) {
	fs.StringVar(&o.Select, "device", "auto", "auto, or a device's `INDEX|UUID` as vksplat devices lists them")
	fs.Var((*bytesFlag)(&o.MaxVRAM), "max-vram", "device memory to use at most: bytes, with K, M or G, or a share as in 80%")
	fs.Var((*ramFlag)(&o.MaxRAM), "max-ram", "RAM to use at most, likewise (default: half of what is available)")
}

// registerLook adds the flags that training and rendering must agree on.
func registerLook(fs *pflag.FlagSet, background *[3]float32, near *float64) {
	fs.Var((*colourFlag)(background), "background", "black, white or R,G,B from 0 to 1")
	fs.Float64Var(near, "near", *near, "near plane at `DISTANCE`; the median camera distance is 1")
}

// register adds all flags of train. o.config holds the defaults.
func (o *trainOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	c := &o.config
	fs.StringVarP(&o.out, "model-path", "m", "", "write to the folder `OUT` (required)")
	fs.IntVar(&c.Iterations, "iterations", c.Iterations, "training steps `N`, one photo each")
	fs.BoolVar(&o.eval, "eval", false, "hold every 8th photo out and measure on those")
	o.load.register(fs)
	fs.Uint64Var(&c.Seed, "seed", c.Seed, "seed `N` of every random number; same seed, same bytes")
	fs.IntVar(&c.SHDegree, "sh-degree", c.SHDegree, "degree `N` of the spherical harmonics, 0 to 3")
	registerLook(fs, &c.Background, &c.Near)
	fs.BoolVar(&c.Antialiased, "antialiased", c.Antialiased, "compensate opacity for the pixel filter (Mip-Splatting)")
	fs.Var((*paddingFlag)(&c.SSIMSame), "ssim-padding", "windows of D-SSIM in the loss: valid (inside the photo) or same (INRIA's)")
	fs.IntVar(&c.MaxSplats, "max-splats", c.MaxSplats, "stop growing at `N` splats (default: what memory allows)")
	fs.Var(&o.origin, "origin", "what to subtract from written coordinates: auto (only above 1e4), keep (nothing) or x,y,z")
	registerDevice(fs, &o.device)
	o.memoryFlags.register(fs)
}

// check reports options that contradict themselves, before any work.
func (o *trainOptions) check() error {
	if o.planJSON && !o.dryRun {
		return usagef("add --dry-run", "--json prints a plan, and none was asked for")
	}
	if o.out == "" && !o.dryRun {
		return usagef("name the folder to write, as in: vksplat train SCENE -m OUT", "no output folder: -m is required")
	}
	if err := o.config.Validate(); err != nil {
		return &usageError{err: err, hint: "see: vksplat train --help"}
	}
	return nil
}

// modelFlag is the number of a COLMAP model, or scene.AnyModel unless it is given.
type modelFlag int

func (f *modelFlag) Type() string { return "N" }

func (f *modelFlag) String() string {
	if *f == scene.AnyModel {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set parses a number from 0 up.
func (f *modelFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return usagef("models count from 0, as in sparse/0", "%q is no model number", s)
	}
	*f = modelFlag(n)
	return nil
}

// downscaleFlag is a factor, or 0 for auto.
type downscaleFlag int

func (f *downscaleFlag) Type() string { return "N" }

func (f *downscaleFlag) String() string {
	if *f == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*f))
}

// Set parses auto, 1, 2, 4 or 8.
func (f *downscaleFlag) Set(s string) error {
	switch s {
	case "auto":
		*f = 0
	case "1", "2", "4", "8":
		*f = downscaleFlag(s[0] - '0')
	default:
		return usagef("give auto, 1, 2, 4 or 8", "%q is no downscale factor", s)
	}
	return nil
}

// colourFlag is an RGB colour from 0 to 1.
type colourFlag [3]float32

func (f *colourFlag) Type() string { return "COLOUR" }

func (f *colourFlag) String() string {
	switch *f {
	case colourFlag{}:
		return "black"
	case colourFlag{1, 1, 1}:
		return "white"
	}
	return fmt.Sprintf("%g,%g,%g", f[0], f[1], f[2])
}

// Set parses black, white or R,G,B.
func (f *colourFlag) Set(s string) error {
	switch s {
	case "black":
		*f = colourFlag{}
		return nil
	case "white":
		*f = colourFlag{1, 1, 1}
		return nil
	}
	v, err := threeNumbers(s)
	for _, x := range v {
		if !(x >= 0 && x <= 1) {
			err = errors.New("out of range")
		}
	}
	if err != nil {
		return usagef("give black, white or three numbers from 0 to 1, as in 0.5,0.5,0.5", "%q is no colour", s)
	}
	*f = colourFlag{float32(v[0]), float32(v[1]), float32(v[2])}
	return nil
}

// paddingFlag is true for "same".
type paddingFlag bool

func (f *paddingFlag) Type() string { return "KIND" }

func (f *paddingFlag) String() string {
	if *f {
		return "same"
	}
	return "valid"
}

// Set parses valid or same.
func (f *paddingFlag) Set(s string) error {
	if s != "valid" && s != "same" {
		return usagef("give valid or same", "%q is no padding", s)
	}
	*f = s == "same"
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
		return usagef("give bytes as in 6000000000, 6G or 512MiB, or a share as in 80%", "%q is no amount of memory", s)
	}
	*f = bytesFlag(s)
	return nil
}

// ramFlag is a bytesFlag without a default of its own.
type ramFlag string

func (f *ramFlag) Type() string       { return "BYTES" }
func (f *ramFlag) String() string     { return string(*f) }
func (f *ramFlag) Set(s string) error { return (*bytesFlag)(f).Set(s) }

// originFlag says what is subtracted from coordinates that are written, in the
// words of scene.Capture.Origin.
type originFlag string

func (f *originFlag) Type() string   { return "ORIGIN" }
func (f *originFlag) String() string { return string(*f) }

// Set checks the form.
func (f *originFlag) Set(s string) error {
	if _, err := (&scene.Capture{}).Origin(s); err != nil {
		return usagef(scene.Hint(err), "%q is no origin", s)
	}
	*f = originFlag(s)
	return nil
}

// threeNumbers parses "a,b,c". Only finite numbers pass.
func threeNumbers(s string) (v [3]float64, err error) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 {
		return v, errors.New("three numbers are needed")
	}
	for i, p := range parts {
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil {
			return v, err
		}
		if math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
			return v, errors.New("not a finite number")
		}
	}
	return v, nil
}

// cfgArgs returns what INRIA's viewers and scripts read about a run.
func (o *trainOptions) cfgArgs() scene.CfgArgs {
	a := scene.CfgArgs{SHDegree: o.config.SHDegree, SourcePath: absolute(o.scene), ModelPath: o.out, Images: o.load.images,
		Resolution: int(o.load.downscale), WhiteBackground: o.config.Background == [3]float32{1, 1, 1}, Eval: o.eval}
	if a.Images == "" {
		a.Images = "images"
	}
	if a.Resolution == 0 {
		a.Resolution = -1 // INRIA's word for auto
	}
	return a
}

// absolute returns path as one that other programs find from anywhere, or
// unchanged where the working folder is gone.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
