package captured

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/colmap"
)

// Options says how a capture is read.
type Options struct {
	Images    string
	Downscale DownscaleFlag
	Full      bool // reduced copies of the photos are not looked for
	Model     modelFlag
	Strict    bool
	Format    string
	Masks     string
	Inverted  bool   // masks
	GrowMasks int    // pixels
	Undo      bool   // applied_transform
	Cameras   string // CamerasAuto, CamerasGiven, or the folder of a COLMAP model

	files *scene.Files // of a COLMAP model that Calibrate made: in memory, from SaveCameras on where it wrote them
}

// Values of Options.Cameras beside a folder.
const (
	CamerasAuto  = "auto"  // calibrated where their own observations say so
	CamerasGiven = "given" // as the capture has them
)

// ModelFolder is where OUT, or a plan, has the COLMAP model with the cameras that were used.
const ModelFolder = "sparse/0"

// StartFolder is where OUT has the cameras that a run began with which refines them.
const StartFolder = "checkpoints/cameras"

// calibrated returns the model whose cameras are used in place of the capture's own, nil for none.
func (f *Options) calibrated() scene.Files {
	switch files := f.files; {
	case files != nil:
		return func(name string) (io.ReadCloser, int64, error) { return (*files)(name) }
	case f.Cameras == CamerasAuto || f.Cameras == CamerasGiven || f.Cameras == "":
		return nil
	}
	return colmap.Folder(f.Cameras)
}

// Calibrated reports whether other cameras are used than the capture's own.
func (f *Options) Calibrated() bool { return f.calibrated() != nil }

// SaveCameras writes the cameras that were used in place of the capture's own into a folder of dir. Without them,
// nothing could say what the scores of a run are of.
func (f *Options) SaveCameras(dir, folder string) error {
	at := filepath.Join(dir, filepath.FromSlash(folder))
	files := f.calibrated()
	if files == nil || f.files == nil && output.Absolute(f.Cameras) == output.Absolute(at) {
		return nil
	}
	if err := colmap.Save(at, files); err != nil {
		return fmt.Errorf("store the cameras that are used: %w", err)
	}
	if f.files != nil && folder == ModelFolder { // a run that refines cameras reads them again, wherever OUT is then
		*f.files = colmap.Folder(at)
	}
	return nil
}

// MadeBytes is the memory of a model that Calibrate made, until SaveCameras has written it.
func (f *Options) MadeBytes() (sum int64) {
	if f.files == nil {
		return 0
	}
	for _, name := range colmap.ModelFiles {
		if r, size, err := (*f.files)(name + colmap.BinaryModel.Ext); err == nil {
			sum += size
			r.Close() // nothing was read
		}
	}
	return sum
}

func (f Options) Options() scene.LoadOptions {
	return scene.LoadOptions{Images: f.Images, Downscale: int(f.Downscale), FullPhotos: f.Full, Model: int(f.Model),
		Strict: f.Strict, Format: f.Format, Masks: f.Masks, InvertMasks: f.Inverted, GrowMasks: f.GrowMasks,
		UndoAppliedTransform: f.Undo, Cameras: f.calibrated()}
}

// modelFlag is the number of a COLMAP model, or scene.AnyModel unless it is given.
type modelFlag int

func (f *modelFlag) Type() string { return "N" }

func (f *modelFlag) String() string { return cli.CountText(*f) }

// Set parses a number from 0 up.
func (f *modelFlag) Set(s string) error {
	return cli.SetCount(f, s, "models count from 0, as in sparse/0", "%q is not a model number")
}

// DownscaleFlag is a factor, or 0 for auto.
type DownscaleFlag int

func (f *DownscaleFlag) Type() string { return "N" }

func (f *DownscaleFlag) String() string {
	if *f == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*f))
}

// Set parses auto, 1, 2, 4 or 8.
func (f *DownscaleFlag) Set(s string) error {
	switch s {
	case "auto":
		*f = 0
	case "1", "2", "4", "8":
		*f = DownscaleFlag(s[0] - '0')
	default:
		return fault.Usagef("give auto, 1, 2, 4 or 8", "%q is not a downscale factor", s)
	}
	return nil
}

// OriginFlag says what is subtracted from coordinates that are written, in the
// words of scene.Capture.Origin.
type OriginFlag string

func (f *OriginFlag) Type() string { return "ORIGIN" }

func (f *OriginFlag) String() string { return string(*f) }

// Set checks the form.
func (f *OriginFlag) Set(s string) error {
	at, err := (&scene.Capture{}).Origin(s)
	if err != nil {
		return fault.Usagef(fault.Hint(err), "%q is not an origin", s)
	}
	for _, x := range at {
		if math.Abs(x) > maxOrigin {
			return fault.Usagef("coordinates of maps are below 1e8",
				"%q is not an origin: beyond %g coordinates are coarser than a tenth of a unit", s, float64(maxOrigin))
		}
	}
	*f = OriginFlag(s)
	return nil
}
