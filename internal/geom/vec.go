package geom

import "math"

// Vec is a point, a direction or a colour (RGB in 0..1) of the procedural scene.
type Vec [3]float64

func (a Vec) Add(b Vec) Vec { return Vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

func (a Vec) Sub(b Vec) Vec { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func (a Vec) Mul(s float64) Vec { return Vec{a[0] * s, a[1] * s, a[2] * s} }

func (a Vec) Dot(b Vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func (a Vec) Length() float64 { return math.Sqrt(a.Dot(a)) }

func (a Vec) Unit() Vec { return a.Mul(1 / a.Length()) }

func (a Vec) Cross(b Vec) Vec {
	return Vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
