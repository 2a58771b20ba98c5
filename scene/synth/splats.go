package synth

import (
	"image"
	"math"

	"vksplat/internal/philox"
	"vksplat/scene"
)

// How the splats of Synth.Splats are spread. Trained models have sizes and opacities that differ by factors and
// decades, flat splats, and several layers of them on every surface; these have so too, in shares that keep the work of
// a view near that of trained models.
const (
	synthSpread  = 0.6  // standard deviation of the logarithm of a splat's size
	synthStretch = 0.4  // likewise of each axis along the surface
	synthFlat    = 0.15 // size across the surface, times that along it
	synthOpaque  = 2.0  // standard deviation of logit opacities, around 0
	synthTint    = 0.1  // largest coefficient of the higher spherical harmonics
)

// Splats returns a model of as many splats as Options.Points, in the capture's frame: made up, not trained, and
// the same for the same options. They lie around the points of the cloud, in a room with things in it. In the picture
// of the camera that sees it, a splat of the middle size has a standard deviation of the mean distance to its
// neighbours: one pixel where there are as many splats as pixels, ten for a hundredth of them. So a pixel looks through
// some dozen splats whatever their number, and views touch between two and ten tiles a splat.
func (s *Capture) Splats(degree int) *scene.Splats {
	out := scene.NewSplats(s.o.Points, degree)
	gap := math.Sqrt(float64(s.o.Width) * float64(s.o.Height) / float64(s.o.Points))
	s.o.eachPoint(s.world, s.views[:s.o.Images], func(i int, at surface, c *scene.Camera) {
		s.splat(out, i, at, gap*at.t/c.Fx)
	})
	return out
}

// splat sets splat i, of about the given size in scene units, on a surface.
func (s *Capture) splat(out *scene.Splats, i int, at surface, size float64) {
	a, b := s.o.random(streamSynthSplat, i), s.o.random(streamSynthSplat+1, i)
	r0, sin0, cos0 := philox.NormalPair(1-a[0], a[1])
	r1, sin1, cos1 := philox.NormalPair(1-a[2], a[3])
	r2, _, cos2 := philox.NormalPair(1-b[0], b[1])
	size *= math.Exp(synthSpread * r0 * cos0)
	along := [2]float64{size * math.Exp(synthStretch*r1*cos1), size * math.Exp(synthStretch*r1*sin1)}
	n := at.normal
	p := s.o.move(at.point.Add(n.Mul(size * r0 * sin0)))
	// The turn from the z axis to the normal, after one about z by any angle.
	w, x, y := 1+n[2], -n[1], n[0]
	if w < 1e-6 {
		w, x, y = 0, 1, 0
	}
	turn, tilt := math.Sincos(math.Pi * b[2])
	for k, q := range [4]float64{w * tilt, x*tilt + y*turn, y*tilt - x*turn, w * turn} {
		out.Quats[4*i+k] = float32(q)
	}
	for k, length := range [3]float64{along[0], along[1], synthFlat * size} {
		out.Means[3*i+k], out.LogScales[3*i+k] = float32(p[k]), float32(math.Log(length*s.o.Scale))
	}
	out.LogitOpacities[i] = float32(synthOpaque * r2 * cos2)
	coefficients := out.SH[3*out.K()*i:][:3*out.K()]
	color := s.world.shade(&at)
	for k := range coefficients {
		coefficients[k] = float32(synthTint * (2*fraction(b[3]*float64(k+1)) - 1))
		if k < 3 {
			coefficients[k] = float32((color[k] - 0.5) / scene.SH0)
		}
	}
}

// fraction returns x less its whole part.
func fraction(x float64) float64 { return x - math.Floor(x) }

// Rough draws photo i in squares of shrink pixels a side: soon done, where only the number of pixels counts.
func (s *Capture) Rough(i, shrink int) scene.Image {
	small, c := s.Photo(i, shrink), &s.views[i]
	out := scene.Image{Width: c.Width, Height: c.Height, Pix: make([]uint8, 4*c.Width*c.Height)}
	for y := range c.Height {
		row := out.Pix[4*y*c.Width:][:4*c.Width]
		if y%shrink > 0 {
			copy(row, out.Pix[4*(y-1)*c.Width:])
			continue
		}
		widen(row, small, y/shrink, shrink)
	}
	return out
}

// widen fills a row of RGBA pixels with the pixels of row y of a smaller picture, each shrink times.
func widen(row []uint8, small *image.RGBA, y, shrink int) {
	for x := range len(row) / 4 {
		copy(row[4*x:4*x+4], small.Pix[small.PixOffset(x/shrink, y):])
	}
}
