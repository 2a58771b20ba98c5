package twoview

import (
	"vksplat/internal/geom"
	"vksplat/scene"
)

// Sight is a pixel of a photo as a ray in the camera's axes, and how a small change of one changes the other.
type Sight struct {
	ray    vec // (x, y, 1) of a lens that describes the plane (X/Z, Y/Z), of length 1 of others
	dx, dy vec // derivatives of ray by column and row
	px, py vec // derivatives of column and row by the ray
	axis   vec // axis·ray = 1: the column of a ray y near to ray is off by px·y / axis·y
}

type (
	vec    = [3]float64
	matrix = [9]float64 // row-major
)

// Look returns the sight of a pixel position. ok is false where the lens shows nothing, and for panoramas.
func Look(o *scene.Optics, x, y float64) (s Sight, ok bool) {
	if s.ray, ok = o.Ray(x, y); !ok {
		return s, false
	}
	s.axis = vec{0, 0, 1}
	if o.Plane != scene.TangentPlane {
		s.axis = s.ray
	}
	var slope scene.Slope
	if _, _, ok = o.Linearise(s.ray, &slope); !ok {
		return s, false
	}
	s.px, s.py = slope.Ray[0], slope.Ray[1]
	s.invert()
	return s, geom.Finite(s.dx[:]...) && geom.Finite(s.dy[:]...)
}

// flat returns the sight of a pixel position of a photo whose focal length is not known: in a plane where the longest
// side is 2.
func flat(o *scene.Optics, x, y float64) (s Sight, ok bool) {
	n := normalisation(o)
	s.ray, s.axis = geom.Rotate(n, vec{x, y, 1}), vec{0, 0, 1}
	scale := 1 / n[0]
	s.px, s.py = vec{scale, 0, -scale * s.ray[0]}, vec{0, scale, -scale * s.ray[1]}
	s.invert()
	return s, true
}

// invert fills dx and dy: px·dx = 1, py·dx = 0, axis·dx = 0.
func (s *Sight) invert() {
	inverse := geom.InverseTransposed(matrix{s.px[0], s.px[1], s.px[2], s.py[0], s.py[1], s.py[2],
		s.axis[0], s.axis[1], s.axis[2]})
	s.dx, s.dy = vec(inverse[:3]), vec(inverse[3:6])
}

// normalisation maps pixels (x, y, 1) to the plane of flat.
func normalisation(o *scene.Optics) matrix {
	s := 2 / max(o.Width, o.Height)
	return matrix{s, 0, -s * o.Width / 2, 0, s, -s * o.Height / 2, 0, 0, 1}
}

// toPlane maps pixels (x, y, 1) to rays as if all of the photo were like the neighbourhood of the principal point.
func toPlane(o *scene.Optics) matrix {
	var s scene.Slope
	cx, cy, _ := o.Linearise(vec{0, 0, 1}, &s)
	fx, fy := s.Ray[0][0], s.Ray[1][1]
	return matrix{1 / fx, 0, -cx / fx, 0, 1 / fy, -cy / fy, 0, 0, 1}
}

// off returns by how many pixels a ray y in the camera's axes misses the sight, and axis·y, which is not positive for
// rays that leave the camera at the back.
func (s *Sight) off(y vec) (dx, dy, depth float64) {
	depth = geom.Dot(s.axis, y)
	return geom.Dot(s.px, y) / depth, geom.Dot(s.py, y) / depth, depth
}

// slopes returns the derivatives of off by y.
func (s *Sight) slopes(dx, dy, depth float64) (gx, gy vec) {
	for i := range 3 {
		gx[i] = (s.px[i] - dx*s.axis[i]) / depth
		gy[i] = (s.py[i] - dy*s.axis[i]) / depth
	}
	return gx, gy
}

// missed returns the squared distance in pixels by which a ray misses the sight; infinite behind the camera.
func (s *Sight) missed(y vec) float64 {
	dx, dy, depth := s.off(y)
	if !(depth > 0) {
		return infinite
	}
	return dx*dx + dy*dy
}
