package colmap

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// Form parses the three files of a model in one of its two forms. Since
// COLMAP 3.12 a model has rigs and frames beside them; the poses and cameras of
// its images are in the three files as before, so the two others are not read.
type Form struct {
	Ext     string
	Cameras func(r io.Reader) (map[uint32]Camera, error)
	Images  func(r io.Reader) ([]Image, error)
	points  func(r io.Reader) (points []scene.Point, bad int, err error)
	// Tracks hands the same points to put, with the images that each was matched in.
	Tracks func(r io.Reader, put func(t *Track)) error
	// seen hands the images to put, with the points that each was matched to. Both hold until the next one.
	seen func(r io.Reader, put func(img *Image, list []Seen)) error
}

var BinaryModel = Form{".bin", withCursor(ParseCameras), withCursor(ParseImages),
	func(r io.Reader) ([]scene.Point, int, error) {
		c, err := fileCursor(r)
		if err != nil {
			return nil, 0, err
		}
		return ParsePoints(c)
	},
	func(r io.Reader, put func(t *Track)) error {
		c, err := fileCursor(r)
		if err == nil {
			_, err = eachColmapPoint(c, func(int) {}, put, true)
		}
		return err
	},
	func(r io.Reader, put func(img *Image, list []Seen)) error {
		c, err := fileCursor(r)
		if err == nil {
			_, err = parseImages(c, func(img *Image) { put(img, c.seen()) })
		}
		return err
	},
}

// withCursor parses a file by its cursor.
func withCursor[T any](parse func(c *cursor) (T, error)) func(r io.Reader) (T, error) {
	return func(r io.Reader) (out T, err error) {
		c, err := fileCursor(r)
		if err != nil {
			return out, err
		}
		return parse(c)
	}
}

// sized is what is read of a file of that many bytes.
type sized struct {
	io.Reader
	size int64
}

// fileCursor returns a cursor over a file, whose size bounds what its records can claim.
func fileCursor(r io.Reader) (*cursor, error) {
	switch r := r.(type) {
	case sized:
		return NewCursor(r, r.size), nil
	case *os.File:
		info, err := r.Stat()
		if err != nil {
			return nil, err
		}
		return NewCursor(r, info.Size()), nil
	}
	return nil, fault.ErrNotRegular
}

var TextModel = Form{".txt", parseTextCameras, parseTextImages, parseTextPoints,
	func(r io.Reader, put func(t *Track)) error {
		_, err := eachTextPoint(r, put, true)
		return err
	},
	eachTextImage,
}

// FormOf gives the form in which a folder holds a model: binary, unless only the
// text is complete or only text is there.
func FormOf(dir string) (f *Form, ok bool) {
	count := func(ext string) (n int) {
		for _, name := range ModelFiles {
			if info, err := os.Stat(filepath.Join(dir, name+ext)); err == nil && !info.IsDir() {
				n++
			}
		}
		return n
	}
	bin, txt := count(BinaryModel.Ext), count(TextModel.Ext)
	switch {
	case bin == len(ModelFiles) || bin > 0 && txt < len(ModelFiles):
		return &BinaryModel, true
	case txt > 0:
		return &TextModel, true
	}
	return nil, false
}

// CountImages gives the number of images that a model claims, 0 if it cannot be read.
func (f *Form) CountImages(dir string) uint64 {
	file := filepath.Join(dir, "images"+f.Ext)
	r, _, err := fault.Open(file)
	if err != nil {
		return 0
	}
	defer r.Close() // only read from
	if f.Ext == TextModel.Ext {
		return countTextImages(r)
	}
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(head[:])
}

// FormIn gives the form of a model's files: binary, unless only text is there.
func FormIn(files scene.Files) *Form {
	for _, f := range []*Form{&BinaryModel, &TextModel} {
		if r, _, err := files(ModelFiles[0] + f.Ext); err == nil {
			r.Close() // nothing was read
			return f
		}
	}
	return &BinaryModel
}

