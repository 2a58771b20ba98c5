package scene

import "vksplat/internal/geom"

type CameraModel int

const (
	Pinhole CameraModel = iota // x = Fx X/Z + Cx
	Fisheye                    // equidistant: the distance from the principal point is proportional to the angle
)

// String gives the model's name in lower case.
func (m CameraModel) String() string {
	if m == Fisheye {
		return "fisheye"
	}
	return "pinhole"
}

type Camera struct {
	Name          string // relative to the photo folder, with slashes; unique in a capture
	Path          string // the photo on disk, "" if missing
	Width, Height int    // pixels trained on; Decode gives an image of this size

	// Focal lengths and principal point in those pixels; pixel centres are at
	// +0.5.
	Fx, Fy, Cx, Cy float64
	Model          CameraModel

	Lens       *Lens       // how the photo's pixels become the camera's; nil: by scaling alone
	Distortion *Distortion // the camera's own, see AsTaken; nil: it has none
	// name of the photo where several cameras share it, as the faces of a panorama do; "" otherwise. They are held out
	// together
	Photo        string
	Mask         string // file of the photo's mask, "" without
	MaskInverted bool   // black counts and white does not
	MaskGrow     int    // the masked-out region grows by this number of mask pixels

	// World to camera, x_cam = R x + T, OpenCV axes, in the frame of the
	// owning Capture. R is row-major and orthonormal.
	R      [9]float64
	T      [3]float64
	Motion Motion // while the photo was read out; only what AsTaken gives goes by it

	Depths [2]float64 // of the nearest and the farthest that the photo shows, by the capture's file; 0: it has none
}

// Center gives the camera's position, -Rᵀ T, in the frame of the owning
// Capture.
func (c Camera) Center() [3]float64 {
	var p [3]float64
	for i := range 3 {
		p[i] = -(c.R[i]*c.T[0] + c.R[3+i]*c.T[1] + c.R[6+i]*c.T[2])
	}
	return p
}

func (c Camera) ToCamera(p [3]float64) [3]float64 {
	return geom.Add(geom.Rotate(c.R, p), c.T)
}

// Quat gives the unit quaternion w, x, y, z of R, with w >= 0.
func (c Camera) Quat() [4]float64 {
	q := geom.QuatFromRotation(c.R)
	if q[0] < 0 {
		for i := range q {
			q[i] = -q[i]
		}
	}
	return q
}

// TrainedFocal is the longest focal length, in pixels, of the cameras that a model was trained by; 0 without any. In
// pictures of a longer one splats are larger than training ever saw them, and so must be the low-pass filter that was
// trained with: at its size of training it leaves gaps between small splats.
func TrainedFocal(cameras []Camera) (longest float64) {
	for i := range cameras {
		longest = max(longest, cameras[i].Fx, cameras[i].Fy)
	}
	return longest
}

// Rescaled gives the camera for an image of width x height pixels that shows
// the same view. Each axis has its own factor.
func (c Camera) Rescaled(width, height int) Camera {
	x := float64(width) / float64(c.Width)
	y := float64(height) / float64(c.Height)
	c.Fx, c.Cx = c.Fx*x, c.Cx*x
	c.Fy, c.Cy = c.Fy*y, c.Cy*y
	c.Width, c.Height = width, height
	return c
}

// LookAt sets the pose of a camera at eye that looks at target with the scene's
// z axis upwards in the image. OpenCV axes: x right, y down, z forward.
func LookAt(c *Camera, eye, target geom.Vec) {
	forward := target.Sub(eye).Unit()
	right := forward.Cross(geom.Vec{0, 0, 1}).Unit()
	down := forward.Cross(right)
	for j := range 3 {
		c.R[j], c.R[3+j], c.R[6+j] = right[j], down[j], forward[j]
	}
	c.T = geom.TranslationOf(c.R, eye)
}
