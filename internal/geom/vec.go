package geom

import "math"

// Vec is a point, a direction or a colour (RGB in 0..1) of the procedural scene, for formulas with many vectors.
type Vec [3]float64

func (a Vec) Add(b Vec) Vec { return Vec(Add(a, b)) }

func (a Vec) Sub(b Vec) Vec { return Vec(Sub(a, b)) }

func (a Vec) Mul(s float64) Vec { return Vec(Scale(a, s)) }

func (a Vec) Dot(b Vec) float64 { return Dot(a, b) }

func (a Vec) Cross(b Vec) Vec { return Vec(Cross(a, b)) }

// Length is that of numbers whose squares are in range, unlike the function: the procedural scene has no others.
func (a Vec) Length() float64 { return math.Sqrt(Dot(a, a)) }

func (a Vec) Unit() Vec { return a.Mul(1 / a.Length()) }
