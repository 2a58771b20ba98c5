package colmap

import (
	"io"
	"slices"

	"vksplat/scene"
)

// Track is a point of a reconstruction, and what it says of it. It holds until the next one.
type Track struct {
	scene.Point
	ID     uint64
	Error  float64  // pixels, mean over the images
	Images []uint32 // ids of the images that the point was matched in
}

// EachTrack calls f for the points of a COLMAP model, in the order of Points, with the cameras that the reconstruction
// matched each in: their places in Cameras, in no order. Of cameras that share a photo, those are meant that have the
// point in their pictures. The capture must be in its own frame. It reads the model's files again, a few kilobytes at a
// time. The other formats, and models whose points are a PLY, have no tracks: f is not called.
func EachTrack(c *scene.Capture, f func(point int, cams []int)) error {
	inFile, point := 0, 0
	return eachTrack(c, func(_ *Track, cams []int) {
		if c.Keeps(inFile) {
			f(point, cams)
			point++
		}
		inFile++
	})
}

// DropUnobserved drops the points that a held-out photo and fewer than two training photos observed: without the
// held-out photos there would be no such points. Points without a track, as of a LiDAR, stay, and so do those that one
// training photo alone accounts for, as in the models of networks. tracked is false if no point has a track: nothing
// says then what the points owe to held-out photos.
func DropUnobserved(c *scene.Capture) (dropped int, tracked bool, err error) {
	if len(c.HeldOut) == 0 || len(c.Points) == 0 {
		return 0, true, nil
	}
	var kept []bool
	var points []scene.Point
	var photos []string
	err = eachTrack(c, func(t *Track, cams []int) {
		tracked = tracked || len(t.Images) > 0
		photos = photos[:0]
		held := false
		for _, i := range cams {
			if name := c.Cameras[i].PhotoName(); c.HeldOut[name] {
				held = true
			} else if !slices.Contains(photos, name) {
				photos = append(photos, name)
			}
		}
		keep := len(kept) < len(c.Points) && (!held || len(photos) >= 2)
		if keep {
			points = append(points, c.Points[len(kept)])
		}
		kept = append(kept, keep)
	})
	if err != nil || !tracked {
		return 0, tracked, err
	}
	dropped = len(c.Points) - len(points)
	c.Points, c.Kept = points, kept
	return dropped, true, nil
}

// eachTrack calls f for all points of the files, with the cameras as EachTrack has them.
func eachTrack(c *scene.Capture, f func(t *Track, cams []int)) error {
	form, ok := formOf(c)
	if !ok {
		return nil
	}
	byName := map[string][]int{}
	for i := range c.Cameras {
		name := c.Cameras[i].PhotoName()
		byName[name] = append(byName[name], i)
	}
	byID := map[uint32][]int{}
	err := form.read(c, "images", func(r io.Reader) error {
		views, err := form.Images(r)
		for _, v := range views {
			if list, used := byName[photoNameIn(c, v.Name)]; used {
				byID[v.Id] = list
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var cams []int
	return form.read(c, "points3D", func(r io.Reader) error {
		return form.Tracks(r, func(t *Track) {
			cams = cams[:0]
			for _, id := range t.Images {
				for _, i := range byID[id] {
					if len(byID[id]) == 1 || c.Cameras[i].Sees(t.Pos) {
						cams = append(cams, i)
					}
				}
			}
			f(t, cams)
		})
	})
}
