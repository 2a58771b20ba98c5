package transforms

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/strictjson"
	"vksplat/scene"
)

// instant-ngp's poses of a camera that moves: those at the times 0 and 1 of rolling_shutter.
const (
	startMatrix = "transform_matrix_start"
	endMatrix   = "transform_matrix_end"
)

// parseMotion reads how the camera moved while its rows were read out, in the form of Spectacular AI (velocities along
// the axes that transform_matrix has, of a pose in the middle of the readout) or of instant-ngp (two poses).
func (out *frame) parseMotion(f, top strictjson.Object) error {
	if f.Has(endMatrix) {
		return out.parseTwoPoses(f, top)
	}
	from := top
	if f.Has("rolling_shutter_time") {
		from = f
	}
	seconds, err := from.Number("rolling_shutter_time")
	if err != nil {
		return err
	}
	for _, v := range []struct {
		name string
		to   *[3]float64
	}{{"camera_linear_velocity", &out.Motion.Move}, {"camera_angular_velocity", &out.Motion.Turn}} {
		if !f.Has(v.name) {
			continue
		}
		var x [3]float64
		if err := f.Numbers(v.name, x[:]); err != nil {
			return err
		}
		*v.to = [3]float64{x[0] * seconds, -x[1] * seconds, -x[2] * seconds}
		if !scene.InRange(*v.to) {
			return f.Errorf("field %s is %g, in %g seconds", v.name, x, seconds)
		}
	}
	return nil
}

// parseTwoPoses reads the pose at time 1, where out.Pose is that at time 0, and replaces it by that of the middle row.
func (out *frame) parseTwoPoses(f, top strictjson.Object) error {
	end, err := parseMatrix(f, endMatrix)
	if err != nil {
		return err
	}
	from := top
	if f.Has("rolling_shutter") {
		from = f
	}
	middle, rows, err := readout(from)
	if err != nil {
		return err
	}
	between := scene.Camera{R: out.Pose.R, T: out.Pose.T} // as At wants it: of the motion from time 0 to 1
	between.Motion.Turn = geom.Scale(geom.VectorFromRotation(geom.Product(end.R, geom.Transposed(between.R))), -1)
	way := geom.Sub(scene.Camera{R: end.R, T: end.T}.Center(), between.Center())
	between.Motion.Move = geom.Rotate(between.R, way)
	at := between.At(middle)
	out.Pose.R, out.Pose.T = at.R, at.T
	out.Pose.skewed, out.Pose.scaled = out.Pose.skewed || end.skewed, out.Pose.scaled || end.scaled
	out.Motion = scene.Motion{Turn: geom.Scale(between.Motion.Turn, rows),
		Move: geom.Scale(geom.Rotate(at.R, way), rows)}
	return nil
}

// readout gives the time of the middle row and that from the first row to the last. instant-ngp has a time
// A + B u + C v + D d of each pixel, u and v from 0 to 1 across the photo and down it, d from 0 to 1 while it is
// exposed. Without a rolling_shutter the two poses are those of the first and the last row.
func readout(from strictjson.Object) (middle, rows float64, err error) {
	const name = "rolling_shutter"
	if !from.Has(name) {
		return 0.5, 1, nil
	}
	var times []float64
	if err := from.Into(name, &times, "a list of numbers"); err != nil {
		return 0, 0, err
	}
	switch {
	case len(times) != 3 && len(times) != 4:
		return 0, 0, from.Errorf("field %s has %d numbers, 3 or 4 are expected", name, len(times))
	case times[1] != 0:
		return 0, 0, from.Errorf("field %s is %v: photos that are read out column by column are not known", name, times)
	}
	middle, rows = times[0]+times[2]/2, times[2]
	if len(times) == 4 {
		middle += times[3] / 2
	}
	if !(math.Abs(middle) <= scene.MaxCoordinate && math.Abs(rows) <= scene.MaxCoordinate) {
		return 0, 0, from.Errorf("field %s is %v", name, times)
	}
	return middle, rows, nil
}
