package synth

import (
	"os"
	"path/filepath"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/ply"
	"vksplat/scene/transforms"
)

// streamMotion is the purpose of random numbers of motions, and the next.
const streamMotion uint32 = 0x10016

// motion is how the camera of photo i moves while its rows are read out: it turns about each of its axes by up to
// Options.Shutter, and its centre moves along each by up to that share of its distance. Those stand still which are
// held out when every 8th is.
func (o *Options) motion(i int, distance float64) (m scene.Motion) {
	if o.Shutter == 0 || i%heldOut == 0 {
		return m
	}
	turn, move := o.random(streamMotion, i), o.random(streamMotion+1, i)
	for k := range m.Turn {
		m.Turn[k], m.Move[k] = o.Shutter*(2*turn[k]-1), o.Shutter*distance*(2*move[k]-1)
	}
	return m
}

// ofRow is the lens where row y of a photo is read out.
func (l lens) ofRow(y int) lens {
	if l.camera.Moved() {
		c := l.camera.At((float64(y)+0.5)/float64(l.camera.Height) - 0.5)
		l.camera, l.eye = &c, c.Center()
	}
	return l
}

// WriteModel writes cameras and points into a capture whose photos are in its folder images: as COLMAP's sparse/0, with
// the points that each photo was found to show, or, as that says nothing of motion, as a transforms.json and a PLY
// where cameras may have moved.
func (s *Capture) WriteModel(dir string, cams []scene.Camera, points []scene.Point, found [][]colmap.Seen) error {
	if s.o.Shutter == 0 {
		model := filepath.Join(dir, "sparse", "0")
		if err := os.MkdirAll(model, 0o755); err != nil {
			return atomicfile.WriteError("make folder", model, err)
		}
		return colmap.WriteTracks(model, cams, points, found)
	}
	const cloud = "points.ply"
	if err := ply.WritePoints(filepath.Join(dir, cloud), ply.FilePoints(&scene.Capture{Points: points},
		[3]float64{})); err != nil {
		return err
	}
	return transforms.Write(filepath.Join(dir, transforms.TransformsFile), "images", cloud, cams)
}
