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
const chunk = 256

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

// camera returns the pose and lens of the camera of an observation.
func (p *Problem) camera(s *state, pose, mount int32) Pose {
	c := s.poses[pose]
	if mount > 0 {
		m := &p.Mounts[mount-1]
		c.R, c.T, c.Lens = geom.Product(m.R, c.R), geom.Add(geom.Rotate(m.R, c.T), m.T), m.Lens
	}
	return c
}

// residual returns where an observation's point is projected, less where it was seen.
func (p *Problem) residual(s *state, optics []*scene.Optics, o Observation) [2]float64 {
	c := p.camera(s, o.Pose, o.Mount)
	x, y, ok := optics[c.Lens].Miss(geom.Add(geom.Rotate(c.R, s.points[o.Point]), c.T), o.X, o.Y, nil)
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

// linearise computes the normal equations' parts of all rows, points and pairs. It returns the weighted sum of squared
// residuals.
func (y *system) linearise(s *state, loss Loss) float64 {
	optics, _ := y.p.optics(s)
	for i := range s.poses {
		y.centres[i] = geom.TranslationOf(geom.Transposed(s.poses[i].R), s.poses[i].T)
	}
	return chunks(len(s.points), func(from, to int) (sum float64) {
		for i := from; i < to; i++ {
			sum += y.linearisePoint(s, optics, loss, int32(i))
		}
		return sum
	})
}

func (y *system) linearisePoint(s *state, optics []*scene.Optics, loss Loss, point int32) (sum float64) {
	var slope scene.Slope
	v, g := [6]float64{}, [3]float64{}
	first, last := y.pairStart[point], y.pairStart[point+1]
	clear(y.z[3*y.width*int(first) : 3*y.width*int(last)])
	clear(y.own[y.ownSize()*int(first) : y.ownSize()*int(last)])
	for r := y.pointStart[point]; r < y.pointStart[point+1]; r++ {
		row, byLens := &y.rows[r], y.byLens[3*y.width*int(r):3*y.width*int(r+1)]
		row.square, row.grad = [6]float64{}, [3]float64{}
		clear(byLens)
		cam := y.p.camera(s, row.pose, y.mounts[r])
		weight, _, d := observe(&cam, optics[cam.Lens], s.points[point], y.seen[r], loss, &slope)
		if weight == 0 {
			continue
		}
		sum += weight * (d[0]*d[0] + d[1]*d[1])
		row.add(&slope, &d, weight)
		for k := range v {
			v[k] += row.square[k]
		}
		g = geom.Add(g, row.grad)
		if pair := y.pairOf(point, int32(cam.Lens)); pair >= 0 {
			y.addLens(pair, byLens, y.free[cam.Lens], &slope, &d, weight)
		}
	}
	y.v[point], y.pointGrad[point] = v, g
	return sum
}

// observe linearises an observation: it returns its weight, 0 for one that is lost, its cost, and where the point is
// projected, less where it was seen. The slope's rays are in the world's axes.
func observe(pose *Pose, optics *scene.Optics, x [3]float64, seen [2]float64, loss Loss, slope *scene.Slope) (weight,
	cost float64, d [2]float64) {
	u, v, ok := optics.Miss(geom.Add(geom.Rotate(pose.R, x), pose.T), seen[0], seen[1], slope)
	d = [2]float64{u, v}
	d2 := d[0]*d[0] + d[1]*d[1]
	if !ok || !(d2 < lostPixels*lostPixels) {
		cost, _ = loss(lostPixels * lostPixels)
		return 0, cost, d
	}
	r := &pose.R
	for i := range slope.Ray {
		v := &slope.Ray[i]
		*v = [3]float64{r[0]*v[0] + r[3]*v[1] + r[6]*v[2], r[1]*v[0] + r[4]*v[1] + r[7]*v[2],
			r[2]*v[0] + r[5]*v[1] + r[8]*v[2]}
	}
	cost, weight = loss(d2)
	return weight, cost, d
}

// add adds an observation with its derivatives and weight.
func (r *row) add(slope *scene.Slope, d *[2]float64, weight float64) {
	for a := range 2 {
		x := &slope.Ray[a]
		w0, w1, w2 := weight*x[0], weight*x[1], weight*x[2]
		q := &r.square
		q[0], q[1], q[2] = q[0]+w0*x[0], q[1]+w0*x[1], q[2]+w0*x[2]
		q[3], q[4], q[5] = q[3]+w1*x[1], q[4]+w1*x[2], q[5]+w2*x[2]
		r.grad[0], r.grad[1], r.grad[2] = r.grad[0]+w0*d[a], r.grad[1]+w1*d[a], r.grad[2]+w2*d[a]
	}
}

// addLens adds the products of an observation's derivatives by the lens's free parameters to its pair and row.
func (y *system) addLens(pair int, byLens []float64, free []int, slope *scene.Slope, d *[2]float64,
	weight float64) {
	z, own := y.z[3*y.width*pair:], y.own[y.ownSize()*pair:y.ownSize()*(pair+1)]
	grad := own[triangle(y.width):]
	for a := range 2 {
		x := &slope.Ray[a]
		for i, param := range free {
			w := weight * slope.Params[a][param]
			for k := range 3 {
				byLens[3*i+k] += w * x[k]
				z[3*i+k] += w * x[k]
			}
			for k, other := range free[:i+1] {
				own[triangle(i)+k] += w * slope.Params[a][other]
			}
			grad[i] += w * d[a]
		}
	}
}
