package load

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/photo"
	"vksplat/scene/transforms"
)

// Capture reads a capture: a COLMAP model, binary or text, a transforms.json in one
// of its dialects, or the cameras that another program exported, and the headers of its photos. root is the capture's
// folder, or a file of cameras. Cameras are sorted by name and have the size of the pixels to train on;
// cameras whose photo is missing or has no readable header, or whose pose cannot be
// right, are left out with a warning, unless o.Strict. Points may be absent. Everything is in the capture's own
// frame. Errors are of type *fault.Error, most of kind fault.ErrData, and carry a hint. Memory is
// bounded by a constant times the size of the model's files.
func Capture(root string, o scene.LoadOptions) (*scene.Capture, error) {
	if err := check(o, root); err != nil {
		return nil, err
	}
	what, warnings, err := discover(root, o)
	if err != nil {
		return nil, err
	}
	c := &scene.Capture{Root: what.root, Model: what.model, Format: what.format, Frame: scene.Identity(),
		Warnings: warnings, Renamed: map[string]string{}}
	records, err := readRecords(c, what, o)
	if err != nil {
		return nil, err
	}
	reduced, err := FindPhotos(c, records, o)
	if err == nil && o.Cameras != nil {
		err = compareOwn(c, what.files, records, o)
	}
	if err != nil {
		return nil, err
	}
	if records, err = chooseRoles(c, records); err != nil {
		return nil, err
	}
	if records, err = dropBadPoses(c, records, o.Strict); err != nil {
		return nil, err
	}
	if err := makeViews(c, records, o, reduced); err != nil {
		return nil, err
	}
	if err := DropWildPoses(c, o.Strict); err != nil {
		return nil, err
	}
	if train, _ := c.Split(0); len(train) == 0 {
		return nil, fault.Data("load capture", c.Model, "make photos of the training list available",
			"all photos that are there are held out: none is left to train on")
	}
	if beside := filepath.Clean(c.Images) != filepath.Clean(c.Root); o.Masks != "" || beside {
		if err := photo.AttachMasks(c, o.Masks, o.InvertMasks); err != nil {
			return nil, err
		}
	}
	for i := range c.Cameras {
		if cam := &c.Cameras[i]; cam.Mask != "" {
			cam.MaskGrow = o.GrowMasks
		}
	}
	return c, nil
}

// readRecords reads what the files of a capture say of its photos, and its points.
func readRecords(c *scene.Capture, what found, o scene.LoadOptions) (records []scene.Record, err error) {
	switch {
	case what.format == scene.FormatColmap:
		form := what.files
		if c.Calibrated = o.Cameras; o.Cameras != nil {
			form = colmap.FormIn(o.Cameras)
		}
		c.Text = form == &colmap.TextModel
		records, err = colmap.Read(c)
	case o.Cameras != nil:
		return nil, &fault.Error{Op: "load capture", Path: c.Root, Kind: fault.ErrUsage,
			Err:  errors.New("only the cameras of a COLMAP model can be replaced by others"),
			Hint: "give " + fault.Setting("cameras") + " given"}
	default:
		records, err = readers[what.format].read(c, o)
	}
	if err == nil && o.UndoAppliedTransform {
		err = transforms.UndoApplied(c, records)
	}
	return records, err
}

// compareOwn notes which photos of the capture's own model the cameras that are used omit: they count where every n-th
// photo is held out, so that a run and those that use its cameras hold out the same ones.
func compareOwn(c *scene.Capture, form *colmap.Form, records []scene.Record, o scene.LoadOptions) error {
	own, err := form.Records(c.Model)
	if err != nil {
		return err
	}
	as := &scene.Capture{Root: c.Root, Model: c.Model, Format: c.Format, Renamed: map[string]string{}}
	if _, err := FindPhotos(as, own, o); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, r := range records {
		used[r.Cam.Path] = true
	}
	for _, r := range own {
		if r.Cam.Path != "" && !used[r.Cam.Path] {
			c.LeaveOut(r.Cam.Name, true)
		}
	}
	return nil
}

// mostGrowth bounds GrowMasks: far more than anybody's outline is off.
const mostGrowth = 1000

// check refuses values that no option has.
func check(o scene.LoadOptions, root string) error {
	refuse := func(hint, format string, args ...any) error {
		return &fault.Error{Op: "load capture", Path: root, Kind: fault.ErrUsage, Err: fmt.Errorf(format, args...),
			Hint: hint}
	}
	switch o.Downscale {
	case 0, 1, 2, 4, 8:
	default:
		return refuse("give 1, 2, 4 or 8, or 0 for auto", "%d is not a downscale factor", o.Downscale)
	}
	if o.GrowMasks < 0 || o.GrowMasks > mostGrowth {
		return refuse(fmt.Sprintf("give 0 to %d", mostGrowth), "masks cannot grow by %d pixels", o.GrowMasks)
	}
	if o.Format == "" || o.Format == scene.FormatAuto || slices.Contains(scene.Formats, o.Format) {
		return nil
	}
	return refuse("give auto, "+wording.Or(scene.Formats), "%q is not a format of a capture", o.Format)
}

// chooseRoles leaves out photos that are for neither training nor evaluation, and
// notes which are held out.
func chooseRoles(c *scene.Capture, records []scene.Record) ([]scene.Record, error) {
	train, given := 0, false
	for _, r := range records {
		given = given || r.Role != scene.RoleNone
		if r.Role == scene.RoleTrain || r.Role == scene.RoleNone {
			train++
		}
	}
	if !given {
		return records, nil
	}
	if train == 0 {
		return nil, fault.Data("load capture", c.Model,
			"name the photos to train on in train_filenames, or remove the lists of filenames",
			"its lists of filenames leave no photo to train on")
	}
	c.HeldOut = map[string]bool{}
	var unused []string
	kept := make([]scene.Record, 0, len(records))
	for _, r := range records {
		switch r.Role {
		case scene.RoleUnused:
			unused = append(unused, r.Cam.Name)
			continue
		case scene.RoleTest:
			c.HeldOut[r.Cam.Name] = true
		}
		kept = append(kept, r)
	}
	if len(unused) > 0 {
		c.Warn("unused-split",
			fmt.Sprintf("%d of %d photos are neither for training nor for evaluation and are not used", len(unused),
				len(records)), unused)
	}
	return kept, nil
}
