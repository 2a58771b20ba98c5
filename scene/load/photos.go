package load

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/filekind"
	"vksplat/internal/parallel"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/transforms"
)

// FindPhotos sets Images and the Path of the records. With a downscale of N > 1 a
// folder beside Images whose name ends in _N goes first, unless o says otherwise; it is
// returned, or "".
func FindPhotos(c *scene.Capture, records []scene.Record, o scene.LoadOptions) (reduced string, err error) {
	switch {
	case c.Format == scene.FormatColmap || o.Images != "":
		if c.Images, err = photo.Dir(c.Root, o.Images); err != nil && o.Images == "" {
			if c.Images = photo.FolderOf(c.Root, namesOf(records)); c.Images != "" {
				err = nil
			}
		}
		if err != nil {
			return "", err
		}
		if c.Format != scene.FormatColmap {
			nameRecords(transforms.NewFinder(c), records)
		}
	default:
		if c.Images, err = locateFiles(c, records, o.Strict); err != nil {
			return "", err
		}
	}
	folders := []string{c.Images}
	dir := fmt.Sprintf("%s_%d", filepath.Clean(c.Images), o.Downscale)
	if o.Downscale > 1 && !o.FullPhotos && filepath.Clean(c.Images) != filepath.Clean(c.Root) && atomicfile.IsDir(dir) {
		reduced = dir
		folders = []string{dir, c.Images}
		c.Images = dir
	}
	named := c.Format != scene.FormatColmap && o.Images == "" // the capture has said where the photos are
	cams := make([]scene.Camera, len(records))
	for i, r := range records {
		cams[i] = scene.Camera{Name: r.Cam.Name}
	}
	for i, dir := range folders {
		if named && dir != reduced {
			break
		}
		index, err := photo.IndexDir(dir)
		if err != nil {
			return "", err
		}
		index.Find(cams)
		index.FindByEnds(cams)
		if dir == reduced && c.Format == scene.FormatLLFF {
			index.FindInOrder(cams)
		}
		if i == 0 {
			warnUnregistered(c, index.Unused(), len(index.Names))
		}
		if !slices.ContainsFunc(cams, func(cam scene.Camera) bool { return cam.Path == "" }) {
			break
		}
	}
	takeFound(c, records, cams)
	return reduced, nil
}

// takeFound gives records the photos of cams that were found, and the names that these have where theirs led elsewhere.
func takeFound(c *scene.Capture, records []scene.Record, cams []scene.Camera) {
	for i := range records {
		cam := &records[i].Cam
		if cams[i].Path != "" {
			cam.Path = cams[i].Path
		}
		if cams[i].Name != cam.Name {
			c.Renamed[cam.Name] = cams[i].Name
			cam.Name = cams[i].Name
		}
	}
}

// within is a photo's name as a path below the folder of photos.
func within(name string) string {
	if photo.LeadsOut(name) {
		name = path.Base(name)
	}
	return filepath.FromSlash(name)
}

func namesOf(records []scene.Record) (names []string) {
	for _, r := range records {
		names = append(names, r.Cam.Name)
	}
	return names
}

type photoHeader struct {
	width, height int
	err           error
}

// readHeaders reads the headers of the photos that there are, side by side.
func readHeaders(records []scene.Record) []photoHeader {
	headers := make([]photoHeader, len(records))
	parallel.For(len(records), func(i int) {
		if h := &headers[i]; records[i].Cam.Path != "" {
			h.width, h.height, h.err = photo.Size(records[i].Cam.Path)
		}
	})
	return headers
}

