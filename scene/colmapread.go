package scene

import (
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
)

// colmapFiles parses the three files of a model in one of its two forms. Since
// COLMAP 3.12 a model has rigs and frames beside them; the poses and cameras of
// its images are in the three files as before, so the two others are not read.
type colmapFiles struct {
	ext     string
	cameras func(r io.Reader) (map[uint32]colmapCamera, error)
	images  func(r io.Reader) ([]colmapImage, error)
	points  func(r io.Reader) (points []Point, bad int, err error)
	tracks  func(r io.Reader, put func(p Point, images []uint32)) error // the same points, with the images they were matched in
}

var binaryModel = colmapFiles{".bin",
	func(r io.Reader) (map[uint32]colmapCamera, error) {
		c, err := fileCursor(r)
		if err != nil {
			return nil, err
		}
		return parseColmapCameras(c)
	},
	func(r io.Reader) ([]colmapImage, error) {
		c, err := fileCursor(r)
		if err != nil {
			return nil, err
		}
		return parseColmapImages(c)
	},
	func(r io.Reader) ([]Point, int, error) {
		c, err := fileCursor(r)
		if err != nil {
			return nil, 0, err
		}
		return parseColmapPoints(c)
	},
	func(r io.Reader, put func(p Point, images []uint32)) error {
		c, err := fileCursor(r)
		if err == nil {
			_, err = eachColmapPoint(c, func(int) {}, put, true)
		}
		return err
	},
}

