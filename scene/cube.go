package scene

import "math"

// cubeFaces are the cameras that a panorama becomes. r is the rotation from the camera's axes to the panorama's, row-major: its columns are the camera's
// right, down and forward.
var cubeFaces = [...]struct {
	name string
	r    [9]float64
}{
	{"back", [9]float64{-1, 0, 0, 0, 1, 0, 0, 0, -1}},
	{"down", [9]float64{1, 0, 0, 0, 0, 1, 0, -1, 0}},
	{"front", identity},
	{"left", [9]float64{0, 0, -1, 0, 1, 0, 1, 0, 0}},
	{"right", [9]float64{0, 0, 1, 0, 1, 0, -1, 0, 0}},
	{"up", [9]float64{1, 0, 0, 0, 0, -1, 0, 1, 0}},
}

// faces gives the six cameras of a panorama that is width pixels wide: pinholes of 90 degrees with the panorama's resolution at the equator, named after
// the photo as in pano.jpg/front.png. No photo can have such a name, because pano.jpg is a file. Camera.Photo holds the six together.
func (k Calibration) faces(cam Camera, width, downscale int) []Camera {
	side := max(int(math.Round(float64(width)/4)), 1)
	half := float64(side) / 2
	cam.Photo = cam.Name
	cam.Model, cam.Width, cam.Height = Pinhole, side, side
	cam.Fx, cam.Fy, cam.Cx, cam.Cy = half, half, half, half
	out := make([]Camera, len(cubeFaces))
	for i, face := range cubeFaces {
		c := cam.Rescaled(trainedSize(side, side, downscale))
		c.Name = cam.Name + "/" + face.name + ".png"
		c.Lens = &Lens{Calibration: k, R: face.r}
		out[i] = c.turned(face.r)
	}
	return out
}

func transposed(r [9]float64) [9]float64 {
	return [9]float64{r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}
}

// turned gives the camera turned by r, the rotation from its new axes to those it has.
func (c Camera) turned(r [9]float64) Camera {
	back := transposed(r)
	own := c.R
	for col := range 3 {
		v := rotate(back, [3]float64{own[col], own[3+col], own[6+col]})
		c.R[col], c.R[3+col], c.R[6+col] = v[0], v[1], v[2]
	}
	c.T = rotate(back, c.T)
	return c
}
