package pipeline

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// refinedCameras is refine_pose on the host, for all rows.
func refinedCameras(cams []scene.Camera, rows []layout.Pose) []scene.Camera {
	f := layout.NewPoseFrame(rows)
	var turn, shift geom.Vec
	growth, focal := 0.0, map[float32]float64{}
	for i := range rows {
		w, s, c := poseParts(cams[i].R, &rows[i])
		turn, shift = turn.Add(w).Add(c.Cross(s)), shift.Add(s)
		growth += c.Dot(s)
		focal[rows[i].Camera] += float64(rows[i].Own[layout.PoseFocal])
	}
	a := f.Turn
	inverse := [9]float32{a[0], a[1], a[2], a[1], a[3], a[4], a[2], a[4], a[5]}
	var matrix [9]float64
	for k, x := range inverse {
		matrix[k] = float64(x)
	}
	turn = geom.Vec(geom.Rotate(matrix, turn))
	shift, growth = shift.Mul(float64(f.Inverse)), growth*float64(f.Size)
	out := make([]scene.Camera, len(cams))
	for i := range cams {
		w, s, c := poseParts(cams[i].R, &rows[i])
		w = w.Sub(turn)
		s = s.Sub(turn.Cross(c)).Sub(shift).Sub(c.Mul(growth))
		out[i] = movedCamera(&cams[i], w, s, focal[rows[i].Camera])
	}
	return out
}

// poseParts returns what a photo has learnt, turn and shift along the axes of the world, and where its camera is from
// the mean.
func poseParts(rot [9]float64, row *layout.Pose) (turn, shift, center geom.Vec) {
	for k := range 3 {
		for j := range 3 {
			turn[k] += rot[3*j+k] * float64(row.Own[j])
			shift[k] += rot[3*j+k] * float64(row.Own[3+j])
		}
		center[k] = float64(row.Center[k])
	}
	return turn, shift, center
}

// movedCamera turns a camera about its centre and then moves it, both along the axes of the world, and multiplies its
// focal lengths by exp(focal).
func movedCamera(c *scene.Camera, turn, shift geom.Vec, focal float64) scene.Camera {
	out := *c
	angle := turn.Length()
	sin, cos := math.Sincos(angle)
	var unit geom.Vec
	if angle > 0 {
		unit = turn.Mul(1 / angle)
	}
	for r := range 3 { // a row of R is an axis of the camera in the world, and turns with it
		axis := geom.Vec{c.R[3*r], c.R[3*r+1], c.R[3*r+2]}
		axis = axis.Mul(cos).Add(unit.Cross(axis).Mul(sin)).Add(unit.Mul(unit.Dot(axis) * (1 - cos)))
		copy(out.R[3*r:], axis[:])
	}
	out.T = geom.TranslationOf(out.R, geom.Vec(c.Center()).Add(shift))
	out.Fx, out.Fy = c.Fx*math.Exp(focal), c.Fy*math.Exp(focal)
	return out
}
