package scene

import (
	"errors"
	"fmt"
	"math"
)

// Limits on how far a matrix may be from a rotation times 1: less than the first is
// rounding, more than the second is an error.
const (
	roundedRotation = 1e-5
	skewedRotation  = 0.05
)

// pose is a world-to-camera transform, OpenCV axes, and what was done to get it.
type pose struct {
	r              [9]float64
	t              [3]float64
	skewed, scaled bool
}

// poseFromOpenGL turns a 3x4 camera-to-world matrix whose camera looks along -z with
// y up into a pose whose camera looks along +z with y down: the second and third
// column change sign.
func poseFromOpenGL(m [12]float64) (p pose, err error) {
	centre := [3]float64{m[3], m[7], m[11]}
	if !finite(m[:]...) || !inRange(centre) {
		return p, poseError{fmt.Errorf("the camera is at %g", centre)}
	}
	r, scale, skew, err := nearestRotation([9]float64{m[0], -m[1], -m[2], m[4], -m[5], -m[6], m[8], -m[9], -m[10]})
	if err != nil {
		return p, err
	}
	p.r = [9]float64{r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}
	p.t = scaled(rotate(p.r, centre), -1)
	p.skewed, p.scaled = skew > roundedRotation, math.Abs(scale-1) > max(roundedRotation, skew)
	return p, nil
}

// nearestRotation splits a matrix, row-major, into a scale and the rotation nearest
// to the rest. skew is the largest element of what keeps the rest from being one.
func nearestRotation(m [9]float64) (r [9]float64, scale, skew float64, err error) {
	d := det3(m)
	scale = math.Cbrt(d)
	switch {
	case !finite(d) || math.Abs(scale) < 1e-12:
		return r, 0, 0, errors.New("its first three columns are no rotation")
	case d < 0:
		return r, 0, 0, errors.New("it mirrors: the determinant is negative")
	}
	for i := range m {
		r[i] = m[i] / scale
	}
	for i := range 3 {
		for j := range 3 {
			dot := r[i]*r[j] + r[3+i]*r[3+j] + r[6+i]*r[6+j]
			if i == j {
				dot--
			}
			skew = max(skew, math.Abs(dot))
		}
	}
	if !(skew <= skewedRotation) {
		return r, 0, 0, fmt.Errorf("its first three columns are off a rotation by %.2g", skew)
	}
	// Newton's iteration for the orthogonal factor (Higham 1986, "Computing the Polar Decomposition"): it squares the error each time.
	for range 6 {
		inverse := inverseTransposed(r)
		for i := range r {
			r[i] = (r[i] + inverse[i]) / 2
		}
	}
	return r, scale, skew, nil
}

func det3(m [9]float64) float64 {
	return m[0]*(m[4]*m[8]-m[5]*m[7]) - m[1]*(m[3]*m[8]-m[5]*m[6]) + m[2]*(m[3]*m[7]-m[4]*m[6])
}

// inverseTransposed gives the cofactors over the determinant.
func inverseTransposed(m [9]float64) [9]float64 {
	d := det3(m)
	return [9]float64{
		(m[4]*m[8] - m[5]*m[7]) / d, (m[5]*m[6] - m[3]*m[8]) / d, (m[3]*m[7] - m[4]*m[6]) / d,
		(m[2]*m[7] - m[1]*m[8]) / d, (m[0]*m[8] - m[2]*m[6]) / d, (m[1]*m[6] - m[0]*m[7]) / d,
		(m[1]*m[5] - m[2]*m[4]) / d, (m[2]*m[3] - m[0]*m[5]) / d, (m[0]*m[4] - m[1]*m[3]) / d,
	}
}

// undoApplied brings records and points back to where they were before nerfstudio
// turned them.
func (c *Capture) undoApplied(records []record) error {
	a := c.Applied
	if a == nil {
		c.warn("no-applied-transform", "there is no applied_transform to undo: the capture stays where it is", nil)
		return nil
	}
	m := a.Matrix
	turn, scale, _, err := nearestRotation([9]float64{m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]})
	if err != nil {
		return badData("undo applied_transform", c.Model, "train without --undo-applied-transform, in the frame of the file", "field applied_transform: %v", err)
	}
	move := [3]float64{m[3], m[7], m[11]}
	back := [9]float64{turn[0], turn[3], turn[6], turn[1], turn[4], turn[7], turn[2], turn[5], turn[8]}
	undo := func(p [3]float64) [3]float64 {
		return rotate(back, scaled(sub(scaled(p, 1/a.Scale), move), 1/scale))
	}
	for i := range records {
		cam := &records[i].cam
		centre := undo(cam.Center())
		for row := range 3 {
			v := rotate(back, [3]float64{cam.R[3*row], cam.R[3*row+1], cam.R[3*row+2]})
			copy(cam.R[3*row:], v[:])
		}
		cam.T = scaled(rotate(cam.R, centre), -1)
	}
	for i := range c.Points {
		c.Points[i].Pos = undo(c.Points[i].Pos)
	}
	a.Undone = true
	return nil
}