// formOf returns the form of the model that a capture's cameras are of. ok is false where that has no points of its
// own: the capture is no COLMAP model, or its points are a PLY.
func formOf(c *scene.Capture) (f *Form, ok bool) {
	f = &BinaryModel
	if c.Text {
		f = &TextModel
	}
	return f, c.Format == scene.FormatColmap && (c.Calibrated != nil || f.cloud(c.Model) == "")
}

// read opens one of the three files of the model that a capture's cameras are of, and parses it.
func (f *Form) read(c *scene.Capture, name string, parse func(r io.Reader) error) error {
	name += f.Ext
	if c.Calibrated == nil {
		return f.Read(filepath.Join(c.Model, name), parse)
	}
	r, size, err := c.Calibrated(name)
	if err != nil {
		return err
	}
	defer r.Close() // only read from
	if file, ok := r.(*os.File); ok {
		name = file.Name()
	}
	if err := parse(sized{r, size}); err != nil {
		return fault.Data("read cameras", name, "the file is cut short or damaged: copy the model again, or train again if "+
			"a run wrote it", "%w", err)
	}
	return nil
}

// Folder is a model in a folder.
func Folder(dir string) scene.Files {
	return func(name string) (io.ReadCloser, int64, error) {
		path := filepath.Join(dir, name)
		r, size, err := fault.Open(path)
		if err != nil {
			return nil, 0, &fault.Error{Op: "read cameras", Path: path, Err: err, Kind: fault.ReadKind(err),
				Hint: "these cameras are used in place of the capture's own, and a COLMAP model has three readable files: " +
					"restore them, or give " + fault.Setting("cameras") + " given"}
		}
		return r, size, nil
	}
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture) ([]scene.Record, error) {
	f, _ := formOf(c)
	records, err := f.records(c)
	if err != nil {
		return nil, err
	}
	if cloud := f.cloud(c.Model); cloud != "" && c.Calibrated == nil {
		return records, ply.ReadCloud(c, cloud)
	}
	var bad int
	err = f.read(c, "points3D", func(r io.Reader) (err error) {
		c.Points, bad, err = f.points(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.WarnBadPoints(bad)
	return records, nil
}

// cloud gives the PLY that holds a model's points in place of points3D, without tracks, as networks that estimate poses
// write it. "" if there is none, or points3D is there.
func (f *Form) cloud(dir string) string {
	file := filepath.Join(dir, "points3D.ply")
	if _, err := os.Stat(filepath.Join(dir, "points3D"+f.Ext)); err == nil || fault.Regular(file) != nil {
		return ""
	}
	return file
}

// Read opens one file of a model and parses it.
func (f *Form) Read(file string, parse func(r io.Reader) error) error {
	op := "read " + filepath.Base(file)
	r, _, err := fault.Open(file)
	if err != nil {
		return &fault.Error{Op: op, Path: file, Err: err, Kind: fault.ReadKind(err),
			Hint: fmt.Sprintf("a COLMAP model needs cameras%s, images%[1]s and points3D%[1]s in one folder, all "+
				"readable", f.Ext)}
	}
	defer r.Close() // only read from
	if err := parse(r); err != nil {
		hint := "the file is damaged: copy it again, or export the model again from COLMAP (File, Export model, or " +
			"colmap model_converter)"
		if errors.Is(err, errCut) {
			hint = "the file is cut short or damaged: copy it again from where COLMAP wrote it and compare sizes, or " +
				"export the model again"
		}
		return &fault.Error{Op: op, Path: file, Err: fault.TrimPath(err), Hint: hint}
	}
	return nil
}

// Records gives those of the photos of the model in a folder, by name.
func (f *Form) Records(dir string) ([]scene.Record, error) {
	return f.records(&scene.Capture{Model: dir})
}

func (f *Form) records(c *scene.Capture) ([]scene.Record, error) {
	var cameras map[uint32]Camera
	err := f.read(c, "cameras", func(r io.Reader) (err error) {
		cameras, err = f.Cameras(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	var views []Image
	err = f.read(c, "images", func(r io.Reader) (err error) {
		views, err = f.Images(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	file := "images" + f.Ext
	if c.Calibrated == nil {
		file = filepath.Join(c.Model, file)
	}
	return recordsOf(file, cameras, views)
}

func recordsOf(file string, cameras map[uint32]Camera, views []Image) ([]scene.Record, error) {
	op := "read " + filepath.Base(file)
	if len(views) == 0 {
		return nil, &fault.Error{Op: op, Path: file, Err: errors.New("the model has no registered images"),
			Hint: "the reconstruction failed: run COLMAP's mapper again, or choose another model with " +
				fault.Setting("model") + " N"}
	}
	records := make([]scene.Record, 0, len(views))
	for _, v := range views {
		k, known := cameras[v.Camera]
		if !known {
			return nil, &fault.Error{Op: op, Path: file,
				Err: fmt.Errorf("image %s has camera %d, which cameras%s does not have", strconv.Quote(v.Name),
					v.Camera, filepath.Ext(file)),
				Hint: "the two files are of different models: copy all three files of one model"}
		}
		cam, err := makeCamera(k, v)
		var bad error
		if err != nil {
			bad = &fault.Error{Op: op, Path: file, Err: err,
				Hint: "the model is damaged: export it again from COLMAP, without this image"}
		}
		if bad != nil && !errors.Is(err, scene.ErrPose) {
			return nil, bad
		}
		records = append(records, scene.Record{Cam: cam, Lens: k, Bad: bad})
	}
	scene.SortRecords(records)
	for i := 1; i < len(records); i++ {
		if name := records[i].Cam.Name; name == records[i-1].Cam.Name {
			return nil, &fault.Error{Op: op, Path: file,
				Err:  fmt.Errorf("image %s occurs twice", strconv.Quote(name)),
				Hint: "export the model again from COLMAP"}
		}
	}
	return records, nil
}

// photoNameOf is the name that a capture has for an image of a model: with slashes.
func photoNameOf(name string) string { return path.Clean(strings.ReplaceAll(name, `\`, "/")) }

// photoNameIn is the name of the photo of an image of a capture's model.
func photoNameIn(c *scene.Capture, image string) string {
	name := photoNameOf(image)
	return cmp.Or(c.Renamed[name], name)
}

// makeCamera checks a record and gives its name and pose. If only the pose is bad, the error is of kind scene.ErrPose
// and the name is still set.
func makeCamera(k Camera, v Image) (scene.Camera, error) {
	quoted := strconv.Quote(v.Name)
	name := photoNameOf(v.Name)
	if v.Name == "" || strings.Trim(path.Base(name), "./") == "" || strings.ContainsRune(name, 0) {
		return scene.Camera{}, fmt.Errorf("image %s does not name a file", quoted)
	}
	finite := geom.Finite(k.Lens.Params...) // or the photo alone is left out
	for _, p := range k.Lens.Params {
		if finite && math.Abs(p) > scene.MaxCoordinate {
			return scene.Camera{}, fmt.Errorf("camera %d of image %s has the parameter %g", k.id, quoted, p)
		}
	}
	if f := k.Lens.Params[0]; finite && f <= 0 && k.Lens.Model != scene.LensEquirectangular {
		return scene.Camera{}, fmt.Errorf("camera %d of image %s has the focal length %g", k.id, quoted, f)
	}
	r, ok := geom.RotationFromQuat(v.Quat)
	if !ok {
		return scene.Camera{Name: name},
			scene.PoseError{Cause: fmt.Errorf("image %s has the rotation %g, which is not one", quoted, v.Quat)}
	}
	if !scene.InRange(v.T) {
		return scene.Camera{Name: name},
			scene.PoseError{Cause: fmt.Errorf("image %s has the translation %g", quoted, v.T)}
	}
	return scene.Camera{Name: name, R: r, T: v.T}, nil
}

// ModelFiles are the files of a COLMAP model, without extension.
var ModelFiles = [...]string{"cameras", "images", "points3D"}
