package scene

import (
	"io"
	"path/filepath"
)

// EachTrack calls f for the points of a COLMAP model, in the order of Points, with the cameras that the reconstruction matched each in: their places in
// Cameras, in no order. Of cameras that share a photo, those are meant that have the point in their pictures. The capture must be in its own frame. It reads the model's files again, a few kilobytes at a time. The other
// formats have no tracks: f is not called.
func (c *Capture) EachTrack(f func(point int, cams []int)) error {
	if c.Format != FormatColmap {
		return nil
	}
	form := &binaryModel
	if c.text {
		form = &textModel
	}
	byName := map[string][]int{}
	for i := range c.Cameras {
		name := c.Cameras[i].PhotoName()
		byName[name] = append(byName[name], i)
	}
	byID := map[uint32][]int{}
	err := form.read(filepath.Join(c.Model, "images"+form.ext), func(r io.Reader) error {
		views, err := form.images(r)
		for _, v := range views {
			if list, used := byName[photoNameOf(v.name)]; used {
				byID[v.id] = list
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var cams []int
	point := 0
	return form.read(filepath.Join(c.Model, "points3D"+form.ext), func(r io.Reader) error {
		return form.tracks(r, func(p Point, images []uint32) {
			cams = cams[:0]
			for _, id := range images {
				for _, i := range byID[id] {
					if len(byID[id]) == 1 || c.Cameras[i].Sees(p.Pos) {
						cams = append(cams, i)
					}
				}
			}
			f(point, cams)
			point++
		})
	})
}
