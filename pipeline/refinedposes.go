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
	growth, optics := 0.0, map[float32]opticsNumbers{}
	for i := range rows {
		w, s, c := poseParts(cams[i].R, &rows[i])
		turn, shift = turn.Add(w).Add(c.Cross(s)), shift.Add(s)
		growth += c.Dot(s)
		sum := optics[rows[i].Camera]
		for k, x := range opticsOf(&rows[i]) {
			sum[k] += x
		}
		optics[rows[i].Camera] = sum
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
		out[i] = withOptics(movedCamera(&cams[i], w, s), optics[rows[i].Camera])
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

// opticsNumbers are what is learnt of a lens: see shared/pose.glsl.
type opticsNumbers [layout.LensNumbers]float64

func opticsOf(row *layout.Pose) (n opticsNumbers) {
	for k, x := range row.Own[layout.PoseLens:] {
		n[k] = float64(x)
	}
	return n
}

// withOptics changes the lens of a camera by what was learnt of it.
func withOptics(c scene.Camera, n opticsNumbers) scene.Camera {
	c.Cx, c.Cy = c.Cx+c.Fx*n[1], c.Cy+c.Fy*n[2]
	c.Fx, c.Fy = c.Fx*math.Exp(n[0]), c.Fy*math.Exp(n[0])
	if c.Distortion == nil || c.Distortion.After {
		return c
	}
	d := *c.Distortion
	r := cornerRadius(d.Min, d.Max)
	d.Num[0] += n[3] / (r * r * r)
	d.Num[1] += n[4] / (r * r * r * r * r)
	if c.Model == scene.Fisheye {
		d.Num[2] += n[5] / math.Pow(r, 7)
		d.Num[3] += n[6] / math.Pow(r, 9)
	} else {
		d.P1, d.P2 = d.P1+n[5]/(r*r), d.P2+n[6]/(r*r)
	}
	c.Distortion = &d
	return c
}

// movedCamera turns a camera about its centre and then moves it, both along the axes of the world.
func movedCamera(c *scene.Camera, turn, shift geom.Vec) scene.Camera {
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
	return out
}
