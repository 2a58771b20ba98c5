package adjust

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
	"vksplat/scene"
)

// lostPixels is the distance that an observation counts with whose point the lens does not show: behind the camera,
// or beyond where the distortion folds.
const lostPixels = 1000

// A Loss maps a squared distance in pixels to its cost and that cost's derivative.
type Loss func(s float64) (cost, slope float64)

// squares is the loss of least squares.
func squares(s float64) (cost, slope float64) { return s, 1 }

// Cauchy returns the loss s² log(1 + d²/s²), which hardly counts distances d far above s pixels.
func Cauchy(scale float64) Loss {
	c := scale * scale
	return func(s float64) (cost, slope float64) { return c * math.Log1p(s/c), 1 / (1 + s/c) }
}

// row is a linearised observation, scaled by the root of its loss's slope.
type row struct {
	residual [2]float64
	// derivatives by a small rotation of the camera about its centre, and by a translation of its axes. About the
	// centre, as the origin may be a million metres away, where rotations and translations hardly differ.
	byPose [2][6]float64
}

// byPoint returns the derivatives by the point: 2x3.
func (r *row) byPoint(rotation *[9]float64) (j [2][3]float64) {
	for i := range 2 {
		c := r.byPose[i][3:]
		for k := range 3 {
			j[i][k] = c[0]*rotation[k] + c[1]*rotation[3+k] + c[2]*rotation[6+k]
		}
	}
	return j
}

// optics prepares the lenses of a state. ok is false if one folds the picture at its centre.
func (p *Problem) optics(s *state) (list []*scene.Optics, ok bool) {
	list = make([]*scene.Optics, len(p.Lenses))
	parallel.For(len(list), func(i int) {
		k := p.Lenses[i].Calibration
		k.Params = s.params[i]
		list[i], _ = k.Optics(k.Width, k.Height)
	})
	for _, o := range list {
		if o == nil {
			return nil, false
		}
	}
	return list, true
}

// chunk is how many observations, or points, a goroutine works on at a time: sums over chunks have a fixed order.
const chunk = 1024

// chunks calls f for all chunks of n things and returns the sum of what it returns.
func chunks(n int, f func(from, to int) float64) (sum float64) {
	sums := make([]float64, (n+chunk-1)/chunk)
	parallel.For(len(sums), func(i int) { sums[i] = f(i*chunk, min(n, (i+1)*chunk)) })
	for _, s := range sums {
		sum += s
	}
	return sum
}

// cost returns the losses of all observations and priors; infinite for lenses that are none.
func (p *Problem) cost(s *state, loss Loss) float64 {
	optics, ok := p.optics(s)
	if !ok {
		return math.Inf(1)
	}
	sum := chunks(len(p.Observations), func(from, to int) (sum float64) {
		for _, o := range p.Observations[from:to] {
			d := p.residual(s, optics, o)
			c, _ := loss(d[0]*d[0] + d[1]*d[1])
			sum += c
		}
		return sum
	})
	for i := range p.Lenses {
		for _, k := range p.Lenses[i].free() {
			if sigma := p.Lenses[i].Sigma[k]; sigma > 0 {
				sum += geom.Square((s.params[i][k] - p.Lenses[i].Params[k]) / sigma)
			}
		}
	}
	return sum
}

// look returns the lens of an observation, and its point in the axes of the camera and of the pose.
func (p *Problem) look(s *state, o *Observation) (lens int, camera, body [3]float64) {
	pose := &s.poses[o.Pose]
	body = geom.Add(geom.Rotate(pose.R, s.points[o.Point]), pose.T)
	if o.Mount == 0 {
		return pose.Lens, body, body
	}
	m := &p.Mounts[o.Mount-1]
	return m.Lens, geom.Add(geom.Rotate(m.R, body), m.T), body
}

// residual returns where an observation's point is projected, less where it was seen.
func (p *Problem) residual(s *state, optics []*scene.Optics, o Observation) [2]float64 {
	lens, at, _ := p.look(s, &o)
	x, y, ok := optics[lens].Miss(at, o.X, o.Y, nil)
	if ok && math.Hypot(x, y) < lostPixels {
		return [2]float64{x, y}
	}
	return [2]float64{lostPixels, 0}
}

// Residuals returns for each observation where its point is projected, less where it was seen, in pixels; (1000, 0)
// where that is farther away, and for points that a lens does not show.
func (p *Problem) Residuals() ([][2]float64, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	s := p.state()
	optics, _ := p.optics(s)
	list := make([][2]float64, len(p.Observations))
	chunks(len(list), func(from, to int) float64 {
		for i, o := range p.Observations[from:to] {
			list[from+i] = p.residual(s, optics, o)
		}
		return 0
	})
	return list, nil
}

// linearise fills rows, and byLens with the derivatives by the lenses' free parameters, 2 x width numbers each.
func (y *system) linearise(s *state, loss Loss) {
	optics, _ := y.p.optics(s)
	chunks(len(y.rows), func(from, to int) float64 {
		for i := from; i < to; i++ {
			o := &y.obs[i]
			y.rows[i] = row{}
			byLens := y.byLens[2*y.width*i : 2*y.width*(i+1)]
			clear(byLens)
			pose := &s.poses[o.Pose]
			lens, at, body := y.p.look(s, o)
			var slope scene.Slope
			u, v, ok := optics[lens].Miss(at, o.X, o.Y, &slope)
			d := [2]float64{u, v}
			d2 := d[0]*d[0] + d[1]*d[1]
			if !ok || !(d2 < lostPixels*lostPixels) {
				continue
			}
			_, w := loss(d2)
			w = math.Sqrt(w)
			r := &y.rows[i]
			for a := range 2 {
				r.residual[a] = w * d[a]
				c := geom.Scale(slope.Ray[a], w)
				if o.Mount > 0 {
					c = geom.Rotate(geom.Transposed(y.p.Mounts[o.Mount-1].R), c)
				}
				cross := geom.Cross(body, c)
				r.byPose[a] = [6]float64{cross[0], cross[1], cross[2], c[0], c[1], c[2]}
				for k, param := range y.free[pose.Lens] {
					byLens[a*y.width+k] = w * slope.Params[a][param]
				}
			}
		}
		return 0
	})
}
