package colmap

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/scene"
)

// colmapRefusal says why a model cannot be written.
type colmapRefusal string

func (r colmapRefusal) Error() string { return string(r) }

// Write is WriteTracks without tracks.
func Write(dir string, cams []scene.Camera, pts []scene.Point) error {
	return WriteTracks(dir, cams, pts, nil)
}

// Sighting is a point, by its place in the list, where a photo shows it, in pixels.
type Sighting struct {
	Point int
	X, Y  float64
}

// WriteTracks writes cameras.bin, images.bin and points3D.bin into dir, which is made if it is missing: one camera per
// set of equal intrinsics, PINHOLE or that of its lens, poses as quaternions, and of each camera the points that its
// photo shows; nil: none of any. Cameras and points are written in the frame they are in. Each file is written in full
// or not at all. Cameras must be pinhole cameras or have a lens of COLMAP's, and names that hold no NUL.
func WriteTracks(dir string, cams []scene.Camera, pts []scene.Point, found [][]Sighting) error {
	for _, c := range cams {
		switch {
		case c.Model != scene.Pinhole && c.Lens == nil || c.Photo != "" ||
			c.Lens != nil && c.Lens.Calibration.Model >= scene.LensPolynomial:
			return &fault.Error{Op: "write cameras", Path: c.Name,
				Err: colmapRefusal("only pinhole cameras and lenses of COLMAP's can be written")}
		case c.Name == "" || strings.ContainsRune(c.Name, 0):
			return &fault.Error{Op: "write images", Path: c.Name, Err: colmapRefusal("not a photo name")}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &fault.Error{Op: "make folder", Path: dir, Err: fault.TrimPath(err),
			Hint: atomicfile.WriteHint(err, dir)}
	}
	ids, distinct := shareIntrinsics(cams)
	files := []struct {
		name   string
		append func(b []byte) []byte
	}{
		{"cameras.bin", func(b []byte) []byte { return appendColmapCameras(b, distinct) }},
		{"images.bin", func(b []byte) []byte { return appendColmapImages(b, cams, ids, found) }},
		{"points3D.bin", func(b []byte) []byte { return appendColmapPoints(b, pts, found) }},
	}
	for _, f := range files {
		if err := atomicfile.WriteText(filepath.Join(dir, f.name), f.append(nil)); err != nil {
			return err
		}
	}
	return nil
}

// intrinsicsOf returns the intrinsics of a camera's photo: its lens if it has one.
func intrinsicsOf(c *scene.Camera) scene.Calibration {
	if c.Lens != nil {
		return c.Lens.Calibration
	}
	return scene.Calibration{Model: scene.LensPinhole, Width: c.Width, Height: c.Height,
		Params: []float64{c.Fx, c.Fy, c.Cx, c.Cy}}
}

// shareIntrinsics gives each camera the number, from 1, of its intrinsics.
func shareIntrinsics(cams []scene.Camera) (ids []uint32, distinct []scene.Calibration) {
	seen := map[string]uint32{}
	ids = make([]uint32, len(cams))
	for i := range cams {
		k := intrinsicsOf(&cams[i])
		key := fmt.Sprint(k)
		id, ok := seen[key]
		if !ok {
			distinct = append(distinct, k)
			id = uint32(len(distinct))
			seen[key] = id
		}
		ids[i] = id
	}
	return ids, distinct
}

func appendColmapCameras(b []byte, distinct []scene.Calibration) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(len(distinct)))
	for i, k := range distinct {
		b = le.AppendUint32(b, uint32(i+1))
		b = le.AppendUint32(b, uint32(k.Model))
		b = le.AppendUint64(b, uint64(k.Width))
		b = le.AppendUint64(b, uint64(k.Height))
		b = appendFloats(b, k.Params...)
	}
	return b
}

func appendColmapImages(b []byte, cams []scene.Camera, ids []uint32, found [][]Sighting) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(len(cams)))
	for i, c := range cams {
		q := c.Quat()
		b = le.AppendUint32(b, uint32(i+1))
		b = appendFloats(b, q[:]...)
		b = appendFloats(b, c.T[:]...)
		b = le.AppendUint32(b, ids[i])
		b = append(b, c.Name...)
		b = append(b, 0)
		var list []Sighting
		if found != nil {
			list = found[i]
		}
		b = le.AppendUint64(b, uint64(len(list)))
		for _, s := range list {
			b = le.AppendUint64(appendFloats(b, s.X, s.Y), uint64(s.Point+1))
		}
	}
	return b
}

func appendColmapPoints(b []byte, pts []scene.Point, found [][]Sighting) []byte {
	le := binary.LittleEndian
	tracks := make([][]byte, len(pts)) // pairs of an image's id and of a place in its list
	for i, list := range found {
		for k, s := range list {
			t := le.AppendUint32(tracks[s.Point], uint32(i+1))
			tracks[s.Point] = le.AppendUint32(t, uint32(k))
		}
	}
	b = le.AppendUint64(b, uint64(len(pts)))
	for i, p := range pts {
		b = le.AppendUint64(b, uint64(i+1))
		b = appendFloats(b, p.Pos[:]...)
		b = append(b, p.Color[:]...)
		b = appendFloats(b, 0) // reprojection error
		b = le.AppendUint64(b, uint64(len(tracks[i])/8))
		b = append(b, tracks[i]...)
	}
	return b
}

func appendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
