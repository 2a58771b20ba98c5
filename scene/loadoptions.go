package scene

// Formats of captures: values of LoadOptions.Format and of Capture.Format.
const (
	FormatAuto       = "auto"       // the first of the others that is there
	FormatColmap     = "colmap"     // a COLMAP model, binary or text
	FormatTransforms = "transforms" // transforms.json as nerfstudio and instant-ngp write it
	FormatBlender    = "blender"    // transforms_train.json and transforms_test.json, as of the synthetic NeRF scenes

	FormatMetashape   = "metashape"   // the XML of Metashape's Export Cameras
	FormatRealityScan = "realityscan" // the CSV of RealityScan's Internal/External camera parameters
	FormatPolycam     = "polycam"     // the keyframes of Polycam's raw data
	FormatRecord3D    = "record3d"    // the metadata.json of Record3D's EXR and JPEG
	FormatOpenSfM     = "opensfm"     // the reconstruction.json of OpenSfM and OpenDroneMap
	FormatBundler     = "bundler"     // a bundle.out with its list of photos
	FormatOPF         = "opf"         // a project of Pix4D's Open Photogrammetry Format
	FormatLLFF        = "llff"        // the poses_bounds.npy of LLFF's scripts
)

// Formats are those that a capture may have, in the order in which they are searched.
var Formats = []string{FormatColmap, FormatTransforms, FormatBlender, FormatMetashape, FormatRealityScan,
	FormatPolycam, FormatRecord3D, FormatOpenSfM, FormatBundler, FormatOPF, FormatLLFF}

// AnyModel as LoadOptions.Model takes the model with most images.
const AnyModel = -1

type LoadOptions struct {
	Format string // FormatAuto, also as "", or one of the formats
	FlagOf string // name of the flag that sets Format, for hints; "" means format
	// folder of the photos, below the capture's or absolute; "" means images or input, or what the JSON file says
	Images    string
	Model     int // as in sparse/N, or AnyModel
	Downscale int // 1, 2, 4 or 8, or 0 to bring widths above 1600 pixels to 1600
	// With Downscale, a folder of reduced photos beside Images is left alone.
	FullPhotos bool
	Strict     bool // a photo that is missing, has a broken header or an impossible pose is an error

	// folder of masks, below the capture's or absolute; "" means masks beside the photos, if it is there
	Masks       string
	InvertMasks bool // black counts and white does not
	GrowMasks   int  // masked-out regions grow by this number of mask pixels

	Cameras Files // as Capture.Calibrated: of the same photos; nil: the capture's own cameras

	UndoAppliedTransform bool // bring a capture back to where it was before nerfstudio turned it
}