// makeViews reads the photos' headers and makes Cameras of the records, for the
// pixels to train on. Records without a usable photo are left out. Photos in the
// folder reduced, if there is one, have been downscaled already.
func makeViews(c *scene.Capture, records []scene.Record, o scene.LoadOptions, reduced string) error {
	var lost lostPhotos
	finder := photo.NewLocator(c.Root)
	maker := viewMaker{made: map[string]scene.Camera{}}
	wide, kept := 0, 0
	c.Cameras = make([]scene.Camera, 0, len(records))
	headers := readHeaders(records)
	for i, r := range records {
		if r.Cam.Path == "" {
			c.LeaveOut(r.Cam.Name, false)
			if lost.missing = append(lost.missing, r.Cam.Name); lost.foreign == "" {
				lost.foreign = finder.Foreign(cmp.Or(r.File, filepath.Join(c.Images, within(r.Cam.Name))))
			}
			continue
		}
		w, h, err := headers[i].width, headers[i].height, headers[i].err
		if err != nil {
			if lost.cause == nil {
				lost.cause = unreadable(r.Cam.Path, err)
			}
			lost.broken = append(lost.broken, r.Cam.Name)
			c.LeaveOut(r.Cam.Name, true)
			continue
		}
		downscale := o.Downscale
		if reduced != "" && strings.HasPrefix(r.Cam.Path, reduced+string(filepath.Separator)) {
			downscale = 1
		}
		if tw, _ := scene.TrainedSize(w, h, downscale); downscale == 0 && tw != w {
			wide++
		}
		views, err := maker.views(r, w, h, downscale)
		if err != nil {
			return err
		}
		c.Cameras = append(c.Cameras, views...)
		kept++
	}
	if err := maker.mismatched.refuse(); err != nil {
		return err
	}
	if err := sortCameras(c); err != nil {
		return err
	}
	if err := report(c, len(records), kept, lost, o.Strict); err != nil {
		return err
	}
	if wide > 0 {
		c.Warnings = append(c.Warnings, scene.Warning{Code: "reduced-photos", Count: wide,
			Text: fmt.Sprintf("%d of %d photos are wider than %d pixels and are reduced to that; %s 1 trains on "+
				"all pixels",
				wide, len(records), scene.WideLimit, fault.Setting("downscale"))})
	}
	return nil
}

// sortCameras orders the cameras by name, and refuses names that are there twice.
func sortCameras(c *scene.Capture) error {
	slices.SortStableFunc(c.Cameras, func(a, b scene.Camera) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(c.Cameras); i++ {
		if name := c.Cameras[i].Name; name == c.Cameras[i-1].Name {
			return fault.Data("load capture", c.Model, "give each photo a name of its own",
				"two photos have the name %q", name)
		}
	}
	return nil
}

// viewMaker makes the cameras of photos. Photos of one calibration and size share
// all but name, files and pose, so that a lens is worked out once.
type viewMaker struct {
	made       map[string]scene.Camera // by calibration and size
	mismatched mismatches
}

func (m *viewMaker) views(r scene.Record, w, h, downscale int) ([]scene.Camera, error) {
	lens := r.Lens.Calibration(w, h)
	if !photo.SameAspect(w, h, lens.Width, lens.Height) {
		m.mismatched.add(r.Cam, w, h, lens)
		return nil, nil
	}
	key := fmt.Sprint(lens, w, h, downscale)
	if cam, ok := m.made[key]; ok {
		own := r.Cam
		cam.Name, cam.Path, cam.Mask, cam.MaskInverted = own.Name, own.Path, own.Mask, own.MaskInverted
		cam.R, cam.T, cam.Motion, cam.Depths = own.R, own.T, own.Motion, own.Depths
		return []scene.Camera{cam}, nil
	}
	views, err := lens.Views(r.Cam, w, h, downscale)
	if err == nil && len(views) == 1 && views[0].Photo == "" {
		m.made[key] = views[0]
	}
	return views, err
}

// mismatches are photos that cannot be what was calibrated.
type mismatches struct {
	first error
	names []string
}

func (m *mismatches) add(cam scene.Camera, w, h int, lens scene.Calibration) {
	if m.names = append(m.names, cam.Name); m.first != nil {
		return
	}
	hint := "train on the photos that the calibration was made from, or on copies of them scaled as a whole, not " +
		"cropped"
	if photo.SameAspect(h, w, lens.Width, lens.Height) {
		hint = turnedHint(cam.Path)
	}
	m.first = fault.Data("read photo", cam.Path, hint,
		"the photo has %d x %d pixels, its calibration is for %d x %d, and the aspects differ", w, h, lens.Width,
		lens.Height)
}

// refuse gives the error about them, nil if there are none.
func (m *mismatches) refuse() error {
	var e *fault.Error
	if more := len(m.names) - 1; more > 0 && errors.As(m.first, &e) {
		e.Err = fmt.Errorf("%w; the same goes for %s", e.Err,
			scene.Warning{Count: more, Names: scene.FirstNames(m.names[1:]), Text: fmt.Sprintf("%d more", more)})
	}
	return m.first
}

// turnedHint explains a photo whose sides are swapped against its calibration.
func turnedHint(path string) string {
	if tag, sideways := photo.SidewaysTag(path); sideways {
		return fmt.Sprintf("the calibration is of upright pixels, the file stores them turned, with orientation tag "+
			"%d: apply the tags to copies of the photos (mogrify -auto-orient) and train on those", tag)
	}
	return "the photo was turned after calibration: use the files that COLMAP was given, without applying their " +
		"orientation tag"
}

// lostPhotos are photos that cannot be trained on.
type lostPhotos struct {
	missing, broken []string
	// the first file that stands in place of a missing one and is not decoded, "" if there is none
	foreign string
	cause   error // of the first of broken
}

// inPlace names a photo that only has to be converted, "" if there is none.
func (l *lostPhotos) inPlace() string {
	if l.foreign == "" {
		return ""
	}
	return fmt.Sprintf("; %s is there, but %s is not read", wording.Printable(l.foreign),
		photo.KindInPlace(l.foreign).Name)
}

// report warns of photos that are left out, or refuses the capture when strict
// or when too few are kept.
func report(c *scene.Capture, all, kept int, lost lostPhotos, strict bool) error {
	if len(lost.missing)+len(lost.broken) > 0 && (strict || kept < scene.MinPhotos) {
		return refusePhotos(c, all, kept, lost)
	}
	if kept < scene.MinPhotos {
		hint := "take more overlapping photos"
		if c.Format == scene.FormatColmap {
			hint += ", or choose another model with " + fault.Setting("model") + " N"
		}
		return &fault.Error{Op: "load capture", Path: c.Model,
			Err: fmt.Errorf("%d images are registered, at least %d are needed", kept, scene.MinPhotos), Hint: hint}
	}
	if n := len(lost.missing); n > 0 {
		c.Warn("missing-photos",
			fmt.Sprintf("left out %d of %d images without a photo in %s%s", n, all, c.Images, lost.inPlace()),
			lost.missing)
		c.Warnings[len(c.Warnings)-1].Remedy = photo.ConversionHint(lost.foreign)
	}
	if n := len(lost.broken); n > 0 {
		c.Warn("broken-photos",
			fmt.Sprintf("left out %d of %d photos that cannot be read, the first because of %q", n, all,
				lost.cause.Error()), lost.broken)
		c.Warnings[len(c.Warnings)-1].Remedy = fault.Hint(lost.cause)
	}
	return nil
}

// unreadable says why a photo cannot be read, and what to do about it.
func unreadable(path string, err error) error {
	hint := photo.HintOf(path, err)
	if errors.Is(err, fs.ErrPermission) {
		hint = "make these photos readable for this user"
	} else if kind, remedy := kindOf(path); hint == "" && kind != "" && kind != filekind.Photo {
		hint, err = remedy, errors.New("the file is "+kind)
	}
	return &fault.Error{Op: "read photo", Path: path, Err: err, Hint: hint}
}

// kindOf names what a file in place of a photo is, "" for what is not known.
func kindOf(path string) (kind, hint string) {
	f, _, err := fault.Open(path)
	if err != nil {
		return "", ""
	}
	defer f.Close() // only read from
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head) // a shorter file is recognised by what it has
	return filekind.Of("", head[:n])
}

