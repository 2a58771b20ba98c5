package output

import (
	"fmt"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// CheckName refuses a name for a new file or folder that wording.BadName finds unfit, or that is too long.
func CheckName(what, name string) error {
	why, hint := wording.BadName(name)
	if why == "" && len(name) > wording.MaxName {
		why, hint = fmt.Sprintf("the name takes %d bytes, %d is the limit", len(name), wording.MaxName), "shorten it"
	}
	if why == "" {
		return nil
	}
	return fault.Usagef(hint, "name %s: %s", what, why)
}

// CaptureFile in OUT says how a run read its capture and which photos it held out, so that its model can be measured on
// the same later.
const CaptureFile = "capture.json"

const DemoPicture = "demo.png"

// OriginFile says beside cameras.json what was subtracted from its coordinates.
const OriginFile = "origin.json"

// CamerasSuffix ends the name of a file beside a model, as in room.cameras.json of room.ply: cameras in the frame of
// that model, in the form of cameras.json.
const CamerasSuffix = ".cameras.json"

// MetricsFile is the log of a run in OUT.
const MetricsFile = "metrics.jsonl"

// ReportFile is the page about a run in OUT. It holds all that it shows: no
// network, no other file, so that it can be sent to others.
const ReportFile = "report.html"

// The names of our event files. Readers look for the prefix.
const (
	TensorboardFolder = "tensorboard"
	TensorboardPrefix = "events.out.tfevents."
	TensorboardSuffix = ".vksplat"
)

// StatsFile is written when a run is done.
const StatsFile = "stats.json"

// pictureFormats are those of single pictures, by the ends of their names.
var pictureFormats = map[string]string{".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".exr": "exr", ".npy": "npy"}

// PictureFormat is the format that a file's name says, "" for none.
func PictureFormat(path string) string { return pictureFormats[strings.ToLower(filepath.Ext(path))] }
