package scene

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// AnyModel as LoadOptions.Model takes the model with most images.
const AnyModel = -1

// LoadOptions says how a capture is read.
type LoadOptions struct {
	Format    string // FormatAuto, also as "", or one of the formats
	FlagOf    string // name of the flag that sets Format, for hints; "" means format
	Images    string // folder of the photos, below the capture's or absolute; "" means images or input, or what the JSON file says
	Model     int    // as in sparse/N, or AnyModel
	Downscale int    // 1, 2, 4 or 8, or 0 to bring widths above 1600 pixels to 1600
	// With Downscale, a folder of reduced photos beside Images is left alone.
	FullPhotos bool
	Strict     bool // a photo that is missing, has a broken header or an impossible pose is an error

	Masks       string // folder of masks, below the capture's or absolute; "" means masks beside the photos, if it is there
	InvertMasks bool   // black counts and white does not

	UndoAppliedTransform bool // bring a capture back to where it was before nerfstudio turned it
}

const (
	minPhotos     = 3    // fewer views than this say nothing about depth
	maxNames      = 5    // in a warning or an error
	maxCoordinate = 1e15 // beyond it float64 resolves no tenth of a unit
)

// record is what a capture says of one photo, before the photo's file is looked at.
type record struct {
	cam  Camera // name and pose; Path and Mask where the capture names files
	lens calibrator
	file string // where the capture says that the photo is; "" leaves it to the name
	role role   // what the capture says the photo is for
	bad  error  // why its pose is bad, or nil
}

// calibrator gives the calibration of a photo of width x height pixels: most
// captures record it, others leave out what the photo's size tells.
type calibrator interface {
	calibration(width, height int) Calibration
}

// role says what a photo is for.
type role int

const (
	roleNone   role = iota // the capture does not say
	roleTrain              //
	roleTest               // held out
	roleUnused             // of another split
)

func sortRecords(records []record) {
	slices.SortStableFunc(records, func(a, b record) int { return strings.Compare(a.cam.Name, b.cam.Name) })
}

// Load reads a capture: a COLMAP model, binary or text, or a transforms.json in one
// of its dialects, and the headers of its photos. root is the capture's folder, or a
// JSON file. Cameras are sorted by name and have the size of the pixels to train on;
// cameras whose photo is missing or has no readable header, or whose pose cannot be
// right, are left out with a warning, unless o.Strict. Points may be absent. Everything is in the capture's own
// frame. Errors are of type *Error, most of kind ErrData, and carry a hint. Memory is
// bounded by a constant times the size of the model's files.
func Load(root string, o LoadOptions) (*Capture, error) {
	if err := o.check(root); err != nil {
		return nil, err
	}
	what, warnings, err := discover(root, o)
	if err != nil {
		return nil, err
	}
	c := &Capture{Root: what.root, Model: what.model, Format: what.format, Frame: Identity(), Warnings: warnings}
	var records []record
	if what.format == FormatColmap {
		c.text = what.files == &textModel
		if records, err = c.readModel(what.files); err == nil && o.UndoAppliedTransform {
			err = c.undoApplied(records)
		}
	} else {
		records, err = c.readTransforms(o)
	}
	if err != nil {
		return nil, err
	}
	reduced, err := c.findPhotos(records, o)
	if err != nil {
		return nil, err
	}
	if records, err = c.chooseRoles(records); err != nil {
		return nil, err
	}
	if records, err = c.dropBadPoses(records, o.Strict); err != nil {
		return nil, err
	}
	if err := c.makeViews(records, o, reduced); err != nil {
		return nil, err
	}
	if err := c.dropWildPoses(o.Strict); err != nil {
		return nil, err
	}
	if train, _ := c.Split(0); len(train) == 0 {
		return nil, badData("load capture", c.Model, "make photos of the training list available", "all photos that are there are held out: none is left to train on")
	}
	if beside := filepath.Clean(c.Images) != filepath.Clean(c.Root); o.Masks != "" || beside {
		if err := c.attachMasks(o.Masks, o.InvertMasks); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// check refuses values that no option has.
func (o LoadOptions) check(root string) error {
	refuse := func(hint, format string, args ...any) error {
		return &Error{Op: "load capture", Path: root, Kind: ErrUsage, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	switch o.Downscale {
	case 0, 1, 2, 4, 8:
	default:
		return refuse("give 1, 2, 4 or 8, or 0 for auto", "%d is no downscale factor", o.Downscale)
	}
	switch o.Format {
	case "", FormatAuto, FormatColmap, FormatTransforms, FormatBlender:
		return nil
	}
	return refuse("give auto, colmap, transforms or blender", "%q is no format of a capture", o.Format)
}

// inRange says whether a position is finite and not absurdly far away.
func inRange(p [3]float64) bool {
	return math.Abs(p[0]) <= maxCoordinate && math.Abs(p[1]) <= maxCoordinate && math.Abs(p[2]) <= maxCoordinate
}

// chooseRoles leaves out photos that are for neither training nor evaluation, and
// notes which are held out.
func (c *Capture) chooseRoles(records []record) ([]record, error) {
	train, given := 0, false
	for _, r := range records {
		given = given || r.role != roleNone
		if r.role == roleTrain || r.role == roleNone {
			train++
		}
	}
	if !given {
		return records, nil
	}
	if train == 0 {
		return nil, badData("load capture", c.Model, "name the photos to train on in train_filenames, or remove the lists of filenames", "its lists of filenames leave no photo to train on")
	}
	c.HeldOut = map[string]bool{}
	var unused []string
	kept := make([]record, 0, len(records))
	for _, r := range records {
		switch r.role {
		case roleUnused:
			unused = append(unused, r.cam.Name)
			continue
		case roleTest:
			c.HeldOut[r.cam.Name] = true
		}
		kept = append(kept, r)
	}
	if len(unused) > 0 {
		c.warn("unused-split", fmt.Sprintf("%d of %d photos are neither for training nor for evaluation and are not used", len(unused), len(records)), unused)
	}
	return kept, nil
}
