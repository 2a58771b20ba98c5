package colmap

import (
	"io"
	"math"
	"path/filepath"
	"slices"

	"vksplat/internal/geom"
	"vksplat/scene"
)

const (
	// strayPixels is by how much a reconstruction shows a point elsewhere than where the photo does at most: beyond,
	// one of them is of something else.
	strayPixels = 8
	// leastAnchors is how many points say something about a pose.
	leastAnchors = 8
	noPoint      = math.MaxUint64 // of a 2D point that was not matched
)

// seen is a point that an image was found to show.
type seen struct {
	x, y float64 // pixels of the calibration
	id   uint64
}

// Anchors returns for each camera of a capture up to most points of its reconstruction, evenly taken of all that its
// photo shows, and where in the camera's picture that is. A camera may have none. Captures that are no COLMAP model in
// binary form, or whose points have no tracks, have none at all: nil. The capture must be in its own frame. Files are
// read a few kilobytes at a time.
func Anchors(c *scene.Capture, most int) ([][]scene.Anchor, error) {
	if c.Format != scene.FormatColmap || c.Text || BinaryModel.cloud(c.Model) != "" {
		return nil, nil
	}
	dropped, err := droppedIDs(c)
	if err != nil {
		return nil, err
	}
	byName := map[string]int{}
	for i := range c.Cameras {
		byName[c.Cameras[i].PhotoName()] = i
	}
	var cameras map[uint32]Camera
	err = BinaryModel.Read(filepath.Join(c.Model, "cameras.bin"), func(r io.Reader) (err error) {
		cameras, err = BinaryModel.Cameras(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([][]scene.Anchor, len(c.Cameras))
	wanted := map[uint64][]place{}
	err = BinaryModel.Read(filepath.Join(c.Model, "images.bin"), func(r io.Reader) error {
		cur, err := fileCursor(r)
		if err != nil {
			return err
		}
		_, err = parseImages(cur, func(img *Image) {
			found := evenly(slices.DeleteFunc(cur.seen(), func(s seen) bool { return dropped[s.id] }), most)
			i, known := byName[photoNameIn(c, img.Name)]
			if k, calibrated := cameras[img.Camera]; known && calibrated {
				for _, s := range found {
					if x, y, ok := inPicture(&c.Cameras[i], k.Lens, s.x, s.y); ok {
						wanted[s.id] = append(wanted[s.id], place{i, len(list[i])})
						list[i] = append(list[i], scene.Anchor{Point: [3]float64{math.NaN()}, X: x, Y: y})
					}
				}
			}
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = BinaryModel.Read(filepath.Join(c.Model, "points3D.bin"), func(r io.Reader) error {
		return BinaryModel.Tracks(r, func(t *Track) {
			for _, p := range wanted[t.ID] {
				list[p.camera][p.anchor].Point = t.Pos
			}
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i] = likely(&c.Cameras[i], list[i])
	}
	return list, nil
}

// droppedIDs returns the ids of the points that the capture does not keep.
func droppedIDs(c *scene.Capture) (map[uint64]bool, error) {
	if c.Kept == nil {
		return nil, nil
	}
	dropped, point := map[uint64]bool{}, 0
	err := BinaryModel.Read(filepath.Join(c.Model, "points3D.bin"), func(r io.Reader) error {
		return BinaryModel.Tracks(r, func(t *Track) {
			if !c.Keeps(point) {
				dropped[t.ID] = true
			}
			point++
		})
	})
	return dropped, err
}

// Seen is a point that an image was matched to.
type Seen struct {
	X, Y  float64 // pixels of the calibration
	Point uint64  // its id
}

// EachImage calls f for the images of a model in binary form, with the points that each was matched to.
func EachImage(dir string, f func(img *Image, points []Seen)) error {
	return BinaryModel.Read(filepath.Join(dir, "images.bin"), func(r io.Reader) error {
		cur, err := fileCursor(r)
		if err != nil {
			return err
		}
		_, err = parseImages(cur, func(img *Image) {
			var list []Seen
			for _, s := range cur.seen() {
				list = append(list, Seen{s.x, s.y, s.id})
			}
			f(img, list)
		})
		return err
	})
}

// place is the number of an anchor of a camera.
type place struct{ camera, anchor int }

// seen reads the 2D points of an image that were matched.
func (c *cursor) seen() (list []seen) {
	for n := c.count(seenBytes, "2D points"); n > 0 && c.err == nil; n-- {
		var at [2]float64
		c.floats(at[:])
		if id := c.u64(); id != noPoint && geom.Finite(at[:]...) {
			list = append(list, seen{at[0], at[1], id})
		}
	}
	return list
}

// evenly returns n of a list at even distances, or all.
func evenly(list []seen, n int) []seen {
	if len(list) <= n {
		return list
	}
	out := make([]seen, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

// inPicture returns where a camera's picture shows what is at a pixel of its photo.
func inPicture(c *scene.Camera, k scene.Calibration, x, y float64) (px, py float64, ok bool) {
	if c.Lens == nil {
		return x * float64(c.Width) / float64(k.Width), y * float64(c.Height) / float64(k.Height), true
	}
	o, err := k.Optics(k.Width, k.Height)
	if err != nil || (o.Plane == scene.TangentPlane) != (c.Model == scene.Pinhole) || c.Lens.R != geom.Identity {
		return 0, 0, false
	}
	p, ok := o.ToPlane(x, y, [2]float64{})
	return c.Fx*p[0] + c.Cx, c.Fy*p[1] + c.Cy, ok
}

// likely leaves out what is not near where the camera shows the point, and all where too little is left.
func likely(c *scene.Camera, list []scene.Anchor) (kept []scene.Anchor) {
	for _, a := range list {
		if !geom.Finite(a.Point[:]...) {
			continue
		}
		if x, y, _, in := c.Project(a.Point, 0, math.Inf(1)); in && math.Hypot(x-a.X, y-a.Y) < strayPixels {
			kept = append(kept, a)
		}
	}
	if len(kept) < leastAnchors {
		return nil
	}
	return kept
}
