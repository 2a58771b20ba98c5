package transforms

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// instant-ngp's poses of a camera that moves, those at times 0 and 1, and the times at which its pixels were taken.
const (
	startMatrix = "transform_matrix_start"
	endMatrix   = "transform_matrix_end"
	shutter     = "rolling_shutter"
)

// parseMotion reads how the camera moved while its rows were read out, in the form of Spectacular AI (velocities along
// the axes that transform_matrix has, of a pose in the middle of the readout) or of instant-ngp (two poses, and times
// between them). An error leaves Motion zero.
func (out *frame) parseMotion(f, top strictjson.Object) error {
	holder := func(name string) strictjson.Object { // of a field of the frame or of the top
		if f.Has(name) {
			return f
		}
		return top
	}
	if from := holder(shutter); f.Has(endMatrix) && from.Has(shutter) {
		return out.parseTwoPoses(f, from)
	}
	const duration = "rolling_shutter_time"
	seconds, timed := 1.0, holder(duration).Has(duration)
	if timed {
		var err error
		if seconds, err = holder(duration).Number(duration); err != nil {
			return err
		}
	}
	var m scene.Motion
	for _, v := range []struct {
		name string
		to   *[3]float64
	}{{"camera_linear_velocity", &m.Move}, {"camera_angular_velocity", &m.Turn}} {
		if !f.Has(v.name) {
			continue
		}
		var x [3]float64
		if err := f.Numbers(v.name, x[:]); err != nil {
			return err
		}
		*v.to = [3]float64{x[0] * seconds, -x[1] * seconds, -x[2] * seconds}
		if timed && !scene.InRange(*v.to) {
			return f.Errorf("field %s is %g, in %g seconds", v.name, x, seconds)
		}
	}
	if !timed && m != (scene.Motion{}) {
		return f.Errorf("there are velocities, and no field %s here or at the top: the seconds in which a photo is "+
			"read out, 0 for one that is taken at once", duration)
	}
	out.Motion = m
	return nil
}

// parseTwoPoses reads the pose at time 1, where out.Pose is that at time 0, and replaces out.Pose by that of the middle
// of the photo. times has the field rolling_shutter.
func (out *frame) parseTwoPoses(f, times strictjson.Object) error {
	middle, rows, odd := readout(times)
	if middle == 0 && rows == 0 { // the photo was taken at once, at time 0
		return odd
	}
	end, err := parseMatrix(f, endMatrix)
	if err != nil {
		return err
	}
	between := scene.Camera{R: out.Pose.R, T: out.Pose.T} // as At wants it: of the motion from time 0 to 1
	between.Motion.Turn = geom.Scale(geom.VectorFromRotation(geom.Product(end.R, geom.Transposed(between.R))), -1)
	way := geom.Sub(scene.Camera{R: end.R, T: end.T}.Center(), between.Center())
	between.Motion.Move = geom.Rotate(between.R, way)
	at := between.At(middle)
	m := scene.Motion{Turn: geom.Scale(between.Motion.Turn, rows), Move: geom.Scale(geom.Rotate(at.R, way), rows)}
	if !scene.InRange(at.Center()) || !scene.InRange(m.Move) {
		return f.Errorf("the camera is at %g in the middle of the photo and moves by %g", at.Center(), m.Move)
	}
	out.Pose.R, out.Pose.T, out.Motion = at.R, at.T, m
	out.Pose.skewed, out.Pose.scaled = out.Pose.skewed || end.skewed, out.Pose.scaled || end.scaled
	return odd
}

// readout gives the time of the middle of the photo and that from its first row to the last. instant-ngp has a time
// A + B u + C v + D d of each pixel, u and v from 0 to 1 across the photo and down it, d from 0 to 1 while it is
// exposed. A photo that is read out across has a middle alone, and an error that says so.
func readout(from strictjson.Object) (middle, rows float64, err error) {
	var list []float64
	if err := from.Into(shutter, &list, "a list of numbers"); err != nil {
		return 0, 0, err
	}
	if len(list) != 3 && len(list) != 4 {
		return 0, 0, from.Errorf("field %s has %d numbers, 3 or 4 are expected", shutter, len(list))
	}
	var times [4]float64
	copy(times[:], list)
	middle, rows = times[0]+(times[1]+times[2]+times[3])/2, times[2]
	if !(math.Abs(middle) <= scene.MaxCoordinate && math.Abs(rows) <= scene.MaxCoordinate) {
		return 0, 0, from.Errorf("field %s is %v", shutter, list)
	}
	if times[1] != 0 {
		return middle, 0, from.Errorf("field %s is %v: only photos that are read out row by row are known", shutter,
			list)
	}
	return middle, rows, nil
}
