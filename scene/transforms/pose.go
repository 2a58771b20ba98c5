package transforms

import (
	"fmt"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/scene"
)

// Limits on how far a matrix may be from a rotation times 1: less than the first is
// rounding, more than the second is an error.
const (
	roundedRotation = 1e-5
)

// pose is a world-to-camera transform, OpenCV axes, and what was done to get it.
type pose struct {
	R              [9]float64
	T              [3]float64
	skewed, scaled bool
}

// PoseFromOpenGL turns a 3x4 camera-to-world matrix whose camera looks along -z with
// y up into a pose whose camera looks along +z with y down: the second and third
// column change sign.
func PoseFromOpenGL(m [12]float64) (p pose, err error) {
	centre := [3]float64{m[3], m[7], m[11]}
	for _, x := range m {
		if !(math.Abs(x) <= scene.MaxCoordinate) {
			return p, scene.PoseError{Cause: fmt.Errorf("the camera is at %g, with %g in its matrix", centre, x)}
		}
	}
	r, scale, skew, err := geom.NearestRotation([9]float64{m[0], -m[1], -m[2], m[4], -m[5], -m[6], m[8], -m[9], -m[10]})
	if err != nil {
		return p, err
	}
	p.R = [9]float64{r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}
	p.T = geom.Scale(geom.Rotate(p.R, centre), -1)
	p.skewed, p.scaled = skew > roundedRotation, math.Abs(scale-1) > max(roundedRotation, skew)
	return p, nil
}

// UndoApplied brings records and points back to where they were before nerfstudio
// turned them.
func UndoApplied(c *scene.Capture, records []scene.Record) error {
	a := c.Applied
	if a == nil {
		c.Warn("no-applied-transform", "there is no applied_transform to undo: the capture stays where it is", nil)
		return nil
	}
	undo, err := Undo(a.Matrix, a.Scale)
	if err != nil {
		return fault.Data("undo applied_transform", c.Model, "train without "+fault.Setting("undo-applied-transform")+
			", in the frame of the file", "field applied_transform: %v", err)
	}
	for i := range records {
		undo.Camera(&records[i].Cam)
	}
	for i := range c.Points {
		c.Points[i].Pos = undo.point(c.Points[i].Pos)
	}
	a.Undone = true
	return nil
}

// Undone is the inverse of what nerfstudio did to poses.
type Undone struct {
	back       [9]float64
	move       [3]float64
	scale, own float64 // of all, and of the matrix
}

// Undo inverts x' = scale (m [x 1]).
func Undo(m [12]float64, scale float64) (u Undone, err error) {
	turn, own, _, err := geom.NearestRotation([9]float64{m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]})
	return Undone{geom.Transposed(turn), [3]float64{m[3], m[7], m[11]}, scale, own}, err
}

// Scale is by how much lengths have grown.
func (u Undone) Scale() float64 { return u.scale * u.own }

func (u Undone) point(p [3]float64) [3]float64 {
	return geom.Rotate(u.back, geom.Scale(geom.Sub(geom.Scale(p, 1/u.scale), u.move), 1/u.own))
}

// Camera brings back a camera.
func (u Undone) Camera(c *scene.Camera) {
	centre := u.point(c.Center())
	for row := range 3 {
		v := geom.Rotate(u.back, [3]float64(c.R[3*row:]))
		copy(c.R[3*row:], v[:])
	}
	c.T = geom.TranslationOf(c.R, centre)
	c.Motion.Move = geom.Scale(c.Motion.Move, 1/u.Scale())
}
