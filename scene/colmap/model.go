package colmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/scene"
)

// Seen is a point that an image was matched to.
type Seen struct {
	X, Y  float64 // pixels of the calibration
	Point uint64  // its id
}

// noPoint is the id of a 2D point that was not matched.
const noPoint = math.MaxUint64

// Model is a whole reconstruction in memory: images with the points that they show.
type Model struct {
	Cameras map[uint32]scene.Calibration
	Images  []Image  // in the order of the file
	Seen    [][]Seen // of each image
	Points  []Point
}

// Point is a point of a Model.
type Point struct {
	scene.Point
	ID    uint64
	Error float64 // pixels, mean over the images
}

// ReadModel reads the model that a capture's cameras are of. ok is false where that has no points of its own. An image
// may show points that are not there.
func ReadModel(c *scene.Capture) (m *Model, ok bool, err error) {
	form, ok := formOf(c)
	if !ok {
		return nil, false, nil
	}
	m = &Model{Cameras: map[uint32]scene.Calibration{}}
	err = form.read(c, "cameras", func(r io.Reader) error {
		cameras, err := form.Cameras(r)
		for id, k := range cameras {
			m.Cameras[id] = k.Lens
		}
		return err
	})
	if err == nil {
		err = form.read(c, "images", func(r io.Reader) error {
			return form.seen(r, func(img *Image, list []Seen) {
				m.Images, m.Seen = append(m.Images, *img), append(m.Seen, list)
			})
		})
	}
	if err == nil {
		err = form.read(c, "points3D", func(r io.Reader) error {
			return form.Tracks(r, func(t *Track) { m.Points = append(m.Points, Point{t.Point, t.ID, t.Error}) })
		})
	}
	return m, true, err
}

// PointsSize returns the bytes of the file with the points of the model that a capture's cameras are of; 0 where it
// cannot be read.
func PointsSize(c *scene.Capture) (size int64) {
	if form, ok := formOf(c); ok {
		_ = form.read(c, "points3D", func(r io.Reader) error { // ReadModel reports its errors
			at, err := fileCursor(r)
			if err == nil {
				size = int64(at.size)
			}
			return err
		})
	}
	return size
}

// PhotoName is the name of the photo of an image of a capture's model.
func PhotoName(c *scene.Capture, img *Image) string { return photoNameIn(c, img.Name) }

// Files returns the model's files, in binary form. Observations of points that are not there are left out, and 2D
// points that were not matched.
func (m *Model) Files() scene.Files {
	files := m.encode()
	return func(name string) (io.ReadCloser, int64, error) {
		b, known := files[name]
		if !known {
			return nil, 0, &fault.Error{Op: "open model", Path: name, Err: os.ErrNotExist}
		}
		return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	}
}

// Save writes the files of a model into dir, which is made if it is missing, each in full or not at all, and in binary
// form.
func Save(dir string, files scene.Files) error {
	if FormIn(files) == &TextModel {
		m, _, err := ReadModel(&scene.Capture{Format: scene.FormatColmap, Text: true, Calibrated: files})
		if err != nil {
			return err
		}
		files = m.Files()
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return &fault.Error{Op: "make folder", Path: dir, Err: fault.TrimPath(err),
			Hint: atomicfile.WriteHint(err, dir)}
	}
	for _, name := range ModelFiles {
		name += BinaryModel.Ext
		r, _, err := files(name)
		if err != nil {
			return err
		}
		err = atomicfile.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := io.Copy(w, r)
			return err
		})
		r.Close() // only read from
		if err != nil {
			return err
		}
	}
	return nil
}

// place is where an image shows a point.
type place struct {
	image uint32 // its id
	index uint32 // of its 2D points
}

