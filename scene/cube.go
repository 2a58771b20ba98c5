package scene

import (
	"math"

	"vksplat/internal/geom"
)

// CubeFaces are the cameras that a panorama becomes. r is the rotation from the camera's axes to the panorama's,
// row-major: its columns are the camera's right, down and forward.
var CubeFaces = [...]struct {
	name string
	R    [9]float64
}{
	{"back", [9]float64{-1, 0, 0, 0, 1, 0, 0, 0, -1}},
	{"down", [9]float64{1, 0, 0, 0, 0, 1, 0, -1, 0}},
	{"front", geom.Identity},
	{"left", [9]float64{0, 0, -1, 0, 1, 0, 1, 0, 0}},
	{"right", [9]float64{0, 0, 1, 0, 1, 0, -1, 0, 0}},
	{"up", [9]float64{1, 0, 0, 0, 0, -1, 0, 1, 0}},
}

// faces gives the six cameras of a panorama that is width pixels wide: pinholes of 90 degrees with the panorama's
// resolution at the equator, named after the photo as in pano.jpg/front.png. No photo can have such a name, because
// pano.jpg is a file. Camera.Photo holds the six together.
func (k Calibration) faces(cam Camera, width, downscale int) []Camera {
	side := max(int(math.Round(float64(width)/4)), 1)
	half := float64(side) / 2
	cam.Photo = cam.Name
	cam.Model, cam.Width, cam.Height = Pinhole, side, side
	cam.Fx, cam.Fy, cam.Cx, cam.Cy = half, half, half, half
	out := make([]Camera, len(CubeFaces))
	for i, face := range CubeFaces {
		c := cam.Rescaled(TrainedSize(side, side, downscale))
		c.Name = cam.Name + "/" + face.name + ".png"
		c.Lens = &Lens{Calibration: k, R: face.R}
		out[i] = c.Turned(face.R)
	}
	return out
}

// Turned gives the camera turned by r, the rotation from its new axes to those it has.
func (c Camera) Turned(r [9]float64) Camera {
	back := geom.Transposed(r)
	own := c.R
	for col := range 3 {
		v := geom.Rotate(back, [3]float64{own[col], own[3+col], own[6+col]})
		c.R[col], c.R[3+col], c.R[6+col] = v[0], v[1], v[2]
	}
	c.T = geom.Rotate(back, c.T)
	return c
}