// fileCursor returns a cursor over a file, whose size bounds what its records can claim.
func fileCursor(r io.Reader) (*cursor, error) {
	f, ok := r.(*os.File)
	if !ok {
		return nil, errNoFile
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return newCursor(f, info.Size()), nil
}

var textModel = colmapFiles{".txt", parseTextCameras, parseTextImages, parseTextPoints,
	func(r io.Reader, put func(p Point, images []uint32)) error {
		_, err := eachTextPoint(r, put, true)
		return err
	},
}

// formOf gives the form in which a folder holds a model: binary, unless only the
// text is complete or only text is there.
func formOf(dir string) (f *colmapFiles, ok bool) {
	count := func(ext string) (n int) {
		for _, name := range modelFiles {
			if info, err := os.Stat(filepath.Join(dir, name+ext)); err == nil && !info.IsDir() {
				n++
			}
		}
		return n
	}
	bin, txt := count(binaryModel.ext), count(textModel.ext)
	switch {
	case bin == len(modelFiles) || bin > 0 && txt < len(modelFiles):
		return &binaryModel, true
	case txt > 0:
		return &textModel, true
	}
	return nil, false
}

// countImages gives the number of images that a model claims, 0 if it cannot be read.
func (f *colmapFiles) countImages(dir string) uint64 {
	file := filepath.Join(dir, "images"+f.ext)
	if regular(file) != nil {
		return 0
	}
	r, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer r.Close() // only read from
	if f.ext == textModel.ext {
		return countTextImages(r)
	}
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(head[:])
}

// readModel fills Points and gives the records of the photos.
func (c *Capture) readModel(f *colmapFiles) ([]record, error) {
	var cameras map[uint32]colmapCamera
	var views []colmapImage
	var bad int
	read := func(name string, parse func(r io.Reader) error) error {
		return f.read(filepath.Join(c.Model, name+f.ext), parse)
	}
	err := read("cameras", func(r io.Reader) (err error) {
		cameras, err = f.cameras(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = read("images", func(r io.Reader) (err error) {
		views, err = f.images(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	records, err := colmapRecords(filepath.Join(c.Model, "images"+f.ext), cameras, views)
	if err != nil {
		return nil, err
	}
	err = read("points3D", func(r io.Reader) (err error) {
		c.Points, bad, err = f.points(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.warnBadPoints(bad)
	return records, nil
}

// read opens one file of a model and parses it.
func (f *colmapFiles) read(file string, parse func(r io.Reader) error) error {
	op := "read " + filepath.Base(file)
	err := regular(file)
	var r *os.File
	if err == nil {
		r, err = os.Open(file)
	}
	if err != nil {
		return &Error{Op: op, Path: file, Err: trimPath(err), Kind: readKind(err),
			Hint: fmt.Sprintf("a COLMAP model needs cameras%s, images%[1]s and points3D%[1]s in one folder, all readable", f.ext)}
	}
	defer r.Close() // only read from
	if err := parse(r); err != nil {
		hint := "the file is damaged: copy it again, or export the model again from COLMAP (File, Export model, or colmap model_converter)"
		if errors.Is(err, errCut) {
			hint = "the file is cut short or damaged: copy it again from where COLMAP wrote it and compare sizes, or export the model again"
		}
		return &Error{Op: op, Path: file, Err: trimPath(err), Hint: hint}
	}
	return nil
}

// colmapRecords makes records of what file and its neighbours say.
func colmapRecords(file string, cameras map[uint32]colmapCamera, views []colmapImage) ([]record, error) {
	op := "read " + filepath.Base(file)
	if len(views) == 0 {
		return nil, &Error{Op: op, Path: file, Err: errors.New("the model has no registered images"),
			Hint: "the reconstruction failed: run COLMAP's mapper again, or choose another model with --model N"}
	}
	records := make([]record, 0, len(views))
	for _, v := range views {
		k, known := cameras[v.camera]
		if !known {
			return nil, &Error{Op: op, Path: file, Err: fmt.Errorf("image %s has camera %d, which cameras%s does not have", strconv.Quote(v.name), v.camera, filepath.Ext(file)),
				Hint: "the two files are of different models: copy all three files of one model"}
		}
		cam, err := makeCamera(k, v)
		var bad error
		if err != nil {
			bad = &Error{Op: op, Path: file, Err: err, Hint: "the model is damaged: export it again from COLMAP, without this image"}
		}
		if bad != nil && !errors.Is(err, errPose) {
			return nil, bad
		}
		records = append(records, record{cam: cam, lens: k, bad: bad})
	}
	sortRecords(records)
	for i := 1; i < len(records); i++ {
		if name := records[i].cam.Name; name == records[i-1].cam.Name {
			return nil, &Error{Op: op, Path: file, Err: fmt.Errorf("image %s is there twice", strconv.Quote(name)), Hint: "export the model again from COLMAP"}
		}
	}
	return records, nil
}

// photoNameOf is the name that a capture has for an image of a model: with slashes.
func photoNameOf(name string) string { return path.Clean(strings.ReplaceAll(name, `\`, "/")) }

// errPose is the kind of error of a pose that is not finite, out of range or not a rotation.
var errPose = errors.New("no pose")

// poseError is an error of that kind.
type poseError struct{ cause error }

func (e poseError) Error() string { return e.cause.Error() }

func (poseError) Is(target error) bool { return target == errPose }

// makeCamera checks a record and gives its name and pose. If only the pose is bad, the error is of kind errPose and the
// name is still set.
func makeCamera(k colmapCamera, v colmapImage) (Camera, error) {
	quoted := strconv.Quote(v.name)
	name := photoNameOf(v.name)
	if v.name == "" || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
		return Camera{}, fmt.Errorf("image %s does not name a file below the folder of photos", quoted)
	}
	for _, p := range k.lens.Params {
		if math.Abs(p) > maxCoordinate {
			return Camera{}, fmt.Errorf("camera %d of image %s has the parameter %g", k.id, quoted, p)
		}
	}
	if f := k.lens.Params[0]; !(f > 0) && k.lens.Model != LensEquirectangular {
		return Camera{}, fmt.Errorf("camera %d of image %s has the focal length %g", k.id, quoted, f)
	}
	r, ok := rotationFromQuat(v.quat)
	if !ok {
		return Camera{Name: name}, poseError{fmt.Errorf("image %s has the rotation %g, which is none", quoted, v.quat)}
	}
	if !inRange(v.t) {
		return Camera{Name: name}, poseError{fmt.Errorf("image %s has the translation %g", quoted, v.t)}
	}
	return Camera{Name: name, R: r, T: v.t}, nil
}
