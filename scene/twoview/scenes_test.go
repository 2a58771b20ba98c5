package twoview

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/scene"
)

// draws is a stream of random numbers.
type draws struct{ at, seed uint32 }

func (d *draws) uniform() float64 {
	d.at++
	return philox.Uniform(philox.Block([4]uint32{d.at}, philox.Key(uint64(d.seed)))[0])
}

func (d *draws) between(a, b float64) float64 { return a + (b-a)*d.uniform() }

func (d *draws) normal() float64 {
	r, sin, _ := philox.NormalPair(1-d.uniform(), d.uniform())
	return r * sin
}

func (d *draws) vec(size float64) vec {
	return vec{size * d.normal(), size * d.normal(), size * d.normal()}
}

// apart is the distance of two matrices up to scale and sign.
func apart(a, b matrix) float64 {
	var aa, bb, ab float64
	for i := range a {
		aa, bb, ab = aa+a[i]*a[i], bb+b[i]*b[i], ab+a[i]*b[i]
	}
	s := ab / math.Abs(ab) * math.Sqrt(aa/bb)
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(a[i]-s*b[i]))
	}
	return d / math.Sqrt(aa)
}

// made is two made-up photos whose relation is known.
type made struct {
	a, b    View
	matches [][2]int32
	wrong   []bool // of a match
	r       matrix
	t       vec // of length 1, or 0
}

var (
	openCV = scene.Calibration{Model: scene.LensOpenCV, Width: 1600, Height: 1200,
		Params: []float64{1310, 1316, 803, 596, -0.08, 0.05, 0.001, -0.0008}}
	plain = scene.Calibration{Model: scene.LensPinhole, Width: 1600, Height: 1200,
		Params: []float64{1310, 1316, 803, 596}}
	fisheye = scene.Calibration{Model: scene.LensOpenCVFisheye, Width: 1600, Height: 1200,
		Params: []float64{560, 562, 803, 596, -0.03, 0.01, -0.002, 0.0003}}
)

// kinds of scenes: what they are made of and how the camera moves.
type recipe struct {
	lens     scene.Calibration
	unknown  bool // focal lengths
	plane    bool
	turn     float64 // radians, about
	move     vec     // metres; points are 3 to 8 away
	n        int
	noise    float64 // pixels
	outliers float64 // share
}

// depth is how far along a ray its point is.
func (k recipe) depth(d *draws, ray, slope vec) float64 {
	depth := d.between(3, 8)
	if k.plane {
		depth = 5 / (ray[2] + slope[0]*ray[0] + slope[1]*ray[1])
	}
	return depth
}

func (k recipe) make(t testing.TB, seed uint32) (m made) {
	t.Helper()
	d := &draws{seed: seed}
	o := must.Get(k.lens.Optics(k.lens.Width, k.lens.Height))(t)
	m.r, m.t = geom.RotationFromVector(d.vec(k.turn)), k.move
	if k.move != (vec{}) {
		m.t = geom.Scale(k.move, 1/geom.Length(k.move))
	}
	m.a = View{Optics: o, FocalKnown: !k.unknown}
	m.b = m.a
	w, h := o.Width, o.Height
	slope := d.vec(0.3)
	for i := int32(0); len(m.matches) < k.n; {
		ray, ok := o.Ray(d.between(0, w), d.between(0, h))
		x := geom.Scale(ray, k.depth(d, ray, slope))
		ua, va, okA := o.Project(x)
		ub, vb, okB := o.Project(geom.Add(geom.Rotate(m.r, x), k.move))
		wrong := d.uniform() < k.outliers
		if wrong {
			ub, vb = d.between(0, w), d.between(0, h)
		}
		if !ok || !okA || !okB || ub < 0 || vb < 0 || ub > w || vb > h {
			continue
		}
		m.a.Points = append(m.a.Points, [2]float32{float32(ua + k.noise*d.normal()), float32(va + k.noise*d.normal())})
		m.b.Points = append(m.b.Points, [2]float32{float32(ub + k.noise*d.normal()), float32(vb + k.noise*d.normal())})
		m.matches, m.wrong = append(m.matches, [2]int32{i, i}), append(m.wrong, wrong)
		i++
	}
	return m
}

// off returns the angles in degrees by which rotation and direction of a relation are wrong.
func (m *made) off(r *Relation) (turn, direction float64) {
	const degree = 180 / math.Pi
	turn = geom.Length(geom.VectorFromRotation(geom.Product(r.R, geom.Transposed(m.r)))) * degree
	return turn, between(r.T, m.t) * degree
}
