package scene

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
)

// Motion is how a camera moved while its photo was read out, row by row from top to bottom: from the pose of the top
// edge to that of the bottom, at constant velocities. The camera's own pose is that of the middle. Zero is a camera
// that stood still, or one that takes all rows at once.
type Motion struct {
	Turn [3]float64 // rotation vector, radians, along the axes of the middle pose
	Move [3]float64 // of the centre, along the same axes, in the unit of T
}

// mostTurn is the largest turn that makes sense, in radians.
const mostTurn = 0.5

var motionHint = "correct the two poses, or rolling_shutter_time (seconds) and the camera's velocities (radians and " +
	"units of the capture a second), or leave out " + fault.Setting("native-lens") + ": the camera stands still then"

// CheckTravel refuses cameras one of which moves further while a photo is read out than the cameras are from their
// mean, in the median.
func CheckTravel(cams []Camera) error {
	_, _, away := spread(cams)
	typical := Median(away)
	for i := range cams {
		if far := geom.Length(cams[i].Motion.Move); cams[i].Moved() && far > typical {
			return &fault.Error{Kind: fault.ErrData, Op: "use rolling shutter", Path: cams[i].Name, Hint: motionHint,
				Err: fmt.Errorf("the camera moves by %.3g while the photo is read out; cameras are %.3g from their mean",
					far, typical)}
		}
	}
	return nil
}

// Moved says whether the camera moved while it took its photo. For faces of panoramas this is unknown.
func (c *Camera) Moved() bool { return c.Motion != Motion{} && c.Photo == "" }

// At gives the camera with the pose that it had at time t of its photo, -1/2 at the top edge and 1/2 at the bottom.
func (c Camera) At(t float64) Camera {
	centre := geom.Add(c.Center(), geom.Scale(geom.Rotate(geom.Transposed(c.R), c.Motion.Move), t))
	c.R = geom.Product(geom.RotationFromVector(geom.Scale(c.Motion.Turn, -t)), c.R)
	c.T = geom.TranslationOf(c.R, centre)
	return c
}

// checkMotion refuses a motion that no photo was taken with.
func (c *Camera) checkMotion() error {
	if turn := geom.Length(c.Motion.Turn); c.Moved() && turn > mostTurn {
		return &fault.Error{Kind: fault.ErrData, Op: "use rolling shutter", Path: c.Name,
			Err:  fmt.Errorf("the camera turns by %.3g degrees while the photo is read out", turn*180/math.Pi),
			Hint: motionHint}
	}
	return nil
}

// Straight gives c with a Distortion that bends nothing: its photo goes through it for the camera's motion, or because
// what bends is to be learnt.
func (c Camera) Straight() Camera {
	out := c
	d := &Distortion{Limit: math.Inf(1), undistorted: &c}
	for k, axis := range [2][3]float64{{c.Fx, c.Cx, float64(c.Width)}, {c.Fy, c.Cy, float64(c.Height)}} {
		d.Min[k], d.Max[k] = -axis[1]/axis[0], (axis[2]-axis[1])/axis[0]
	}
	out.Distortion = d
	return out
}
