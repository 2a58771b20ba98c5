package capture

import (
	"cmp"
	"fmt"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// Name is the name of the command.
const Name = "capture"

// Auto leaves a choice to the program.
const Auto = "auto"

// Values of Options.Cameras: which photos share a camera.
const (
	CamerasOne    = "one"
	CamerasMany   = "many"
	CamerasFolder = "folder"
)

// Sharings are all of them.
var Sharings = []string{Auto, CamerasOne, CamerasMany, CamerasFolder}

// Values of Options.Matching.
const (
	MatchAll        = "exhaustive"
	MatchSequential = "sequential"
)

// Matchings are all of them.
var Matchings = []string{Auto, MatchAll, MatchSequential}

// Values of Options.Mapper.
const (
	MapOwn         = "own"         // this program's, on any GPU
	MapIncremental = "incremental" // COLMAP's
	MapGlobal      = "global"      // COLMAP's, or glomap
)

// Mappers are all of them.
var Mappers = []string{Auto, MapOwn, MapIncremental, MapGlobal}

// mostTaken bounds the frames of a video.
const mostTaken = 1_000_000

// largestModel takes the component with most photos.
const largestModel = -1

// Options is everything that capture is asked for.
type Options struct {
	Inputs []string // folders of photos, photos and videos
	Out    string   // the scene's folder

	Fps    float64 // frames to extract per second of video; 0: chosen
	Frames int     // frames to extract per video; 0: by Fps

	Masks       string // folder of masks, "" for none
	Rig         bool   // photos of one name were taken at once, by cameras that are fixed to each other
	Cameras     string // Auto, CamerasOne, CamerasMany or CamerasFolder
	CameraModel string // COLMAP's name, or Auto
	MaxSize     int    // longer side at which features are searched; 0: COLMAP's default
	Matching    string // Auto, MatchAll or MatchSequential
	Mapper      string // Auto, MapOwn, MapIncremental or MapGlobal
	Device      pipeline.DeviceOptions
	Model       int // the component to take, or largestModel

	More      bool // adds the photos to a scene whose cameras are known
	Overwrite bool
	Progress  string // how far the work is, in a way of package meter
	Again     string // the command that continues, for hints
	Trained   bool   // training follows at once, and no word says how to begin it
	Watch     Watcher
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{Cameras: Auto, CameraModel: Auto, Matching: Auto, Mapper: Auto, Model: largestModel,
		Progress: meter.Auto}
}

// CameraModels are those of COLMAP that suit photos whose lens is not known. COLMAP alone finds those that are not
// adjustable.
var CameraModels = []string{Auto, "SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV",
	"SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "OPENCV_FISHEYE", "THIN_PRISM_FISHEYE", Panorama}

// check refuses values that contradict each other or mean nothing.
func (o *Options) check() error {
	switch {
	case o.Out == "":
		return fault.Usagef("name the folder to make with "+fault.Setting("output")+" SCENE",
			"there is no folder to write to")
	case o.Fps != 0 && o.Frames != 0:
		return fault.Usagef("give one of them", "%s exclude each other", fault.Named("fps", "frames"))
	case o.More && (o.ofColmap() != "" || o.Model != largestModel):
		return fault.Usagef("leave out one of them; what finds the cameras of more photos has no such choice",
			"%s exclude each other", fault.Named("more", cmp.Or(o.ofColmap(), "model")))
	case o.Mapper == MapOwn && o.ofColmap() != "":
		return fault.Usagef("leave out one of them", "%s exclude each other: COLMAP alone has the latter",
			fault.Named("mapper", o.ofColmap()))
	case o.Rig && o.ofColmap() != "":
		return fault.Usagef("leave out one of them", "%s exclude each other: COLMAP alone has the latter",
			fault.Named("rig", o.ofColmap()))
	case o.Rig && o.More:
		return fault.Usagef("leave out one of them", "%s exclude each other", fault.Named("rig", "more"))
	case o.Rig && o.Cameras != Auto && o.Cameras != CamerasFolder:
		return fault.Usagef("leave out one of them", "%s exclude each other: a rig has a camera for each folder",
			fault.Named("rig", "cameras"))
	case o.Masks != "" && !output.IsFolder(o.Masks):
		return fault.Usagef("check the spelling", "%s: there is no folder %s", fault.Named("masks"), o.Masks)
	}
	return nil
}

// Places in the scene's folder.
const (
	imagesFolder     = "images"
	masksFolder      = "masks"
	componentsFolder = captured.ComponentsFolder // what the mapper made
	logsFolder       = "logs"
	databaseFile     = "database.db"
	coverageFile     = "coverage.png" // cameras and points from above
	reportFile       = "verdict.json" // see Report
	stateFile        = ".capture.json"
	photoList        = "photos.txt" // in logsFolder: the photos that COLMAP is to use
)

// modelFolder is where training finds the component that was chosen.
var modelFolder = filepath.Join("sparse", "0")

// in is a place in the scene's folder.
func (o *Options) in(names ...string) string {
	return filepath.Join(append([]string{o.Out}, names...)...)
}

// text prints what decides the results of a stage.
func text(parts ...any) string { return fmt.Sprintf("%q", parts) }
