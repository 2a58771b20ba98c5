package check

import (
	"math"

	"vksplat/pipeline/ref"
)

// ellipses returns n projected splats of all shapes and sizes in and around an image; a tenth of them are culled.
func (t *trial) ellipses(n, width, height int) *ref.Projection[float32] {
	p := &ref.Projection[float32]{}
	for range n {
		x, y := (1.4*t.Float64()-0.2)*float64(width), (1.4*t.Float64()-0.2)*float64(height)
		long, short := math.Exp(6*t.Float64()-1.5), math.Exp(6*t.Float64()-1.5)
		t.addEllipse(p, [2]float64{x, y}, long, short, 0.004+0.99*t.Float64()*t.Float64())
		if t.IntN(10) == 0 {
			p.DepthKeys[len(p.DepthKeys)-1] = ref.Culled
		}
	}
	return p
}

// addEllipse adds a splat with the given standard deviations along its axes, in px, turned at random, with a random
// colour and depth.
func (t *trial) addEllipse(p *ref.Projection[float32], mean [2]float64, long, short, opacity float64) {
	sin, cos := math.Sincos(2 * math.Pi * t.Float64())
	a, b := long*long, short*short
	xx, xy, yy := a*cos*cos+b*sin*sin+ref.Eps2D, (a-b)*sin*cos, a*sin*sin+b*cos*cos+ref.Eps2D
	det := xx*yy - xy*xy
	s := ref.Projected[float32]{
		Mean2D:  [2]float32{float32(mean[0]), float32(mean[1])},
		Conic:   [3]float32{float32(yy / det), float32(-xy / det), float32(xx / det)},
		Opacity: float32(opacity), Color: [3]float32{t.Float32(), t.Float32(), t.Float32()},
	}
	e := 2*math.Log(255*opacity) + ref.ExtentSlack
	p.Splats = append(p.Splats, s)
	p.Extents = append(p.Extents,
		[3]float32{float32(math.Sqrt(e * xx)), float32(math.Sqrt(e * yy)), float32(math.Sqrt(e * det / yy))})
	p.DepthKeys = append(p.DepthKeys, math.Float32bits(1+4*t.Float32()))
}

// scaled returns p with extents a little larger (sign 1) or smaller (-1): rounding in the kernel, which works at the
// size of the image's coordinates, may decide what lies between the two.
func scaled(p *ref.Projection[float32], sign float64) *ref.Projection[float32] {
	q := &ref.Projection[float32]{Splats: p.Splats, DepthKeys: p.DepthKeys}
	for _, e := range p.Extents {
		f := float32(1 + sign*(2e-4+2e-3/float64(min(e[0], e[1]))))
		q.Extents = append(q.Extents, [3]float32{f * e[0], f * e[1], f * e[2]})
	}
	return q
}
