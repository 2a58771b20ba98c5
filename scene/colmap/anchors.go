package colmap

import (
	"io"
	"math"
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
)

// Anchors returns for each camera of a capture up to most points of its reconstruction, evenly taken of all that its
// photo shows, and where in the camera's picture that is. A camera may have none. Captures that are no COLMAP model,
// or whose points have no tracks, have none at all: nil. The capture must be in its own frame. Files are
// read a few kilobytes at a time.
func Anchors(c *scene.Capture, most int) ([][]scene.Anchor, error) {
	form, ok := formOf(c)
	if !ok {
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
	err = form.read(c, "cameras", func(r io.Reader) (err error) {
		cameras, err = form.Cameras(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([][]scene.Anchor, len(c.Cameras))
	type place struct{ camera, anchor int }
	wanted := map[uint64][]place{}
	err = form.read(c, "images", func(r io.Reader) error {
		return form.seen(r, func(img *Image, all []Seen) {
			found := evenly(slices.DeleteFunc(all, func(s Seen) bool { return dropped[s.Point] }), most)
			i, known := byName[photoNameIn(c, img.Name)]
			if k, calibrated := cameras[img.Camera]; known && calibrated {
				for _, s := range found {
					if x, y, ok := inPicture(&c.Cameras[i], k.Lens, s.X, s.Y); ok {
						wanted[s.Point] = append(wanted[s.Point], place{i, len(list[i])})
						list[i] = append(list[i], scene.Anchor{Point: [3]float64{math.NaN()}, X: x, Y: y})
					}
				}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	err = form.read(c, "points3D", func(r io.Reader) error {
		return form.Tracks(r, func(t *Track) {
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
	form, _ := formOf(c)
	err := form.read(c, "points3D", func(r io.Reader) error {
		return form.Tracks(r, func(t *Track) {
			if !c.Keeps(point) {
				dropped[t.ID] = true
			}
			point++
		})
	})
	return dropped, err
}

// evenly returns n of a list at even distances, or all.
func evenly(list []Seen, n int) []Seen {
	if len(list) <= n {
		return list
	}
	out := make([]Seen, n)
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