// encode returns the contents of the model's files by name.
func (m *Model) encode() map[string][]byte {
	known := make(map[uint64]bool, len(m.Points))
	for _, p := range m.Points {
		known[p.ID] = true
	}
	tracks := make(map[uint64][]place, len(m.Points))
	le := binary.LittleEndian
	images := le.AppendUint64(nil, uint64(len(m.Images)))
	for i, img := range m.Images {
		var list []Seen
		if m.Seen != nil {
			list = slices.DeleteFunc(slices.Clone(m.Seen[i]), func(s Seen) bool { return !known[s.Point] })
		}
		images = le.AppendUint32(images, img.Id)
		images = appendFloats(images, img.Quat[:]...)
		images = appendFloats(images, img.T[:]...)
		images = le.AppendUint32(images, img.Camera)
		images = append(append(images, img.Name...), 0)
		images = le.AppendUint64(images, uint64(len(list)))
		for k, s := range list {
			images = le.AppendUint64(appendFloats(images, s.X, s.Y), s.Point)
			tracks[s.Point] = append(tracks[s.Point], place{img.Id, uint32(k)})
		}
	}
	return map[string][]byte{"cameras.bin": m.encodeCameras(), "images.bin": images,
		"points3D.bin": m.encodePoints(tracks)}
}

func (m *Model) encodeCameras() []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(m.Cameras)))
	for _, id := range slices.Sorted(maps.Keys(m.Cameras)) {
		k := m.Cameras[id]
		b = le.AppendUint32(b, id)
		b = le.AppendUint32(b, uint32(k.Model))
		b = le.AppendUint64(b, uint64(k.Width))
		b = le.AppendUint64(b, uint64(k.Height))
		b = appendFloats(b, k.Params...)
	}
	return b
}

func (m *Model) encodePoints(tracks map[uint64][]place) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(m.Points)))
	for _, p := range m.Points {
		b = le.AppendUint64(b, p.ID)
		b = appendFloats(b, p.Pos[:]...)
		b = append(b, p.Color[:]...)
		b = appendFloats(b, p.Error)
		b = le.AppendUint64(b, uint64(len(tracks[p.ID])))
		for _, t := range tracks[p.ID] {
			b = le.AppendUint32(le.AppendUint32(b, t.image), t.index)
		}
	}
	return b
}

func appendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// colmapRefusal says why a model cannot be written.
type colmapRefusal string

func (r colmapRefusal) Error() string { return string(r) }

// Write is WriteTracks without tracks.
func Write(dir string, cams []scene.Camera, pts []scene.Point) error {
	return WriteTracks(dir, cams, pts, nil)
}

// WriteTracks writes cameras.bin, images.bin and points3D.bin into dir, which is made if it is missing: one camera per
// set of equal intrinsics, PINHOLE or that of its lens, poses as quaternions, and of each camera the points that its
// photo shows, by their places from 1; nil: none of any. Cameras and points are written in the frame they are in. Each
// file is written in full or not at all. Cameras must be pinhole cameras or have a lens of COLMAP's, and names that
// hold no NUL.
func WriteTracks(dir string, cams []scene.Camera, pts []scene.Point, seen [][]Seen) error {
	m := &Model{Cameras: map[uint32]scene.Calibration{}, Seen: seen}
	ids := map[string]uint32{}
	for i := range cams {
		c := &cams[i]
		switch {
		case c.Model != scene.Pinhole && c.Lens == nil || c.Photo != "" ||
			c.Lens != nil && c.Lens.Calibration.Model >= scene.LensPolynomial:
			return &fault.Error{Op: "write cameras", Path: c.Name,
				Err: colmapRefusal("only pinhole cameras and lenses of COLMAP's can be written")}
		case c.Name == "" || bytes.IndexByte([]byte(c.Name), 0) >= 0:
			return &fault.Error{Op: "write images", Path: c.Name, Err: colmapRefusal("not a photo name")}
		}
		k := intrinsicsOf(c)
		id, known := ids[fmt.Sprint(k)]
		if !known {
			id = uint32(len(ids) + 1)
			ids[fmt.Sprint(k)], m.Cameras[id] = id, k
		}
		m.Images = append(m.Images, Image{Id: uint32(i + 1), Camera: id, Quat: c.Quat(), T: c.T, Name: c.Name})
	}
	for i, p := range pts {
		m.Points = append(m.Points, Point{Point: p, ID: uint64(i + 1)})
	}
	return Save(dir, m.Files())
}

// intrinsicsOf is what a camera's photo was taken with: its lens if it has one.
func intrinsicsOf(c *scene.Camera) scene.Calibration {
	if c.Lens != nil {
		return c.Lens.Calibration
	}
	return scene.Calibration{Model: scene.LensPinhole, Width: c.Width, Height: c.Height,
		Params: []float64{c.Fx, c.Fy, c.Cx, c.Cy}}
}
