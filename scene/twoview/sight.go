package twoview

import (
	"cmp"
	"math"
	"slices"

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

func rows(a, b, c vec) matrix { return matrix{a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]} }

func columns(a, b, c vec) matrix { return geom.Transposed(rows(a, b, c)) }

// transposedTimes returns M' x.
func transposedTimes(m *matrix, x vec) vec {
	return vec{m[0]*x[0] + m[3]*x[1] + m[6]*x[2], m[1]*x[0] + m[4]*x[1] + m[7]*x[2], m[2]*x[0] + m[5]*x[1] + m[8]*x[2]}
}

// outer returns a b'.
func outer(a, b vec) (m matrix) {
	for i := range m {
		m[i] = a[i/3] * b[i%3]
	}
	return m
}

func unit(x vec) vec { return geom.Scale(x, 1/geom.Length(x)) }

// normalised returns a matrix divided by the root of its sum of squares.
func normalised(m matrix) matrix {
	s := math.Sqrt(product(&m, &m))
	for i := range m {
		m[i] /= s
	}
	return m
}

// eigen returns the eigenvalues of a symmetric matrix, the largest first, and their vectors.
func eigen(m matrix) (values [3]float64, vectors [3]vec) {
	v, columns := geom.SymmetricEigen([3][3]float64{vec(m[:3]), vec(m[3:6]), vec(m[6:])})
	order := []int{0, 1, 2}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(v[j], v[i]) })
	for k, i := range order {
		values[k], vectors[k] = v[i], vec{columns[0][i], columns[1][i], columns[2][i]}
	}
	return values, vectors
}

// pinhole is a made-up lens for a photo whose focal length is not known: half of the longest side. Panoramas have none.
func pinhole(o *scene.Optics) *scene.Optics {
	if o.Plane == scene.NoPlane {
		return o
	}
	k := scene.Calibration{Model: scene.LensSimplePinhole, Width: int(o.Width), Height: int(o.Height),
		Params: []float64{max(o.Width, o.Height) / 2, o.Width / 2, o.Height / 2}}
	p, _ := k.Optics(k.Width, k.Height) // of any size that other optics have
	return p
}

// Look returns the sight of a pixel position. ok is false where the lens shows nothing.
func Look(o *scene.Optics, x, y float64) (s Sight, ok bool) {
	if s.ray, ok = o.Ray(x, y); !ok {
		return s, false
	}
	s.axis = vec{0, 0, 1}
	if o.Plane != scene.TangentPlane {
		s.axis = s.ray
	}
	var slope scene.Slope
	if _, _, ok = o.Miss(s.ray, x, y, &slope); !ok {
		return s, false
	}
	s.px, s.py = slope.Ray[0], slope.Ray[1]
	inverse := geom.InverseTransposed(rows(s.px, s.py, s.axis)) // px·dx = 1, py·dx = 0, axis·dx = 0
	s.dx, s.dy = vec(inverse[:3]), vec(inverse[3:6])
	return s, geom.Finite(inverse[:]...)
}

// toPlane maps pixels (x, y, 1) to rays as if all of the photo were like the neighbourhood of the principal point. Of
// panoramas, where this cannot be, it maps rays to themselves.
func toPlane(o *scene.Optics) matrix {
	if o.Plane == scene.NoPlane {
		return geom.Identity
	}
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
