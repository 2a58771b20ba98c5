package scene

import (
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// AnyModel as LoadOptions.Model takes the model with most images.
const AnyModel = -1

// LoadOptions says how a capture is read.
type LoadOptions struct {
	Images    string // folder of the photos, below the capture's or absolute; "" means images or input
	Model     int    // as in sparse/N, or AnyModel
	Downscale int    // 1, 2, 4 or 8, or 0 to bring widths above 1600 pixels to 1600
	Strict    bool   // a photo that is missing or has a broken header is an error
}

const (
	minPhotos     = 3    // fewer views than this say nothing about depth
	maxNames      = 5    // in a warning or an error
	maxCoordinate = 1e15 // beyond it float64 resolves no tenth of a unit
	farOrigin     = 1e4  // float32 resolves a thousandth of a unit here and no finer
)

// Load reads a capture: a COLMAP model in binary form and the headers of its
// photos. Cameras are sorted by name and have the size of the pixels to train on;
// cameras whose photo is missing or has no readable header are left out with a
// warning, unless o.Strict. Everything is in the capture's own frame. Errors are
// of type *Error, most of kind ErrData, and carry a hint. Memory is bounded by a
// constant times the size of the model's files.
func Load(root string, o LoadOptions) (*Capture, error) {
	switch o.Downscale {
	case 0, 1, 2, 4, 8:
	default:
		return nil, &Error{Op: "load capture", Path: root, Kind: ErrUsage, Err: fmt.Errorf("%d is no downscale factor", o.Downscale), Hint: "give 1, 2, 4 or 8, or 0 for auto"}
	}
	model, warnings, err := discover(root, o.Model)
	if err != nil {
		return nil, err
	}
	c := &Capture{Root: root, Model: model.dir, Frame: Identity(), Warnings: warnings}
	if err := c.readModel(o.Images); err != nil {
		return nil, err
	}
	if c.Images, err = photoDir(root, o.Images); err != nil {
		return nil, err
	}
	reduced, err := c.findPhotos(o.Downscale)
	if err != nil {
		return nil, err
	}
	if err := c.readSizes(o, reduced); err != nil {
		return nil, err
	}
	return c, nil
}

// warn adds a warning about names; it shows the first of them.
func (c *Capture) warn(code, text string, names []string) {
	c.Warnings = append(c.Warnings, Warning{Code: code, Count: len(names), Names: firstNames(names), Text: text})
}

func firstNames(names []string) []string {
	return slices.Clone(names[:min(len(names), maxNames)])
}

// readModel fills Cameras, without photos, and Points. images is the folder of
// photos that was asked for, to be named in a hint.
func (c *Capture) readModel(images string) error {
	var cameras map[uint32]colmapCamera
	var views []colmapImage
	var bad int
	read := func(name string, parse func(data []byte) error) error {
		return readColmap(filepath.Join(c.Model, name), parse)
	}
	err := read("cameras.bin", func(data []byte) (err error) {
		cameras, err = parseColmapCameras(data)
		return err
	})
	if err != nil {
		return err
	}
	err = read("images.bin", func(data []byte) (err error) {
		views, err = parseColmapImages(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.addCameras(cameras, views, images); err != nil {
		return err
	}
	err = read("points3D.bin", func(data []byte) (err error) {
		c.Points, bad, err = parseColmapPoints(data)
		return err
	})
	if err != nil {
		return err
	}
	if len(c.Points) == 0 {
		return &Error{Op: "read points3D.bin", Path: filepath.Join(c.Model, "points3D.bin"), Err: errors.New("the model has no usable points to start from"),
			Hint: "triangulate points from the known poses: colmap point_triangulator --database_path database.db --image_path ... --input_path ... --output_path ..."}
	}
	if bad > 0 {
		c.Warnings = append(c.Warnings, Warning{Code: "bad-points", Count: bad, Text: fmt.Sprintf("left out %d of %d points whose coordinates are not finite or beyond %g", bad, bad+len(c.Points), float64(maxCoordinate))})
	}
	return nil
}

// addCameras makes Cameras of the records, sorted by name.
func (c *Capture) addCameras(cameras map[uint32]colmapCamera, views []colmapImage, images string) error {
	file := filepath.Join(c.Model, "images.bin")
	if len(views) == 0 {
		return &Error{Op: "read images.bin", Path: file, Err: errors.New("the model has no registered images"),
			Hint: "the reconstruction failed: run COLMAP's mapper again, or choose another model with --model N"}
	}
	c.Cameras = make([]Camera, 0, len(views))
	for _, v := range views {
		k, known := cameras[v.camera]
		if !known {
			return &Error{Op: "read images.bin", Path: file, Err: fmt.Errorf("image %s has camera %d, which cameras.bin does not have", strconv.Quote(v.name), v.camera),
				Hint: "the two files are of different models: copy all three files of one model"}
		}
		if _, ok := k.pinhole(); !ok {
			return refuseModel(k, c.Model, c.photosForHint(images), c.Root)
		}
		cam, err := makeCamera(k, v)
		if err != nil {
			return &Error{Op: "read images.bin", Path: file, Err: err, Hint: "the model is damaged: export it again from COLMAP, without this image"}
		}
		c.Cameras = append(c.Cameras, cam)
	}
	slices.SortFunc(c.Cameras, func(a, b Camera) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(c.Cameras); i++ {
		if name := c.Cameras[i].Name; name == c.Cameras[i-1].Name {
			return &Error{Op: "read images.bin", Path: file, Err: fmt.Errorf("image %s is there twice", strconv.Quote(name)), Hint: "export the model again from COLMAP"}
		}
	}
	return nil
}

// photosForHint names the folder of photos in a command to run.
func (c *Capture) photosForHint(images string) string {
	if dir, err := photoDir(c.Root, images); err == nil {
		return dir
	}
	return filepath.Join(c.Root, photoFolders[0])
}

// makeCamera checks a record and turns it into a Camera.
func makeCamera(k colmapCamera, v colmapImage) (Camera, error) {
	quoted := strconv.Quote(v.name)
	name := path.Clean(strings.ReplaceAll(v.name, `\`, "/"))
	if v.name == "" || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
		return Camera{}, fmt.Errorf("image %s does not name a file below the folder of photos", quoted)
	}
	f, _ := k.pinhole()
	if !(f[0] > 0 && f[1] > 0 && f[0] < maxCoordinate && f[1] < maxCoordinate) || math.Abs(f[2]) > maxCoordinate || math.Abs(f[3]) > maxCoordinate {
		return Camera{}, fmt.Errorf("camera %d of image %s has the focal lengths %g, %g and the principal point %g, %g", k.id, quoted, f[0], f[1], f[2], f[3])
	}
	r, ok := rotationFromQuat(v.quat)
	if !ok {
		return Camera{}, fmt.Errorf("image %s has the rotation %g, which is none", quoted, v.quat)
	}
	if !inRange(v.t) {
		return Camera{}, fmt.Errorf("image %s has the translation %g", quoted, v.t)
	}
	return Camera{Name: name, Width: k.width, Height: k.height, Fx: f[0], Fy: f[1], Cx: f[2], Cy: f[3], R: r, T: v.t}, nil
}

// inRange says whether a position is finite and not absurdly far away.
func inRange(p [3]float64) bool {
	return math.Abs(p[0]) <= maxCoordinate && math.Abs(p[1]) <= maxCoordinate && math.Abs(p[2]) <= maxCoordinate
}

// findPhotos sets the Path of the cameras. With a downscale of N > 1 a folder
// beside Images whose name ends in _N goes first; it is returned, or "".
func (c *Capture) findPhotos(downscale int) (reduced string, err error) {
	folders := []string{c.Images}
	if dir := fmt.Sprintf("%s_%d", filepath.Clean(c.Images), downscale); downscale > 1 && isDir(dir) {
		reduced = dir
		folders = []string{dir, c.Images}
		c.Images = dir
	}
	for i, dir := range folders {
		index, err := indexPhotos(dir)
		if err != nil {
			return "", err
		}
		index.find(c.Cameras)
		if extra := index.unused(); i == 0 && len(extra) > 0 {
			c.warn("unregistered-photos", fmt.Sprintf("%d of %d photos are not part of the model and are not used", len(extra), len(index.names)), extra)
		}
		if !slices.ContainsFunc(c.Cameras, func(cam Camera) bool { return cam.Path == "" }) {
			break
		}
	}
	return reduced, nil
}

// readSizes reads the photos' headers, sets the cameras to the pixels to train on
// and leaves out cameras without a usable photo. Photos in the folder reduced, if
// there is one, have been downscaled already.
func (c *Capture) readSizes(o LoadOptions, reduced string) error {
	var missing, broken []string
	var cause error
	wide, all := 0, len(c.Cameras)
	kept := make([]Camera, 0, all)
	for _, cam := range c.Cameras {
		if cam.Path == "" {
			missing = append(missing, cam.Name)
			continue
		}
		w, h, err := photoSize(cam.Path)
		if err != nil {
			if cause == nil {
				cause = &Error{Op: "read photo", Path: cam.Path, Err: err, Hint: foreignHint(cam.Path, err)}
			}
			broken = append(broken, cam.Name)
			continue
		}
		if !sameAspect(w, h, cam.Width, cam.Height) {
			return mismatch(cam, w, h)
		}
		downscale := o.Downscale
		if reduced != "" && strings.HasPrefix(cam.Path, reduced+string(filepath.Separator)) {
			downscale = 1
		}
		tw, th := trainedSize(w, h, downscale)
		if downscale == 0 && tw != w {
			wide++
		}
		kept = append(kept, cam.Rescaled(tw, th))
	}
	c.Cameras = kept
	if err := c.report(all, missing, broken, cause, o.Strict); err != nil {
		return err
	}
	if wide > 0 {
		c.Warnings = append(c.Warnings, Warning{Code: "reduced-photos", Count: wide,
			Text: fmt.Sprintf("%d of %d photos are wider than %d pixels and are reduced to that; --downscale 1 trains on all pixels", wide, all, wideLimit)})
	}
	return nil
}

// mismatch refuses a photo that cannot be what was calibrated.
func mismatch(cam Camera, w, h int) error {
	hint := "train on the photos that COLMAP was given, or on copies of them scaled as a whole, not cropped"
	if sameAspect(h, w, cam.Width, cam.Height) {
		hint = turnedHint(cam.Path)
	}
	return badData("read photo", cam.Path, hint, "the photo has %d x %d pixels, its calibration is for %d x %d, and the aspects differ", w, h, cam.Width, cam.Height)
}

// turnedHint explains a photo whose sides are swapped against its calibration.
func turnedHint(path string) string {
	const uprightTags = 4 // those above swap the sides
	if tag, err := PhotoOrientation(path); err == nil && tag > uprightTags {
		return fmt.Sprintf("the calibration is of upright pixels, the file stores them turned, with orientation tag %d: "+
			"apply the tags to copies of the photos (mogrify -auto-orient) and train on those", tag)
	}
	return "the photo was turned after calibration: use the files that COLMAP was given, without applying their orientation tag"
}

// report warns of photos that are left out, or refuses the capture when strict
// or when too few remain. cause is about the first of broken.
func (c *Capture) report(all int, missing, broken []string, cause error, strict bool) error {
	if lost := len(missing) + len(broken); lost > 0 && (strict || len(c.Cameras) < minPhotos) {
		return c.lostPhotos(all, missing, broken, cause)
	}
	if len(c.Cameras) < minPhotos {
		return &Error{Op: "load capture", Path: c.Model, Err: fmt.Errorf("%d images are registered, at least %d are needed", len(c.Cameras), minPhotos),
			Hint: "take more photos that overlap, or choose another model with --model N"}
	}
	if len(missing) > 0 {
		c.warn("missing-photos", fmt.Sprintf("left out %d of %d images without a photo in %s", len(missing), all, c.Images), missing)
	}
	if len(broken) > 0 {
		c.warn("broken-photos", fmt.Sprintf("left out %d of %d photos that cannot be read, the first because of %q", len(broken), all, cause.Error()), broken)
	}
	return nil
}

func (c *Capture) lostPhotos(all int, missing, broken []string, cause error) error {
	var parts []string
	if n := len(missing); n > 0 {
		parts = append(parts, Warning{Count: n, Names: firstNames(missing), Text: fmt.Sprintf("%d of %d photos are missing", n, all)}.String())
	}
	if n := len(broken); n > 0 {
		parts = append(parts, Warning{Count: n, Names: firstNames(broken), Text: fmt.Sprintf("%d of %d photos cannot be read", n, all)}.String())
		parts = append(parts, cause.Error())
	}
	hint := "name the folder of the photos with --images DIR; names are looked up relative to it, without regard to case and extension"
	if len(missing) == 0 {
		hint = "copy or export these photos again as JPEG or PNG"
		if len(c.Cameras) >= minPhotos {
			hint += ", or leave out --strict to train without them"
		}
	}
	if convert := Hint(cause); convert != "" {
		hint = convert
	}
	return &Error{Op: "load photos", Path: c.Images, Err: errors.New(strings.Join(parts, "; ")), Hint: hint}
}

// Origin gives what to subtract from coordinates that are written, in the
// capture's own frame: nothing with mode "keep", the given numbers with "x,y,z", and
// with "auto" the mean camera rounded to whole numbers if a coordinate of a camera
// exceeds 1e4, nothing otherwise; points do not count, because a single stray one
// would move an ordinary capture. It may be called before and after Normalise. Errors are of kind ErrUsage.
func (c *Capture) Origin(mode string) (origin [3]float64, err error) {
	switch mode {
	case "keep":
		return origin, nil
	case "auto":
		return c.autoOrigin(), nil
	}
	fail := &Error{Op: "choose origin", Kind: ErrUsage, Err: fmt.Errorf("%s is no origin", strconv.Quote(mode)),
		Hint: "give keep, auto or three numbers, as in 500000,4500000,0"}
	parts := strings.Split(mode, ",")
	if len(parts) != len(origin) {
		return origin, fail
	}
	for i, p := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !finite(x) {
			return [3]float64{}, fail
		}
		origin[i] = x
	}
	return origin, nil
}

func (c *Capture) autoOrigin() (origin [3]float64) {
	if len(c.Cameras) == 0 {
		return origin
	}
	far := 0.0
	var mean [3]float64
	for _, cam := range c.Cameras {
		for k, x := range c.Frame.ToCapture(cam, [3]float64{}).Center() {
			mean[k] += x / float64(len(c.Cameras))
			far = max(far, math.Abs(x))
		}
	}
	if far <= farOrigin {
		return origin
	}
	for k, x := range mean {
		origin[k] = math.Round(x) + 0 // no negative zero
	}
	return origin
}