func refusePhotos(c *scene.Capture, all, kept int, lost lostPhotos) error {
	var parts []string
	if n := len(lost.missing); n > 0 {
		parts = append(parts, scene.Warning{Count: n, Names: scene.FirstNames(lost.missing),
			Text: fmt.Sprintf("%d of %d photos cannot be found%s", n, all, lost.inPlace())}.String())
	}
	if n := len(lost.broken); n > 0 {
		parts = append(parts, scene.Warning{Count: n, Names: scene.FirstNames(lost.broken),
			Text: fmt.Sprintf("%d of %d photos cannot be read", n, all)}.String())
		parts = append(parts, lost.cause.Error())
	}
	hint := "name the folder of the photos with " + fault.Setting("images") +
		" DIR; names are looked up relative to it, without regard to case and extension"
	if slices.ContainsFunc(lost.missing, photo.LeadsOut) {
		hint += ", and of a name from another machine the longest end that one photo has"
	}
	if len(lost.missing) == 0 {
		hint = "copy or export these photos again as JPEG or PNG"
	}
	if c.Calibrated != nil {
		hint += "; " + fault.Setting("cameras") + " takes a model of the same photos alone"
	}
	hint = cmp.Or(photo.ConversionHint(lost.foreign), fault.Hint(lost.cause), hint)
	if kept >= scene.MinPhotos {
		hint = "leave out " + fault.Setting("strict") + " to train without them, or " + hint
	}
	return &fault.Error{Op: "load photos", Path: c.Images, Err: errors.New(strings.Join(parts, "; ")), Hint: hint}
}
